// One plan on the page: built once, then filled again and again. Two of them stand side by side in a comparison.

import { drawAnswer } from "./answer.js";
import { Chart, chartFrame } from "./charts.js";
import { h, put, say } from "./dom.js";
import { t, told } from "./i18n.js";
import { drawMemory } from "./memory.js";
import { drawMesh } from "./mesh.js";
import { numberOf } from "./numbers.js";
import { drawAssumptions, drawCandidates, drawNumbers, drawRunnerUp, drawServers, drawWhatIfs } from "./tables.js";

const section = (name) => h("section", { class: name });

export class View {
  constructor(name = "now") {
    this.name = name;
    const frontier = chartFrame("frontier");
    const breakdown = chartFrame("breakdown");
    this.frontier = new Chart(frontier.frame);
    this.breakdown = new Chart(breakdown.frame);
    this.refused = h("p", { class: "quiet small" });
    this.terms = h("ul", { class: "terms small" });
    frontier.section.append(this.refused);
    breakdown.section.append(this.terms);
    this.places = Object.fromEntries(
      ["answer", "memory", "mesh", "servers", "numbers", "runner-up", "what-if", "candidates", "assumed"].map((name) => [name, section(name)]),
    );
    const { answer, memory, mesh, servers, numbers, candidates, assumed } = this.places;
    this.label = h("p", { class: "plan-label" });
    this.element = h(
      "article",
      { class: "plan" },
      h("div", { class: "head" }, this.label, answer),
      memory,
      frontier.section,
      breakdown.section,
      mesh,
      servers,
      numbers,
      this.places["runner-up"],
      this.places["what-if"],
      candidates,
      assumed,
    );
    this.data = null;
    this.beside = null;
  }

  /** Stand beside another plan, on the same axes; null to stand alone. */
  async standBeside(other) {
    this.beside = other;
    await Promise.all(["frontier", "breakdown"].map((name) => this[name].align(other?.[name].chart ?? null)));
  }

  /** The sentence, the memory and the charts of an answer; resolves when they are drawn. */
  async show(data, question) {
    this.data = data;
    this.plan = { doors: data.doors ?? {}, question, data, isKept: this.name === "kept" };
    const why = whyNot(data);
    say(this.label, `${t(this.name)} · ${told(data.title ?? "")}`);
    drawAnswer(this.places.answer, data, this.plan);
    drawMemory(this.places.memory, data.memory, this.plan);
    this.frontier.frame.dataset.reason = data.frontier ? "" : (why.frontier ?? t("no_picture"));
    this.breakdown.frame.dataset.reason = data.breakdown ? "" : (why.breakdown ?? t("no_picture"));
    say(this.refused, [refusedSlices(data.frontier?.refused), unnamedSlices(data.frontier)].filter(Boolean).join(" "));
    put(this.terms, termsOf(data.breakdown, this.plan));
    await Promise.all(["frontier", "breakdown"].map((name) => this[name].draw(data[name]?.chart, this.beside?.[name].chart)));
    if (this.beside) await this.beside.standBeside(this);
  }

  /** What stands below the charts. */
  showRest() {
    const { data, plan, places } = this;
    drawMesh(places.mesh, data.mesh);
    drawServers(places.servers, data.servers, data.fleet, plan, whyNot(data).servers ?? null);
    drawNumbers(places.numbers, data, plan);
    drawRunnerUp(places["runner-up"], data.runner_up, plan);
    drawWhatIfs(places["what-if"], data.what_ifs, plan);
    drawCandidates(places.candidates, data, plan);
    drawAssumptions(places.assumed, data);
  }

  /** All of an answer. */
  async fill(data, question) {
    await this.show(data, question);
    this.showRest();
  }

  /** Draw what is known again: in another theme or language. */
  async again(question) {
    if (this.data) await this.fill(this.data, question);
  }

  keepGhosts() {
    this.frontier.keepGhost();
    this.breakdown.keepGhost();
  }

  async dropGhosts() {
    await Promise.all([this.frontier.dropGhost(), this.breakdown.dropGhost()]);
  }
}

/** Why a part of the answer is missing, by the part. */
const whyNot = (data) => Object.fromEntries((data.errors ?? []).map(({ part, text }) => [part, text]));

/** The terms of the step in words; a term that hides behind a longer one is said, and lighter. */
function termsOf(breakdown, plan) {
  const note = breakdown?.note ? h("li", { class: "quiet" }, breakdown.note) : null;
  const terms = (breakdown?.terms ?? []).map((term) =>
    h("li", { class: term.counted ? null : "is-hidden", title: term.counted ? null : t("hidden_term") }, h("span", { class: "quiet" }, `${told(term.label)} `), numberOf(term.number, plan)),
  );
  const bound = breakdown?.critical_batch;
  const critical = bound ? h("li", { title: t("critical_hover") }, h("span", { class: "quiet" }, `${t("critical")} `), numberOf(bound, plan)) : null;
  return [note, ...terms, critical];
}

function refusedSlices(refused) {
  if (!refused?.length) return "";
  return t("refused_slices", { slices: refused.map((item) => item.slice).join(", ") });
}

/** Curves without room for their name in the picture are named below it. */
function unnamedSlices(frontier) {
  const labels = (frontier?.chart?.data.labels ?? []).filter(({ kind }) => kind === "slice");
  const isNamed = (curve) => labels.some((label) => label.step_s === curve.step_s.at(-1) && label.tokens_per_s_per_chip === curve.tokens_per_s_per_chip.at(-1));
  const slices = (frontier?.slices ?? []).filter((curve) => !isNamed(curve)).map(({ slice }) => slice);
  return slices.length ? t("unnamed_slices", { slices: slices.join(", ") }) : "";
}
