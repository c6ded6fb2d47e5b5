// The slice as a mesh: the server draws it, classes give it the page's colours.

import { h, put } from "./dom.js";
import { t } from "./i18n.js";

/** A picture that the server drew, read as an image and nothing else: no scripts, no listeners, no links, no styles. */
export function drawing(text) {
  const read = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (read.nodeName !== "svg") return null;
  for (const element of read.querySelectorAll("script, foreignObject, a, style, image")) element.remove();
  for (const element of [read, ...read.querySelectorAll("*")]) {
    for (const { name } of [...element.attributes]) if (/^on|href$/i.test(name)) element.removeAttribute(name);
  }
  read.removeAttribute("style");
  read.setAttribute("class", "mesh");
  return document.importNode(read, true);
}

export function drawMesh(place, mesh) {
  place.hidden = !mesh;
  if (!mesh || place.shown === mesh.svg) return;
  place.shown = mesh.svg; // it is long, and seldom changes
  put(
    place,
    h("h2", {}, t("mesh")),
    h("p", { class: "lead" }, mesh.sentence),
    h("div", { class: "mesh-frame" }, drawing(mesh.svg)),
  );
}
