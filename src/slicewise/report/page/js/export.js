// What can be taken away: pictures as they look, columns, the whole answer, a report, and the command line.

import { ask } from "./api.js";
import { announce, h, one, put, s } from "./dom.js";
import { currentLanguage, t } from "./i18n.js";
import { asked } from "./state.js";

const PNG_SCALE = 2; // pixels of the file per pixel of the page
const MARGIN = 16;
const HEAD = 34;
const SHAPE = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline"];

let current = () => null;

/** `shown` gives the view that is exported. */
export function startExport(shown) {
  current = shown;
  const button = one("#export");
  const menu = one("#exports");
  const set = (isOpen) => {
    menu.hidden = !isOpen;
    button.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) put(menu, contents());
    if (isOpen) menu.querySelector("button")?.focus();
  };
  button.addEventListener("click", () => set(menu.hidden));
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    set(false);
    button.focus();
  });
  menu.addEventListener("focusout", ({ relatedTarget: next }) => {
    if (next && next !== button && !menu.contains(next)) set(false);
  });
  document.addEventListener("pointerdown", (event) => {
    if (!menu.hidden && !menu.contains(event.target) && event.target !== button) set(false);
  });
}

const nameOf = (what, suffix) => `slicewise-${what}.${suffix}`;

function save(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const saveText = (text, kind, name) => save(new Blob([text], { type: kind }), name);

function contents() {
  const view = current();
  const pictures = ["frontier", "breakdown", "memory", "mesh"].map((name) => [
    h("dt", {}, t(name)),
    h("dd", {}, button("PNG", `png-${name}`, () => png(name)), button("SVG", `svg-${name}`, () => svg(name))),
  ]);
  const command = view?.data?.command ?? "";
  return [
    h(
      "dl",
      {},
      pictures,
      h("dt", {}, t("export_columns")),
      h("dd", {}, button("CSV", "csv", csv)),
      h("dt", {}, t("export_answer")),
      h("dd", {}, button("JSON", "json", json)),
      h("dt", {}, t("export_report")),
      h("dd", {}, button("HTML", "html", report)),
    ),
    h("div", { class: "command" }, h("p", {}, t("export_command")), h("code", { id: "command" }, command.split(/ (?=--)/).map((part, i) => [i ? " " : "", h("span", {}, part)])), button(t("copy"), "command-copy", () => copy(command))),
  ];
}

const button = (text, id, onclick) => h("button", { type: "button", class: "quiet-button export-button", id: `export-${id}`, onclick: () => onclick().catch((fault) => announce(fault.message)) }, text);

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    announce(t("copied"));
  } catch {
    announce(t("copy_failed")); // the browser did not allow it; the text stands to be selected
  }
}

/** A drawing of the page with its colours put into it, since a file has no style sheet. */
function inlined(drawing) {
  const copyOf = drawing.cloneNode(true);
  const from = [drawing, ...drawing.querySelectorAll("*")];
  const to = [copyOf, ...copyOf.querySelectorAll("*")];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of SHAPE) to[i].setAttribute(name, style.getPropertyValue(name));
    to[i].removeAttribute("class");
  });
  return copyOf;
}

/** The drawing of one picture, its own size, and its heading. */
async function drawingOf(name) {
  const view = current();
  if (name === "frontier" || name === "breakdown") {
    const text = await view[name].svg();
    if (!text) throw new Error(t("no_picture"));
    return new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  }
  if (name === "memory") return memoryDrawing(view);
  const mesh = view.places.mesh.querySelector("svg.mesh");
  if (!mesh) throw new Error(t("no_picture"));
  return inlined(mesh);
}

