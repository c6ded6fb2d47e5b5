// Chapter 8 as a tour: each question sets the controls, and shows what the book prints beside what comes out here.

import { list } from "./api.js";
import { h, one, put } from "./dom.js";
import { t, told } from "./i18n.js";
import { numberOf } from "./numbers.js";
import { extraWord, replace, setExtra } from "./state.js";

let questions = null;

const panel = () => one("#tour-panel");

export function startTour() {
  one("#tour").addEventListener("click", () => {
    if (panel().hidden) go(extraWord("tour") ?? "");
    else close();
  });
}

function close() {
  panel().hidden = true;
  one("#tour").setAttribute("aria-expanded", "false");
  setExtra("tour", null);
}

/** Open the tour where the address says so. */
export async function syncTour() {
  const id = extraWord("tour");
  if (id === null) {
    panel().hidden = true;
    one("#tour").setAttribute("aria-expanded", "false");
    return;
  }
  if (!questions) wait();
  questions ??= await list("/api/tour");
  show(questions.find((question) => question.id === id) ?? questions[0]);
}

async function go(id) {
  if (!questions) wait();
  questions ??= await list("/api/tour");
  const question = questions.find((each) => each.id === id) ?? questions[0];
  setExtra("tour", question.id);
  show(question);
  if (question.words && Object.keys(question.words).length) replace(question.words);
  if (matchMedia("(max-width: 60rem)").matches) panel().scrollIntoView({ block: "start" });
}

/** The book's answers are computed once, when somebody first asks for them. */
function wait() {
  panel().hidden = false;
  put(panel(), h("p", { class: "quiet" }, t("tour_wait")));
}

function show(question) {
  panel().hidden = false;
  one("#tour").setAttribute("aria-expanded", "true");
  const at = questions.indexOf(question);
  const step = (to, label, text) =>
    h("button", { type: "button", "data-key": label, "aria-label": t(label), "aria-disabled": String(!questions[to]), onclick: () => questions[to] && go(questions[to].id) }, text);
  const choice = h(
    "select",
    { "data-key": "tour_question", "aria-label": t("tour_question"), onchange: (event) => go(event.target.value) },
    questions.map((each) => h("option", { value: each.id }, t("tour_number", { number: each.question }))),
  );
  choice.value = question.id;
  put(
    panel(),
    h("div", { class: "tour-head" }, choice, step(at - 1, "tour_before", "‹"), step(at + 1, "tour_next", "›")),
    h("h2", {}, told(question.title)),
    answersTable(question),
  );
}

const WHO = ["book", "reader", "ours"];

/** The unit is said once where the numbers are in it; one in thousandths or millions of it says its own. */
const shown = (number, unit, plan) => (number ? numberOf(number.suffix === unit ? { ...number, suffix: "" } : number, plan) : "");

function answersTable({ answers, doors }) {
  const plan = { doors, question: { config: null }, isKept: true }; // its numbers stay, whatever the controls do
  const head = h("tr", {}, ["tour_book", "tour_reader", "tour_ours"].map((key) => h("th", { scope: "col" }, t(key))));
  const bodies = answers.map((answer) =>
    h(
      "tbody",
      { "data-quantity": answer.quantity },
      h("tr", {}, h("th", { scope: "rowgroup", colspan: 3 }, quantityOf(answer), h("span", { class: "quiet" }, WHO.some((who) => answer[who]?.suffix === answer.unit) ? ` ${answer.unit}` : ""))),
      h("tr", {}, WHO.map((who) => h("td", { class: who }, shown(answer[who], answer.unit, plan)))),
      answer.why ? h("tr", { class: "why" }, h("td", { colspan: 3 }, answer.why)) : null,
    ),
  );
  return h("table", { class: "tour-answers" }, h("thead", {}, head), bodies);
}

/** A quantity has its own words where the question asks about several slices or dtypes. */
function quantityOf({ quantity, words }) {
  if (!words) return told(quantity);
  return h("button", { type: "button", class: "quiet-button", "data-key": quantity, title: t("tour_show"), onclick: () => replace(words) }, told(quantity));
}
