// Texts of the page in the language that was chosen. Texts of the server are looked up by their English words.

import { all } from "./dom.js";

const LANGUAGES = ["en", "ko"];
const KEPT = "slicewise-language";

let catalogue = {};
let language = "en";

const kept = () => {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null; // storage may be closed to the page
  }
};

/** The language of the address, else the one chosen before, else the browser's. */
function preferred(words) {
  const wanted = [words.get("lang"), kept(), ...(navigator.languages || [])];
  const found = wanted.map((tag) => LANGUAGES.find((known) => tag?.toLowerCase().startsWith(known)));
  return found.find(Boolean) || "en";
}

async function load(name) {
  const answer = await fetch(new URL(`../text/${name}.json`, import.meta.url));
  return answer.json();
}

export async function startLanguage(words) {
  await setLanguage(preferred(words), false);
}

export async function setLanguage(name, keep = true) {
  const english = await load("en");
  catalogue = name === "en" ? english : { ...english, ...(await load(name)) };
  language = name;
  document.documentElement.lang = name;
  if (keep) {
    try {
      localStorage.setItem(KEPT, name);
    } catch {
      // it holds for this visit, then
    }
  }
  translatePage();
}

export const currentLanguage = () => language;
export const otherLanguage = () => LANGUAGES.find((name) => name !== language);

/** A text of the page by its key; {name} is filled in. */
export function t(key, values = {}) {
  const text = catalogue[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** A text that the server wrote, in the chosen language where the catalogue has it. */
export function told(text) {
  return catalogue.server?.[text] ?? text;
}

/** Every element that names its text: data-t the content, data-t-label the label, data-t-hint the hint in a field. */
export function translatePage() {
  for (const element of all("[data-t]")) element.textContent = t(element.dataset.t);
  for (const element of all("[data-t-label]")) element.setAttribute("aria-label", t(element.dataset.tLabel));
  for (const element of all("[data-t-title]")) element.title = t(element.dataset.tTitle);
  for (const element of all("[data-t-hint]")) element.placeholder = t(element.dataset.tHint);
}
