// The sliders. The server says where each may stop; a slider runs over those stops, so that it has the scale of the
// book. Each has a field beside it for a number of one's own, and a way back to what the planner chooses.

import { askAhead } from "./api.js";
import { h, say } from "./dom.js";
import { t } from "./i18n.js";
import { askedWith, change, word } from "./state.js";

/** What happens while a slider moves: the page keeps ghosts and measures. */
export const drag = { started: () => {}, ended: () => {} };

const MOST_AHEAD = 24;
const STILL_MS = 700; // after the last key, a drag by keyboard has ended

export class Slider {
  constructor(name) {
    this.name = name;
    this.stops = [];
    this.frame = 0;
    this.isHeld = false;
    this.texts = [];
    this.latest = null; // what the server said while the hand led
    this.range = h("input", { type: "range", id: `slider-${name}`, min: 0, max: 1, step: 1, value: 0 });
    this.text = h("input", { type: "text", inputmode: "numeric", id: `value-${name}`, "data-t-label": `${name}_exactly`, "aria-label": t(`${name}_exactly`) });
    this.aside = h("span", { class: "aside" });
    this.free = h("button", { type: "button", class: "quiet-button free-again", "data-t": "free", "data-t-title": "free_hover", title: t("free_hover"), onclick: () => change({ [name]: null }) }, t("free"));
    this.element = h(
      "div",
      { class: "slider" },
      h("label", { for: `slider-${name}`, "data-t": name, "data-t-title": `${name}_hover`, title: t(`${name}_hover`) }, t(name)),
      h("span", { class: "aside" }, this.aside, " ", this.free),
      this.text,
      this.range,
    );
    this.listen();
  }

  listen() {
    this.range.addEventListener("input", (event) => this.moved(event));
    this.range.addEventListener("pointerdown", () => this.hold());
    for (const kind of ["pointerup", "pointercancel"]) this.range.addEventListener(kind, () => this.letGo());
    for (const kind of ["pointerenter", "focus"]) this.range.addEventListener(kind, () => this.lookAhead());
    for (const kind of ["pointerleave", "blur"]) this.range.addEventListener(kind, () => this.leave());
    this.range.addEventListener("change", () => this.release());
    this.text.addEventListener("change", () => change({ [this.name]: this.text.value.replaceAll(",", "").trim() }));
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.text.blur();
    });
  }

  /** While the slider is held, its stops stay as they were: the server's list may change below the hand. */
  hold() {
    clearTimeout(this.still);
    if (this.isHeld) return;
    this.isHeld = true;
    drag.started();
  }

  /** Moves between two frames of the screen become one. */
  moved(event) {
    this.hold();
    this.callOff?.(); // the hand asks for itself now
    this.eventTime = event.timeStamp;
    this.fill();
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      change({ [this.name]: this.stop() }, { dragging: true, eventTime: this.eventTime });
    });
  }

  /** Who puts a hand on a slider will move it: ask for the stops around, the nearest first. */
  lookAhead() {
    this.leave();
    const at = this.range.valueAsNumber;
    const near = this.stops.flatMap((_, i) => [this.stops[at + i], this.stops[at - i]]).slice(2, 2 + MOST_AHEAD);
    const wanted = near.filter((stop) => stop !== undefined);
    this.callOff = askAhead(wanted.map((stop) => askedWith(this.name, stop)));
  }

  leave() {
    if (!this.isHeld) this.callOff?.();
  }

  stop() {
    return this.stops[this.range.valueAsNumber];
  }

  release() {
    cancelAnimationFrame(this.frame); // what is asked now is where it stands
    this.frame = 0;
    this.latest = null;
    this.letGo();
    change({ [this.name]: this.stop() });
  }

  /** The hold ends a while after the last move; then the slider shows what the server said last. */
  letGo() {
    clearTimeout(this.still);
    this.still = setTimeout(() => {
      this.isHeld = false;
      if (this.latest) this.sync(this.latest.control);
      drag.ended();
    }, STILL_MS);
  }

  /** How far the thumb has come, and its value: as digits in the field, as the server writes it for those who listen. */
  fill() {
    const { valueAsNumber: at, max } = this.range;
    this.range.style.setProperty("--at", `${(100 * at) / Math.max(1, Number(max))}%`); // layout alone
    if (document.activeElement !== this.text) this.text.value = String(this.stop() ?? "");
    this.range.setAttribute("aria-valuetext", this.texts[at] ?? "");
  }

  /** Take over what the server says of it. */
  sync(control) {
    if (control?.max) say(this.aside, t("at_most", { max: control.max_text }));
    this.latest = { control };
    if (this.isHeld) return; // the hand leads
    const isShown = Boolean(control?.stops?.length);
    this.element.classList.toggle("is-off", !isShown);
    this.range.disabled = !isShown;
    if (!isShown) return;
    this.stops = control.stops;
    this.texts = control.texts ?? control.stops.map(String);
    this.element.classList.toggle("is-set", word(this.name) !== null);
    if (!control.max) say(this.aside, "");
    this.range.max = String(control.stops.length - 1);
    this.range.value = String(control.index ?? 0);
    this.fill();
  }
}
