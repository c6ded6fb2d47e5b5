// The small note at the pointer or at the focus: what a term means, and what a point of a chart is.

import { one, put } from "./dom.js";

/** Put the note where there is room: its lower left corner at a place of the window. */
export function placeTip(x, y) {
  const tip = one("#tip");
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(x, innerWidth - width - 8))}px`;
  tip.style.top = `${y - height < 8 ? y + 36 : y - height}px`;
}

export function hideTip() {
  one("#tip").hidden = true;
}

function explain(event) {
  const term = event.target.closest?.("[data-hover]");
  if (!term) {
    if (!event.target.closest?.(".chart")) hideTip();
    return;
  }
  const { left, top } = term.getBoundingClientRect();
  put(one("#tip"), term.dataset.hover);
  one("#tip").hidden = false;
  placeTip(left, top - 6);
}

export function startTips() {
  for (const kind of ["pointerover", "focusin"]) document.addEventListener(kind, explain);
  document.addEventListener("focusout", hideTip);
  addEventListener("scroll", hideTip, { passive: true });
}
