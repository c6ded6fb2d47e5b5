// Numbers as the server prints them: figures, the unit in a lighter tone, the exact value on hover.
// A number with a derivation is a door: a button that opens it.

import { h } from "./dom.js";

let open = () => {};

/** What opens a derivation: called with the number, the doors of its plan, and the button to return to. */
export const setOpener = (opener) => {
  open = opener;
};

/** The element of a number N of the contract; `plan` has the doors and the question that it belongs to. */
export function numberOf(number, plan) {
  if (!number) return h("span", { class: "num none", "aria-label": "none" }, "–");
  const isDoor = Boolean(number.door && plan?.doors?.[number.door]);
  const kind = `num${number.resource ? ` ink-${number.resource}` : ""}`;
  if (!isDoor) return h("span", { class: kind, title: number.exact }, ...parts(number));
  return h(
    "button",
    {
      class: `${kind} door`,
      type: "button",
      title: number.exact,
      "data-name": number.name,
      "aria-haspopup": "dialog",
      onclick: (event) => open(number, plan, event.currentTarget),
    },
    ...parts(number),
  );
}

/** The ends of a range; a unit that both have is said once. */
export function fromTo(low, high, plan) {
  return [numberOf(low.suffix === high.suffix ? { ...low, suffix: "" } : low, plan), " – ", numberOf(high, plan)];
}

function parts(number) {
  const { figure, suffix } = number;
  if (figure === undefined) return [h("span", { class: "figure" }, number.text)];
  if (!suffix) return [h("span", { class: "figure" }, figure)];
  const before = number.text.startsWith(suffix); // a currency stands before its figure
  const unit = h("span", { class: "unit" }, before ? suffix : `\u00a0${suffix}`);
  const value = h("span", { class: "figure" }, figure);
  return before ? [unit, value] : [value, unit];
}
