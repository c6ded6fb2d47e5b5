// The page: the words of the address become a question, the answer fills the view.

import { explore, follower } from "./api.js";
import { drawKept, startCompare, syncCompare } from "./compare.js";
import { buildControls, syncControls, syncWords } from "./controls.js";
import { announce, one, put, say } from "./dom.js";
import { copy, startExport } from "./export.js";
import { currentLanguage, otherLanguage, setLanguage, startLanguage, t, told } from "./i18n.js";
import { measure, painted, watch } from "./measure.js";
import { setOpener } from "./numbers.js";
import { closeSheet, followPlan, openSheet } from "./sheet.js";
import { drag } from "./sliders.js";
import { asked, onChange, pastedConfig, readAddress, START, writeAddress } from "./state.js";
import { startTheme, onTheme } from "./theme.js";
import { startTips } from "./tip.js";
import { startTour, syncTour } from "./tour.js";
import { View } from "./view.js";

let view;

const SAID_AFTER_MS = 600; // while a slider moves, only where it comes to rest is said

async function answered(data, question) {
  const hadFocus = one("#answer").contains(document.activeElement);
  one("#error").hidden = true;
  one("#paste-error").hidden = true;
  one("#plans").classList.remove("stale");
  say(one("#title"), told(data.title ?? ""));
  document.title = `${data.title ?? "slicewise"} – slicewise`;
  await view.show(data, question.asked);
  measure(question);
  if (question.dragging) await painted(); // what stands below the charts comes a frame later
  syncControls(data);
  view.showRest();
  if (hadFocus && isLost(document.activeElement)) one("#answer").focus({ preventScroll: true });
  if (!question.dragging) followPlan({ doors: data.doors ?? {}, question: question.asked, data });
}

const isLost = (element) => element === document.body || !element.checkVisibility();

async function refused(error) {
  const box = one("#error");
  say(box, error.message);
  box.hidden = false;
  one("#plans").classList.add("stale");
  const field = one("#paste-error");
  if (pastedConfig() && field) {
    say(field, error.message);
    field.hidden = false;
  }
  if (!view.data) await offerStart();
}

/** An address that was refused at once has no answer to fill the controls: those of the start are offered. */
async function offerStart() {
  const data = await explore({ words: new URLSearchParams(START), config: null }).catch(() => null);
  if (data && !view.data) syncControls({ controls: data.controls });
}

/** For styles, and for who waits for an answer: whether the last question is answered. */
function settled() {
  document.documentElement.dataset.ready = "true";
  clearTimeout(settled.timer);
  settled.timer = setTimeout(sayAnswer, SAID_AFTER_MS);
}

/** Tell those who listen what the answer is now; a refusal is said by its own box. */
function sayAnswer() {
  if (one("#error").hidden) say(one("#said"), one(".answer p", view.element)?.textContent ?? "");
}

function listen(follow) {
  onChange((how) => {
    if (!how.dragging) document.documentElement.dataset.ready = "false";
    if (!how.dragging) syncWords();
    follow(how);
    if (how.moved) {
      syncTour();
      syncCompare();
    }
  });
  drag.started = () => view.keepGhosts();
  drag.ended = () => view.dropGhosts();
  onTheme(async () => {
    await view.again(asked());
    await drawKept();
  });
  one("#share").addEventListener("click", () => {
    writeAddress();
    copy(location.href);
  });
  one("#language").addEventListener("click", async () => {
    await setLanguage(otherLanguage());
    await spokenAnew();
  });
  one(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the part after '#' may hold a pasted config
    one("#answer").focus();
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && closeSheet()) event.preventDefault();
  });
}

/** The button of languages names the other one, in its own words. */
function nameLanguage() {
  const button = one("#language");
  button.lang = otherLanguage();
  say(button, currentLanguage() === "en" ? "한국어" : "English");
}

/** Write all that stands on the page again, in the language that was chosen. */
async function spokenAnew() {
  nameLanguage();
  syncWords();
  const { data } = view;
  if (!data) return;
  syncControls(data);
  const next = new View();
  view.element.replaceWith(next.element);
  view = next;
  await view.fill(data, asked());
  await syncTour();
  await drawKept();
}

async function start() {
  readAddress();
  await startLanguage(new URLSearchParams(location.search));
  startTheme();
  setOpener(openSheet);
  view = new View();
  put(one("#plans"), view.element);
  startExport(() => view);
  startTour();
  startCompare(() => view);
  watch();
  startTips();
  const follow = follower({ current: asked, answered, refused, settled });
  listen(follow);
  const built = buildControls();
  nameLanguage();
  syncWords();
  writeAddress();
  follow({});
  await Promise.all([built, syncTour(), syncCompare()]);
}

start().catch((fault) => announce(fault.message || t("failed")));