function memoryDrawing(view) {
  const { memory } = view.data;
  const shown = view.places.memory.querySelector("svg.bar");
  const bar = inlined(shown);
  const parts = [...view.places.memory.querySelectorAll(".parts li")];
  const row = 22;
  const drawing = s("svg", { width: 640, height: 44 + parts.length * row, viewBox: `0 0 640 ${44 + parts.length * row}` });
  for (const [key, value] of Object.entries({ x: 0, y: 0, width: 640, height: 30 })) bar.setAttribute(key, value);
  drawing.append(bar);
  parts.forEach((part, i) => {
    const y = 56 + i * row;
    const fill = getComputedStyle(part.querySelector(".swatch")).backgroundColor;
    const colour = getComputedStyle(part).color;
    drawing.append(s("rect", { x: 0, y: y - 11, width: 12, height: 12, fill }), s("text", { x: 22, y, fill: colour }, `${part.querySelector(".label").textContent}  ${memory.segments[i].number.text}  ${memory.segments[i].share_text}`));
  });
  return drawing;
}

const px = (drawing, name, i) => parseFloat(drawing.getAttribute(name)) || drawing.viewBox?.baseVal?.[name] || Number(drawing.getAttribute("viewBox")?.split(/[ ,]+/)[i]) || 400;

/** A picture as it looks, with its heading and what it is of. */
async function framed(name) {
  const view = current();
  await view.dropGhosts();
  const drawing = await drawingOf(name);
  const [width, height] = [px(drawing, "width", 2), px(drawing, "height", 3)];
  const style = getComputedStyle(document.body);
  const quiet = getComputedStyle(document.documentElement).getPropertyValue("--quiet").trim();
  drawing.setAttribute("x", MARGIN);
  drawing.setAttribute("y", MARGIN + HEAD + 8);
  drawing.setAttribute("width", width);
  drawing.setAttribute("height", height);
  const whole = [width + 2 * MARGIN, height + 2 * MARGIN + HEAD + 8];
  return s(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", width: whole[0], height: whole[1], viewBox: `0 0 ${whole[0]} ${whole[1]}`, "font-family": style.fontFamily, "font-size": 12, lang: currentLanguage() },
    s("rect", { width: whole[0], height: whole[1], fill: style.backgroundColor }),
    s("text", { x: MARGIN, y: MARGIN + 14, fill: style.color, "font-size": 15, "font-weight": 600 }, t(name)),
    s("text", { x: MARGIN, y: MARGIN + 32, fill: quiet }, view.data.title ?? ""),
    drawing,
  );
}

const textOf = (drawing) => new XMLSerializer().serializeToString(drawing);

async function svg(name) {
  saveText(textOf(await framed(name)), "image/svg+xml", nameOf(name, "svg"));
}

async function png(name) {
  const drawing = await framed(name);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(textOf(drawing))}`;
  await image.decode();
  const canvas = h("canvas", { width: image.width * PNG_SCALE, height: image.height * PNG_SCALE });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  save(await new Promise((resolve) => canvas.toBlob(resolve, "image/png")), nameOf(name, "png"));
}

/** The curves of every slice, and the terms of the step on the chosen one, a row for each batch. */
async function csv() {
  const { frontier, breakdown } = current().data;
  if (!frontier) throw new Error(t("no_picture"));
  const terms = Object.keys(breakdown?.columns ?? {}).filter((name) => !["batch", "step_s"].includes(name));
  const lines = [["slice", "batch", "step_s", "tokens_per_s_per_chip", ...terms]];
  for (const curve of frontier.slices) {
    const isBroken = breakdown?.slice === curve.slice;
    curve.batch.forEach((batch, i) => {
      const row = isBroken ? breakdown.columns.batch.indexOf(batch) : -1;
      lines.push([curve.slice, batch, curve.step_s[i], curve.tokens_per_s_per_chip[i], ...terms.map((name) => (row < 0 ? "" : breakdown.columns[name][row]))]);
    });
  }
  saveText(lines.map((line) => line.join(",")).join("\n") + "\n", "text/csv", nameOf("frontier", "csv"));
}

async function json() {
  const kept = JSON.stringify(current().data, (name, value) => (name === "spec" ? undefined : value), 2);
  saveText(kept + "\n", "application/json", nameOf("plan", "json"));
}

async function report() {
  save(await ask("/api/report", asked(), { kind: "blob" }), nameOf("report", "html"));
}
