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

/** Put new children in the place of the old ones. The focus goes to the child that has the key of the one that had it. */
export function put(element, ...children) {
  const again = focusOf(element);
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  again?.();
}

/** What gives the focus back after a redraw; null where the focus is elsewhere. Without its like, the frame gets it. */
function focusOf(element) {
  const active = document.activeElement;
  if (active === element || !element.contains(active)) return null;
  const keyOf = (each) => each.dataset.key ?? each.dataset.name;
  const alike = () => all("[data-key], [data-name]", element).filter((each) => keyOf(each) === keyOf(active));
  const at = keyOf(active) ? alike().indexOf(active) : -1;
  return () => {
    const next = at < 0 ? null : (alike()[at] ?? alike()[0]);
    (next ?? element.closest("[tabindex]"))?.focus({ preventScroll: true });
  };
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
