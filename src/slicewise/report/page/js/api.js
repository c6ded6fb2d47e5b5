// Asking the server. One request for the plan is under way at a time: while a slider moves, the newest question waits
// for the answer before it, so that every answer is drawn; a change of another kind ends what is stale.

import { t } from "./i18n.js";

const KEPT_ANSWERS = 80;
const answers = new Map();
let underWay = null; // the request that somebody waits for

/** A refusal of the server, or that there is none: its message is one line. */
export class Refusal extends Error {}

async function refusal(answer) {
  const text = await answer.text();
  try {
    const { detail } = JSON.parse(text);
    return new Refusal(typeof detail === "string" ? detail : text);
  } catch {
    return new Refusal(`${answer.status} ${answer.statusText}`);
  }
}

/** The answer of one question: words in the address, or posted where a config was pasted. */
export async function ask(path, { words, config }, { signal, kind = "json" } = {}) {
  let answer;
  try {
    answer = config ? await posted(path, words, config, signal) : await fetch(`${path}?${words}`, { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(t("no_server"));
  }
  if (!answer.ok) throw await refusal(answer);
  return kind === "blob" ? answer.blob() : answer.json();
}

function posted(path, words, config, signal) {
  const body = { config };
  for (const name of new Set(words.keys())) {
    const values = words.getAll(name);
    body[name] = values.length > 1 ? values : values[0];
  }
  if (body.book !== undefined) body.book = body.book === "true";
  const headers = { "content-type": "application/json" };
  return fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}

export async function list(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw await refusal(answer);
  return answer.json();
}

const keyOf = ({ words, config }) => `${words}#${config ? JSON.stringify(config) : ""}`;

/** The whole plan, from memory where it was asked before. */
export async function explore(question, signal) {
  const key = keyOf(question);
  const known = answers.get(key);
  if (known) return known;
  const found = await ask("/api/explore", question, { signal });
  answers.set(key, found);
  if (answers.size > KEPT_ANSWERS) answers.delete(answers.keys().next().value);
  return found;
}

/** Ask ahead, one after the other, until it is called off: answers are then known when somebody asks for them. */
export function askAhead(questions) {
  const control = new AbortController();
  (async () => {
    for (const question of questions) {
      while (underWay && !control.signal.aborted) await underWay.catch(() => null);
      if (control.signal.aborted) return;
      await explore(question, control.signal).catch(() => null);
    }
  })();
  return () => control.abort();
}

/** Calls `answered` or `refused` for the newest question, and for those before it only while a slider moves; calls
 * `settled` when no question is left. */
export function follower({ current, answered, refused, settled }) {
  let running = null;
  let waiting = null;

  async function run(question) {
    const control = new AbortController();
    running = { control, key: keyOf(question.asked) };
    try {
      underWay = explore(question.asked, control.signal);
      const found = await underWay;
      underWay = null;
      await answered(found, question);
    } catch (error) {
      underWay = null;
      if (error.name !== "AbortError") await refused(error, question);
    }
    running = null;
    if (!waiting) return settled();
    const next = waiting;
    waiting = null;
    run(next);
  }

  return function follow(how) {
    const question = { asked: current(), ...how };
    if (!running) return void run(question);
    waiting = question;
    if (!how.dragging && running.key !== keyOf(question.asked)) running.control.abort();
  };
}
