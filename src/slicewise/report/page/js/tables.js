// What stands below the pictures: numbers told three times, servers, cost, other plans, refusals, assumptions.

import { h, put } from "./dom.js";
import { t, told } from "./i18n.js";
import { segment } from "./answer.js";
import { fromTo, numberOf } from "./numbers.js";
import { change } from "./state.js";

const cell = (number, plan, { isBare = false, title = null } = {}) =>
  h("td", { class: "right", "data-head": title }, number ? numberOf(isBare ? { ...number, suffix: "" } : number, plan) : "");

const labelled = (row) => h("th", { scope: "row", title: row.hover ?? null }, told(row.label));

/** Rows of label and number. */
export function rowsTable(rows, plan) {
  const body = rows.map((row) => h("tr", {}, labelled(row), cell(row.number, plan)));
  return h("table", { class: "rows" }, h("tbody", {}, body));
}

const head = (key) => h("th", { scope: "col", class: "right", title: t(`${key}_hover`) }, t(key));

/** Groups of rows whose numbers are told three times: what is expected, what bounds it, and the range. */
function toldTable(groups, plan) {
  const isTold = groups.some(({ rows }) => rows.some((row) => row.bound || row.low));
  const bodies = groups.map(({ title, rows }) =>
    h(
      "tbody",
      {},
      h("tr", { class: "group" }, h("th", { scope: "rowgroup", colspan: isTold ? 4 : 2 }, title)),
      rows.map((row) =>
        h("tr", {}, labelled(row), cell(row.number, plan), isTold ? [cell(row.bound, plan, { title: row.bound && t("bound") }), range(row, plan)] : null),
      ),
    ),
  );
  const heads = isTold ? h("thead", {}, h("tr", {}, h("td", {}), ["expected", "bound", "range"].map(head))) : null;
  return h("table", { class: `rows ${isTold ? "told" : ""}` }, heads, bodies);
}

function range(row, plan) {
  if (!row.low || !row.high) return h("td", {});
  return h("td", { class: "right range", "data-head": t("range") }, fromTo(row.low, row.high, plan));
}

/** Speed and cost: the plan's numbers in one table, so that its columns stand below each other. */
export function drawNumbers(place, data, plan) {
  const groups = [
    { title: t("speed"), rows: data.answer?.rows ?? [] },
    { title: t("cost"), rows: data.cost?.rows ?? [] },
  ].filter(({ rows }) => rows.length);
  place.hidden = !groups.length;
  if (place.hidden) return;
  const why = [data.answer?.why, data.cost?.price].filter(Boolean).map((text) => told(text));
  put(place, h("h2", {}, t("numbers")), why.map((text) => h("p", { class: "lead sentence" }, text)), toldTable(groups, plan));
}

const said = (servers, plan) => servers.said.map((part) => segment(part, plan));

export function drawServers(place, servers, fleet, plan, refusal) {
  const isServed = servers && servers.fits !== false;
  place.hidden = !isServed && (!plan.data.fits || !(servers?.reason ?? refusal)); // what does not fit is said above
  if (place.hidden) return;
  if (!isServed) {
    put(place, h("h2", {}, t("servers")), h("p", { class: "lead sentence said" }, servers ? said(servers, plan) : refusal));
    return;
  }
  put(
    place,
    h("h2", {}, t("servers")),
    h("p", { class: "lead sentence" }, said(servers, plan)),
    servers.rows?.length ? rowsTable(servers.rows, plan) : null,
    fleet?.rows?.length ? [h("h3", {}, t("fleet")), rowsTable(fleet.rows, plan)] : null,
  );
}

const take = (words, text) => h("button", { type: "button", class: "quiet-button", "data-key": text, onclick: () => change(words) }, text);

/** The name of what was taken: no button any more, but it keeps the focus that the button had. */
const taken = (text) => h("span", { tabindex: -1, "data-key": text }, text);

export function drawRunnerUp(place, runnerUp, plan) {
  place.hidden = !runnerUp;
  if (!runnerUp) return;
  const numbers = (runnerUp.rows ?? []).map((row) => [" · ", `${told(row.label)} `, numberOf(row.number, plan)]);
  put(place, h("h2", {}, t("runner_up")), h("p", { class: "next-best" }, take(runnerUp.words, runnerUp.text), numbers));
}

const CANDIDATE_COLUMNS = ["batch", "step", "tokens_per_chip", "ttft", "usd"];

/** Every slice: those that serve, best first, then those that do not, with the reason. */
export function drawCandidates(place, data, plan) {
  const { candidates = [], rejected = [] } = data;
  place.hidden = !candidates?.length && !rejected?.length;
  if (place.hidden) return;
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, t("slice")),
    CANDIDATE_COLUMNS.map((name) => h("th", { scope: "col", class: "right" }, t(`column_${name}`))),
  );
  const rows = (candidates ?? []).map((item) =>
    h(
      "tr",
      { class: item.is_chosen ? "is-chosen" : null },
      h("th", { scope: "row" }, item.is_chosen ? taken(nameOf(item)) : take(item.words, nameOf(item))),
      CANDIDATE_COLUMNS.map((name) => cell(item[name], plan, { isBare: name === "tokens_per_chip" })),
    ),
  );
  const refused = byReason(rejected ?? []).map(([reason, items]) =>
    h(
      "tr",
      { class: "is-refused" },
      h("th", { scope: "row" }, told(reason)),
      h("td", { colspan: CANDIDATE_COLUMNS.length }, items.map((item, i) => [i ? ", " : "", h("span", { title: item.detail ?? null }, [item.slice, item.layout].filter(Boolean).join(" "))])),
    ),
  );
  put(
    place,
    h("h2", {}, t("candidates")),
    h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("candidates") }, h("table", { class: "candidates" }, h("thead", {}, head), h("tbody", {}, rows, refused))),
  );
}

/** What is refused, by its reason, in the order of the list. */
function byReason(items) {
  const found = new Map();
  for (const item of items) found.set(item.reason, [...(found.get(item.reason) ?? []), item]);
  return [...found];
}

const nameOf = (item) =>
  [item.slice, item.layout, item.weight_dtype === item.kv_dtype ? item.weight_dtype : `${item.weight_dtype}, ${item.kv_dtype} KV`]
    .filter(Boolean)
    .join(" · ");

export function drawWhatIfs(place, whatIfs, plan) {
  place.hidden = !whatIfs?.length;
  if (place.hidden) return;
  put(
    place,
    h("h2", {}, t("what_ifs")),
    h(
      "ul",
      { class: "what-ifs" },
      whatIfs.map((item) =>
        h(
          "li",
          {},
          h("span", {}, told(item.text)),
          item.reason
            ? h("span", { class: "quiet reason", title: item.reason }, item.reason)
            : h("span", { class: "quiet" }, spaced(Object.values(item.numbers ?? {}).filter(Boolean), plan)),
        ),
      ),
    ),
  );
}

const spaced = (numbers, plan) => numbers.map((number, i) => [i ? " · " : "", numberOf(number, plan)]);

export function drawAssumptions(place, data) {
  const sentences = data.assumptions ?? [];
  place.hidden = !sentences.length;
  if (place.hidden) return;
  const wasOpen = place.querySelector("details")?.open ?? false;
  put(
    place,
    h(
      "details",
      { open: wasOpen },
      h("summary", {}, h("h2", {}, t("assumptions"))),
      h("ul", { class: "assumptions" }, sentences.map((sentence) => h("li", {}, sentence))),
    ),
  );
}
