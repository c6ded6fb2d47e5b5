// The words of the question: they live in the address, so that a plan is shared as a link.
// A pasted config is kept in the part after '#', which browsers do not send.

export const WORDS = [
  "model", "slice", "chip", "weights", "kv", "compute", "isl", "osl", "context", "batch", "tpot", "ttft", "rate",
  "objective", "price", "network", "prefill_slice", "params", "hbm", "memory_fraction", "mfu", "ici", "split",
  "kv_split", "view", "book", "tp", "pp", "dp", "ep", "engine", "reserve",
];
export const START = "model=llama-3-70b&chip=v5e&weights=int8&kv=int8";

const listeners = [];
let words = new URLSearchParams();
let config = null;
let extra = new URLSearchParams(); // what is no word of the question: the pinned plan, the language, the tour

/** Call `listener({dragging})` after each change. */
export const onChange = (listener) => listeners.push(listener);

const tell = (how) => listeners.forEach((listener) => listener(how));

/** Only words that the server knows, without empty ones, in one order, so that the same question has one address. */
function cleaned(given) {
  const kept = new URLSearchParams();
  for (const name of WORDS) {
    for (const value of given.getAll(name)) if (value !== "") kept.append(name, value);
  }
  return kept;
}

export function readAddress() {
  const given = new URLSearchParams(location.search);
  config = hashed("config");
  words = cleaned(given);
  if (![...words.keys()].length && !config) words = new URLSearchParams(START);
  if (config) words.delete("model");
  extra = new URLSearchParams([...given].filter(([name]) => !WORDS.includes(name)));
  const keptConfig = hashed("kept");
  if (keptConfig && extra.has("kept")) extra.set("kept", `${extra.get("kept")}#${JSON.stringify(keptConfig)}`);
}

/** A config of the part after '#': the one that was pasted, or that of the kept plan. */
function hashed(name) {
  const packed = new URLSearchParams(location.hash.replace(/^#/, "")).get(name);
  if (!packed) return null;
  try {
    return JSON.parse(packed);
  } catch {
    return null; // a link that was cut short: the page starts without it
  }
}

/** The address of what is shown. While a slider moves it is not written: browsers limit how often. */
export function writeAddress({ push = false } = {}) {
  const [keptWords, ...keptConfig] = (extra.get("kept") ?? "").split("#");
  const sent = [...extra].map(([name, value]) => [name, name === "kept" ? keptWords : value]);
  const query = new URLSearchParams([...words, ...sent]);
  const readable = query.toString().replaceAll("%3A", ":");
  const hash = new URLSearchParams();
  if (config) hash.set("config", JSON.stringify(config));
  if (keptConfig.length) hash.set("kept", keptConfig.join("#"));
  const address = `${location.pathname}?${readable}${hash.size ? `#${hash}` : ""}`;
  if (address === location.pathname + location.search + location.hash) return;
  history[push ? "pushState" : "replaceState"](null, "", address);
}

export const word = (name) => words.get(name);
export const allOf = (name) => words.getAll(name);
export const pastedConfig = () => config;
export const asked = () => ({ words: new URLSearchParams(words), config });

/** The question as it would be with another value of a word. */
export function askedWith(name, value) {
  const other = new URLSearchParams(words);
  other.set(name, String(value));
  return { words: cleaned(other), config };
}

/** Change some words; null or "" leaves a word out. `{dragging: true}` while a slider moves. */
export function change(some, how = {}) {
  for (const [name, value] of Object.entries(some)) {
    words.delete(name);
    const values = Array.isArray(value) ? value : [value];
    for (const each of values) if (each !== null && each !== undefined && each !== "") words.append(name, String(each));
  }
  words = cleaned(words);
  if (some.model) config = null;
  done(how);
}

/** Put other words in the place of all. */
export function replace(some, newConfig = null) {
  words = new URLSearchParams();
  config = newConfig;
  change(some);
}

/** A config in the place of the model. */
export function paste(given) {
  config = given;
  words.delete("model");
  done({});
}

function done(how) {
  if (!how.dragging) writeAddress({ push: true });
  tell(how);
}

export const extraWord = (name) => extra.get(name);
export function setExtra(name, value) {
  if (value === null) extra.delete(name);
  else extra.set(name, value);
  writeAddress({ push: true });
}

addEventListener("popstate", () => {
  readAddress();
  tell({ moved: true });
});
