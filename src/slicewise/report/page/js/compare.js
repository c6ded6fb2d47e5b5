// Two plans side by side: the one that was kept, and the one that moves. What was kept is part of the address.

import { explore } from "./api.js";
import { h, one } from "./dom.js";
import { asked, extraWord, setExtra } from "./state.js";
import { View } from "./view.js";

let kept = null; // {query, view}
let moving = () => null; // the view of the plan that moves

export function startCompare(view) {
  moving = view;
  one("#compare").addEventListener("click", () => {
    const { words, config } = asked();
    if (extraWord("kept") !== null) setExtra("kept", null);
    else setExtra("kept", config ? `${words}#${JSON.stringify(config)}` : words.toString());
    syncCompare();
  });
}

function questionOf(query) {
  const cut = query.indexOf("#");
  const text = cut < 0 ? query : query.slice(0, cut);
  return { words: new URLSearchParams(text), config: cut < 0 ? null : JSON.parse(query.slice(cut + 1)) };
}

/** Show the kept plan where the address has one. */
export async function syncCompare() {
  const query = extraWord("kept");
  const button = one("#compare");
  button.setAttribute("aria-pressed", String(query !== null));
  one("#plans").classList.toggle("two", query !== null);
  if (kept && kept.query === query) return;
  letGo();
  if (query === null) {
    await moving().standBeside(null);
    return;
  }
  const view = new View("kept");
  kept = { query, view };
  one("#plans").prepend(view.element);
  await fillKept();
}

/** The kept plan leaves the page: what is under way for it draws nothing any more. */
function letGo() {
  if (!kept) return;
  kept.view.beside = null;
  kept.view.element.remove();
  kept = null;
}

async function fillKept() {
  const mine = kept;
  try {
    const question = questionOf(mine.query);
    const found = await explore(question);
    if (kept !== mine) return;
    mine.view.beside = moving();
    moving().beside = mine.view;
    await mine.view.fill(found, question);
  } catch (refusal) {
    if (kept === mine) mine.view.places.answer.replaceChildren(h("p", { class: "error" }, refusal.message));
  }
}

/** Draw the kept plan again: in another theme or language. */
export async function drawKept() {
  if (kept) await fillKept();
}
