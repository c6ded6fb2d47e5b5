// Making and finding elements. Text is set as text: nothing that comes from the server or the user is read as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes, listeners (`onclick: f`) and children (elements, texts, or lists of them). */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same, of SVG. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

export const one = (selector, root = document) => root.querySelector(selector);
export const all = (selector, root = document) => [...root.querySelectorAll(selector)];

/** Put new children in the place of the old ones. */
export function put(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
}

/** Set a text only where it differs, so that nothing is laid out again without need. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Tell those who listen what has happened; those who see get a short note. */
export function announce(text) {
  const note = one("#note");
  say(note, text);
  note.classList.add("shown");
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => note.classList.remove("shown"), 2400);
}
