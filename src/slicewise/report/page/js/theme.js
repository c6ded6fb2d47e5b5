// Light and dark: the system's choice until somebody makes another one.

import { one } from "./dom.js";

const KEPT = "slicewise-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = [];

export const onTheme = (listener) => listeners.push(listener);
export const currentTheme = () => document.documentElement.dataset.theme || (system.matches ? "dark" : "light");

function tell() {
  one("#theme").setAttribute("aria-pressed", String(currentTheme() === "dark"));
  listeners.forEach((listener) => listener(currentTheme()));
}

export function startTheme() {
  one("#theme").addEventListener("click", () => {
    const next = currentTheme() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem(KEPT, next);
    } catch {
      // it holds for this visit, then
    }
    tell();
  });
  system.addEventListener("change", tell);
  tell();
}
