// The answer in a few lines: words of the server, with its numbers as doors and its terms explained on hover.

import { h, put } from "./dom.js";
import { told } from "./i18n.js";
import { numberOf } from "./numbers.js";

/** A piece of a sentence: words, or a number as a door. */
export function segment(part, plan) {
  if (part.number) return numberOf(part.number, plan);
  const kind = part.resource ? `ink-${part.resource}` : null;
  if (part.hover) return h("span", { class: kind, "data-hover": part.hover, tabindex: 0 }, told(part.text));
  if (part.strong) return h("strong", { class: kind }, part.text);
  return kind ? h("span", { class: kind }, told(part.text)) : kept(part.text);
}

/** A dot between numbers stays with the number before it. */
const kept = (text) => told(text).replaceAll(" · ", "\u00a0· ");

export function drawAnswer(place, data, plan) {
  const lines = (data.sentence ?? []).map((line) => h("p", {}, line.map((part) => segment(part, plan))));
  const reason = !data.fits && data.reason && !lines.length ? h("p", {}, data.reason) : null;
  place.classList.toggle("is-refusal", !data.fits);
  put(place, lines, reason);
}
