// The derivation of a number: what it means, the formula, the numbers put in, each of them a door, down to a source.

import { ask } from "./api.js";
import { all, h, one, put } from "./dom.js";
import { t } from "./i18n.js";

let shown = null; // the number, its plan, the derivation, the names on the way into it, and where the focus was

const narrow = matchMedia("(max-width: 60rem)");
const sheet = () => one("#sheet");

/** Open the derivation of a number; the focus goes there, and comes back when it closes. */
export async function openSheet(number, plan, from) {
  const before = shown;
  shown = { number, plan, from: before?.from ?? from, tree: null, path: [] };
  if (from && !sheet().contains(from)) shown.from = from;
  sheet().hidden = false;
  contain();
  put(sheet(), head([]), named(number.name), valueOf(number), h("p", { class: "exactly" }, t("asking")));
  sheet().focus();
  await derive();
}

const named = (name) => h("h2", { id: "sheet-name" }, name);

/** Where it covers the page, nothing below it is reached; beside the page, both are. */
function contain() {
  const isModal = narrow.matches && !sheet().hidden;
  for (const element of all(".skip, .top, .page")) element.inert = isModal;
  sheet().setAttribute("aria-modal", String(isModal));
}

narrow.addEventListener("change", contain);

async function derive() {
  const { number, plan } = shown;
  const asked = shown;
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(plan.doors[number.door])) {
    for (const each of Array.isArray(value) ? value : [value]) words.append(name, each);
  }
  words.set("name", number.name);
  try {
    const tree = await ask("/api/explain", { words, config: plan.question.config });
    if (shown !== asked) return;
    shown.tree = tree;
    draw();
  } catch (refusal) {
    if (shown === asked) put(sheet(), head([]), named(number.name), h("p", { class: "error" }, refusal.message));
  }
}

/** The plan has changed below an open derivation: derive its number anew. A plan that is kept does not change. */
export function followPlan(plan) {
  if (!shown || sheet().hidden || shown.plan.isKept) return;
  shown = { ...shown, plan };
  if (plan.doors[shown.number.door]) derive();
  else put(sheet(), head([]), named(shown.number.name), h("p", {}, t("gone")));
}

export function closeSheet() {
  if (sheet().hidden) return false;
  sheet().hidden = true;
  contain();
  const { from, number } = shown;
  shown = null;
  const target = from?.isConnected ? from : one(`main [data-name="${number.name}"]`);
  target?.focus();
  return true;
}

const isDerived = (node) => Boolean(node.formula || node.parts?.length || node.origin || node.source);

/** The first node of a name below another that says how it is derived. */
function below(node, name) {
  for (const part of node.parts ?? []) {
    if (part.name === name && isDerived(part)) return part;
    const found = below(part, name);
    if (found) return found;
  }
  return null;
}

/** The derivation of a part of the last node of a trail. What occurs twice is derived once: the nearest is meant, since
 * a name may stand for two quantities, such as the steps of two slices. */
function derivationOf(trail, name) {
  const own = trail.at(-1).parts?.find((part) => part.name === name);
  if (own && isDerived(own)) return own;
  for (const node of [...trail].reverse()) {
    const found = below(node, name);
    if (found) return found;
  }
  return null;
}

/** The nodes on the way, looked up in the derivation as it is now, as far as it has them. */
function trailOf({ tree, path }) {
  const trail = [tree];
  for (const name of path) {
    const node = derivationOf(trail, name);
    if (!node) break;
    trail.push(node);
  }
  return trail;
}

function draw() {
  const trail = trailOf(shown);
  shown.path = trail.slice(1).map(({ name }) => name);
  const node = trail.at(-1);
  const parts = node.parts ?? [];
  put(
    sheet(),
    head(trail),
    h("h2", { id: "sheet-name" }, node.meaning || node.origin || node.name),
    valueOf(node),
    h("p", { class: "exactly" }, h("code", {}, node.name), node.exact ? ` = ${node.exact}` : ""),
    node.formula ? [h("h3", {}, t("formula")), h("p", { class: "formula" }, node.formula)] : null,
    node.numbers_text || node.numbers ? h("p", { class: "formula numbers" }, node.numbers_text || node.numbers) : null,
    parts.length ? [h("h3", {}, t("put_in")), h("ul", {}, parts.map((part) => partOf(part, trail)))] : null,
    node.origin && node.meaning ? [h("h3", {}, t("origin")), h("p", {}, node.origin)] : null,
    node.source ? [h("h3", {}, t("source")), h("p", { class: "source" }, linked(node.source))] : null,
    node.computed_by ? h("p", { class: "by" }, t("computed_by"), " ", h("code", {}, node.computed_by)) : null,
  );
}

/** A text whose addresses are links; they open beside the page, and only when somebody clicks. */
function linked(text) {
  return text.split(/(https:\/\/[^\s,)]+)/).map((piece, i) => (i % 2 ? h("a", { href: piece, target: "_blank", rel: "noopener noreferrer" }, piece) : piece));
}

function head(trail) {
  const path = trail.slice(0, -1).map((node, i) => [
    h("button", { type: "button", "data-key": `path ${i}`, onclick: () => back(i) }, node.name),
    h("span", { "aria-hidden": "true" }, "›"),
  ]);
  return h(
    "div",
    { class: "sheet-head" },
    h("nav", { class: "sheet-path", "aria-label": t("path") }, path.length ? path : t("derivation")),
    h("button", { type: "button", class: "sheet-close", "data-key": "close", "aria-label": t("close"), title: "Esc", onclick: closeSheet }, "×"),
  );
}

const inked = (resource) => (resource ? `ink-${resource}` : "");

function valueOf(node) {
  const text = node.figure ? [node.figure, node.suffix ? h("span", { class: "unit" }, `\u00a0${node.suffix}`) : ""] : node.text;
  return h("p", { class: `value ${inked(node.resource)}` }, text);
}

function partOf(part, trail) {
  const whole = derivationOf(trail, part.name);
  const value = h(
    whole ? "button" : "span",
    { class: `num ${whole ? "door" : ""} ${inked(part.resource)}`, type: whole ? "button" : null, "data-key": whole ? part.name : null, title: part.exact ?? null, onclick: whole ? () => descend(part.name) : null },
    part.text ?? "",
  );
  return h(
    "li",
    {},
    h("code", { class: "name" }, part.name),
    value,
    part.meaning ? h("span", { class: "meaning" }, part.meaning) : null,
    part.origin ? h("span", { class: "origin" }, part.origin) : null,
  );
}

function descend(name) {
  shown.path = [...shown.path, name];
  draw();
  sheet().scrollTop = 0;
  sheet().focus();
}

function back(i) {
  shown.path = shown.path.slice(0, i);
  draw();
  sheet().focus();
}
