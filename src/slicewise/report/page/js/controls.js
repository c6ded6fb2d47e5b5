// The question on the left: every control is a word of the address, and shows what the server understood.

import { list } from "./api.js";
import { h, one, put } from "./dom.js";
import { t, told, translatePage } from "./i18n.js";
import { modelField } from "./models.js";
import { Slider } from "./sliders.js";
import { allOf, change, word } from "./state.js";

const DTYPES = ["weights", "kv", "compute"];
const CHOICES = {
  objective: ["cost", "latency", "throughput"],
  view: ["expected", "overlapped", "serial", "roofline"],
  ici: ["auto", "ring", "none"],
  split: ["whole", "ideal"],
  kv_split: ["batch", "copy"],
};
const FURTHER = ["params", "hbm", "memory_fraction", "reserve", "mfu", "network", "prefill_slice"];
const RANKS = ["tp", "pp", "dp", "ep"];

const fields = {};
let model;
export const sliders = {};

const field = (name, control, extra = null) =>
  h("div", { class: "field" }, h("label", { for: `word-${name}`, "data-t": name, "data-t-title": `${name}_hover`, title: t(`${name}_hover`) }, t(name)), control, extra);

function selectOf(name) {
  fields[name] = h("select", { id: `word-${name}`, onchange: (event) => change({ [name]: event.target.value, ...besides(name) }) });
  return fields[name];
}

/** A slice belongs to its chip, and a batch to its slice: what no longer holds is left out. */
function besides(name) {
  if (name === "chip") return { slice: null, batch: null, tp: null, pp: null, dp: null, ep: null };
  return {};
}

function inputOf(name) {
  fields[name] = h("input", { id: `word-${name}`, type: "text", spellcheck: "false", "data-t-hint": `${name}_hint`, onchange: (event) => change({ [name]: event.target.value.trim() }) });
  return fields[name];
}

function fill(select, options, value) {
  const known = options.some(([key]) => key === value);
  const shown = known || !value ? options : [...options, [value, value]];
  const wanted = JSON.stringify(shown);
  if (select.dataset.options !== wanted) {
    select.dataset.options = wanted;
    put(select, shown.map(([key, text, off]) => h("option", { value: key, disabled: off }, text)));
  }
  select.value = value ?? "";
}

export async function buildControls() {
  model = modelField();
  for (const name of ["context", "batch", "isl", "osl"]) sliders[name] = new Slider(name);
  fields.book = h("input", { type: "checkbox", id: "word-book", onchange: (event) => change({ book: event.target.checked ? "true" : null }) });
  put(
    one("#form"),
    model.elements,
    field("chip", selectOf("chip")),
    field("slice", selectOf("slice")),
    field("weights", selectOf("weights")),
    field("kv", selectOf("kv")),
    sliders.isl.element,
    sliders.osl.element,
    field("tpot", inputOf("tpot")),
    field("ttft", inputOf("ttft")),
    field("rate", inputOf("rate")),
    field("price", inputOf("price")),
    h("label", { class: "check", "data-t-title": "book_hover", title: t("book_hover") }, fields.book, h("span", { "data-t": "book" }, t("book"))),
    h(
      "details",
      { class: "more-controls" },
      h("summary", { "data-t": "more" }, t("more")),
      h(
        "div",
        {},
        field("compute", selectOf("compute")),
        Object.keys(CHOICES).map((name) => field(name, selectOf(name))),
        FURTHER.map((name) => field(name, inputOf(name))),
        RANKS.map((name) => field(name, inputOf(name))),
        field("engine", selectOf("engine")),
      ),
    ),
  );
  put(one("#dock"), sliders.context.element, sliders.batch.element);
  translatePage();
  one("#form").addEventListener("submit", (event) => event.preventDefault());
  if (matchMedia("(max-width: 60rem)").matches) one("#question").open = false;
  chips = await list("/api/chips");
  fill(fields.chip, chipOptions(), fields.chip.value || null);
}

let chips = [];
const chipOptions = () => chips.map(({ chip, title }) => [chip, title && title !== chip ? `${chip} – ${title}` : chip]);

/** Show the words as they are, before any answer. */
export function syncWords() {
  model.sync();
  for (const name of [...FURTHER, ...RANKS, "tpot", "ttft", "rate", "price"]) {
    if (document.activeElement !== fields[name]) fields[name].value = allOf(name).join(", ");
  }
  fields.book.checked = word("book") === "true";
  for (const [name, values] of Object.entries(CHOICES)) {
    fill(fields[name], [["", t("by_default")], ...values.map((value) => [value, t(`${name}_${value}`)])], word(name));
  }
}

/** Show what the server understood, and what it offers. */
export function syncControls(data) {
  syncWords();
  const offered = data.controls ?? {};
  for (const slider of Object.values(sliders)) slider.sync(offered[slider.name]);
  const chip = data.answer?.chip ?? allOf("slice")[0]?.split(":")[0] ?? allOf("chip").join(", ");
  fill(fields.chip, chipOptions(), allOf("chip").length > 1 ? allOf("chip").join(", ") : (word("chip") ?? chip));
  const slices = (offered.slices ?? []).map(({ slice, text, fits }) => [slice, fits === false ? `${text} ✕` : text]);
  fill(fields.slice, [["", t("plan_chooses")], ...slices], allOf("slice").join(", "));
  for (const name of DTYPES) {
    const values = (offered[name] ?? offered.weights ?? []).map((dtype) => [dtype, dtype]);
    fill(fields[name], [["", t("as_checkpoint")], ...values], allOf(name).join(", "));
  }
  fill(fields.engine, [["", t("no_engine")], ...(offered.engines ?? []).map((engine) => [engine.engine ?? engine, engine.engine ?? engine])], word("engine"));
  one("#asked").textContent = data.title ? told(data.title) : "";
}
