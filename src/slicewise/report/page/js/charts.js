// The two charts. A chart is embedded once; after that only its data and its axes change, as long as the server
// says that the frame (size, theme, what is drawn) is the same: its key tells. A new frame is drawn behind the old one and takes its place at once.

import { h, one, put } from "./dom.js";
import { t } from "./i18n.js";
import { currentTheme } from "./theme.js";
import { placeTip } from "./tip.js";

// The charting library sets globals; the page shows its first answer while it comes.
let library;
const charting = () => (library ??= import("/static/vega.js"));

const OPTIONS = { ast: true, actions: false, renderer: "svg", defaultStyle: false, tooltip: showTip };

/** A small table at the pointer. */
function showTip(_handler, event, _item, value) {
  const tip = one("#tip");
  const isEmpty = value === null || value === undefined || value === "";
  tip.hidden = isEmpty;
  if (isEmpty) return;
  const rows = typeof value === "object" ? Object.entries(value) : [["", value]];
  put(tip, h("dl", {}, ...rows.map(([name, text]) => [h("dt", {}, name), h("dd", {}, String(text))])));
  placeTip(event.clientX + 14, event.clientY - 12);
}

export class Chart {
  constructor(frame) {
    this.frame = frame;
    this.view = null;
    this.key = null;
    this.chart = null;
    this.ghost = [];
  }

  /** Keep what is drawn now as a ghost behind what comes. */
  keepGhost() {
    const rows = this.chart?.data?.curves ?? [];
    const chosen = rows.filter((row) => row.chosen || row.is_chosen);
    this.ghost = chosen.length ? chosen : (this.chart?.data?.total ?? []);
  }

  /** Let the ghost go. */
  async dropGhost() {
    if (!this.ghost.length) return;
    this.ghost = [];
    await this.fill({});
  }

  /** Draw a CHART of the contract, on axes that hold the one beside it too; resolves when it is drawn. */
  async draw(chart, beside = null) {
    this.frame.classList.toggle("empty", !chart);
    this.chart = chart ?? null;
    if (!chart) return;
    this.beside = beside;
    this.frame.setAttribute("aria-label", chart.alt);
    this.frame.style.aspectRatio = `${chart.width} / ${chart.height}`;
    const key = `${chart.key} ${currentTheme()}`;
    if (this.view && key === this.key) await this.fill(chart.data, this.axes());
    else await this.embed(chart, key);
  }

  /** Take the axes that hold the chart beside it too. */
  async align(beside) {
    this.beside = beside;
    if (!this.view || !this.chart) return;
    const axes = this.axes();
    const isAlike = Object.entries(axes).every(([name, value]) => String(this.view.signal(name)) === String(value));
    if (!isAlike) await this.fill({}, axes);
  }

  /** Rows as they are drawn: with the ghost, and on axes that are wider than its own without the labels of batches. */
  rows(data) {
    const own = this.chart?.data ?? {};
    const found = "ghost" in own ? { ...data, ghost: this.ghost } : { ...data };
    const { labels } = { ...own, ...data };
    const isWider = this.beside && String(Object.values(this.axes())) !== String(Object.values(this.chart.signals));
    if (labels?.some(({ kind }) => kind)) found.labels = isWider ? labels.filter(({ kind, strong }) => strong || kind === "slice") : labels;
    return found;
  }

  axes() {
    const signals = this.chart?.signals ?? {};
    return this.chart && this.beside ? widest(signals, this.beside.signals) : signals;
  }

  async fill(data, signals = {}) {
    if (!this.view) return;
    for (const [name, value] of Object.entries(signals)) this.view.signal(name, value);
    const all = this.rows(data);
    for (const [name, rows] of Object.entries(all)) this.view.data(name, rows);
    await this.view.runAsync();
  }

  async embed(chart, key) {
    await charting();
    const place = h("div", { class: "plot" });
    const datasets = this.rows(chart.data);
    const { view, finalize } = await window.vegaEmbed(place, { ...chart.spec[currentTheme()], datasets }, OPTIONS);
    this.finalize?.();
    this.finalize = finalize;
    this.view = view;
    this.key = key;
    if (this.beside) await this.fill({}, this.axes());
    one("svg", place)?.setAttribute("aria-hidden", "true");
    put(this.frame, place);
  }

  /** The picture as text of an SVG, as it looks. */
  async svg() {
    return this.view ? this.view.toSVG() : null;
  }
}

/** Axes that hold both charts: the wider one's, or where neither holds the other what both span, with the ticks of both. */
function widest(one, other) {
  const found = {};
  for (const channel of ["x", "y"]) {
    const [low, high, ticks] = ["low", "high", "ticks"].map((what) => `${channel}_${what}`);
    const holds = (a, b) => a[low] <= b[low] && a[high] >= b[high];
    const both = {
      [low]: Math.min(one[low], other[low]),
      [high]: Math.max(one[high], other[high]),
      [ticks]: [...new Set([...one[ticks], ...other[ticks]])],
    };
    const { [low]: least, [high]: most, [ticks]: marks } = holds(one, other) ? one : holds(other, one) ? other : both;
    Object.assign(found, { [low]: least, [high]: most, [ticks]: marks });
  }
  return found;
}

/** The frame of a chart with its heading; the chart itself is an image to those who do not see it. */
export function chartFrame(titleKey) {
  const frame = h("div", { class: "chart", role: "img", "aria-label": t(titleKey) });
  return { frame, section: h("section", { class: "picture" }, h("h2", { "data-t": titleKey }, t(titleKey)), frame) };
}
