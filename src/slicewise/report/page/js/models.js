// The model: a search over the catalog, or a config.json pasted in its place.

import { list } from "./api.js";
import { h, put } from "./dom.js";
import { t } from "./i18n.js";
import { change, paste, pastedConfig, word } from "./state.js";

const MOST_FOUND = 60;

let catalog = null;

async function models() {
  catalog ??= await list("/api/models");
  return catalog;
}

/** Models whose name or alias holds every word that was typed; those that begin with it come first. */
function matching(found, typed) {
  const parts = typed.toLowerCase().split(/[\s/]+/).filter(Boolean);
  const holds = (model) => {
    const names = [model.model, ...(model.aliases ?? [])].join(" ").toLowerCase();
    return parts.every((part) => names.includes(part));
  };
  const is = (model) => [model.model, ...(model.aliases ?? [])].some((name) => name.toLowerCase() === typed.toLowerCase());
  const begins = (model) => Boolean(parts.length) && model.model.startsWith(parts[0]);
  const kept = found.filter(holds);
  const first = [is, begins, () => true];
  return [...new Set(first.flatMap((rule) => kept.filter(rule)))].slice(0, MOST_FOUND);
}

export function modelField() {
  const input = h("input", {
    id: "model", type: "text", role: "combobox", "aria-expanded": "false", "aria-controls": "found", "aria-autocomplete": "list", spellcheck: "false", "data-t-hint": "model_hint",
  });
  const options = h("ul", { id: "found", class: "found", role: "listbox", "aria-label": t("model"), hidden: true });
  const field = h(
    "div",
    { class: "field" },
    h("label", { for: "model", "data-t": "model" }, t("model")),
    h("div", { class: "search" }, input, options),
    h("div", { class: "below" }, pasteOpener()),
  );
  const pasted = pasteField();
  listen(input, options);
  return { elements: [field, pasted], sync: () => sync(input) };
}

function sync(input) {
  if (document.activeElement === input) return;
  input.value = current();
}

const current = () => (pastedConfig() ? t("pasted") : (word("model") ?? ""));

function listen(input, options) {
  let found = [];
  let at = -1;

  const close = () => {
    options.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    at = -1;
  };
  const choose = (model) => {
    close();
    input.value = model;
    if (model !== word("model")) change({ model, batch: null });
  };
  const mark = () => {
    [...options.children].forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
    if (at < 0) return;
    input.setAttribute("aria-activedescendant", options.children[at].id);
    options.children[at].scrollIntoView({ block: "nearest" });
  };
  const show = async (typed) => {
    found = matching(await models(), typed);
    put(
      options,
      found.map((model, i) =>
        h("li", { id: `found-${i}`, role: "option", "aria-selected": "false", onmousedown: (event) => { event.preventDefault(); choose(model.model); } }, model.model),
      ),
    );
    options.hidden = !found.length;
    input.setAttribute("aria-expanded", String(found.length > 0));
    at = -1;
  };

  input.addEventListener("focus", () => input.select());
  input.addEventListener("click", () => show(""));
  input.addEventListener("input", () => show(input.value));
  input.addEventListener("blur", () => {
    close();
    sync(input);
  });
  input.addEventListener("keydown", async (event) => {
    if (event.key === "Escape" && !options.hidden) {
      event.stopPropagation();
      close();
    }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (options.hidden) await show("");
      else at = event.key === "ArrowDown" ? Math.min(at + 1, found.length - 1) : Math.max(at - 1, 0);
      mark();
    }
    if (event.key === "Enter") {
      event.preventDefault();
      // A name that is not in the catalog is asked for all the same: the server's refusal names the nearest ones.
      const typed = input.value.trim();
      if (at < 0 && (!typed || typed === current())) {
        input.value = current();
        return close();
      }
      const best = at >= 0 ? found[at] : matching(await models(), typed)[0];
      choose(best?.model ?? typed);
    }
  });
}

const place = () => document.querySelector("#paste-field");

function pasteOpener() {
  return h(
    "button",
    { type: "button", class: "quiet-button", id: "paste-open", "aria-controls": "paste-field", "aria-expanded": "false", "data-t": "paste_open", onclick: (event) => {
      const isShut = place().hidden;
      place().hidden = !isShut;
      event.currentTarget.setAttribute("aria-expanded", String(isShut));
      if (isShut) place().querySelector("textarea").focus();
    } },
    t("paste_open"),
  );
}

function pasteField() {
  const text = h("textarea", { id: "paste", spellcheck: "false", class: "wide", "data-t-hint": "paste_hint", "data-t-label": "paste_label", "aria-label": t("paste_label") });
  const error = h("p", { class: "field-error", role: "alert", id: "paste-error", hidden: true });
  const read = () => {
    error.hidden = true;
    if (!text.value.trim()) return refuse(t("paste_empty"));
    let config;
    try {
      config = JSON.parse(text.value);
    } catch (fault) {
      return refuse(t("paste_broken", { why: fault.message }));
    }
    if (typeof config !== "object" || config === null || Array.isArray(config)) return refuse(t("paste_no_object"));
    paste(config);
  };
  const refuse = (why) => {
    error.textContent = why;
    error.hidden = false;
  };
  return h("div", { class: "field", id: "paste-field", hidden: true }, text, error, h("div", { class: "wide" }, h("button", { type: "button", class: "main-button", id: "paste-read", "data-t": "paste_read", onclick: read }, t("paste_read"))));
}
