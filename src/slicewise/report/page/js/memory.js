// One chip's memory as a bar: what it holds, what is granted, and what does not fit.

import { h, put, s } from "./dom.js";
import { t, told } from "./i18n.js";
import { fromTo, numberOf } from "./numbers.js";
import { change } from "./state.js";

const LONG = 1000; // the bar's length in its own coordinates

/** The bar as an SVG of its own coordinates; a page stretches it, an export gives it a size. */
export function memoryBar(memory) {
  const rectangles = memory.segments.map((segment) =>
    s("rect", {
      class: `fill-${segment.resource}`,
      x: segment.start * LONG,
      width: segment.width * LONG,
      y: 0,
      height: 30,
    }),
  );
  const limit = memory.limit * LONG;
  const line = memory.fits ? null : s("rect", { class: "limit-line", x: limit - 1.5, width: 3, y: 0, height: 30 });
  return s("svg", { class: "bar", viewBox: `0 0 ${LONG} 30`, preserveAspectRatio: "none", "aria-hidden": "true" }, rectangles, line);
}

function part(segment, plan) {
  const breaks = segment.resource === "overflow";
  return h(
    "li",
    { class: breaks ? "breaks" : null },
    h("span", { class: `swatch fill-${segment.resource}` }),
    h("span", { class: "label" }, told(segment.label)),
    numberOf(segment.number, plan),
    h("span", { class: "share" }, segment.share_text),
  );
}

/** Draw the memory of a plan into its place. */
export function drawMemory(place, memory, plan) {
  place.hidden = !memory;
  if (!memory) return;
  put(
    place,
    h("h2", {}, t("memory")),
    h(
      "p",
      { class: "lead" },
      numberOf(memory.total, plan),
      ` ${t("memory_of")} `,
      numberOf(memory.granted, plan),
    ),
    memoryBar(memory),
    h("ul", { class: "parts" }, memory.segments.map((segment) => part(segment, plan))),
    h("div", { class: "memory-more" }, foot(memory), ledger(memory, plan)),
    (plan.data.model?.notes ?? []).map((note) => h("p", { class: "model-note" }, note)),
  );
}

/** What breaks, and what would fit. */
function foot(memory) {
  if (memory.fits) return null;
  const what = memory.breaks ? t("breaks", { what: told(memory.breaks) }) : memory.reason;
  const ways = (memory.nearest ?? []).map((way, i) => [
    i ? ", " : ` ${t("nearest")} `,
    h("button", { type: "button", class: "quiet-button nearest", "data-key": way.text, onclick: () => change(way.words) }, way.text),
  ]);
  return h("p", {}, h("span", { class: "refused" }, what), ways);
}

function ledger(memory, plan) {
  if (!memory.lines?.length) return null;
  return h(
    "details",
    { class: "ledger" },
    h("summary", {}, t("ledger")),
    h(
      "table",
      {},
      h(
        "tbody",
        {},
        memory.lines.map((line) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, told(line.label)),
            h("td", { class: "right" }, line.most ? fromTo(line.number, line.most, plan) : numberOf(line.number, plan)),
            h("td", { class: "why" }, told(line.certainty), line.why ? ` – ${line.why}` : ""),
          ),
        ),
      ),
    ),
  );
}
