// Asks POST /translate when the user pauses, and shows the answer and where the model looked.

const PAUSE_MS = 400;

const EXAMPLES = {
  cs: "Pes hledá míč.",
  de: "Der Hund sucht den Ball.",
  en: "The dog is looking for the ball.",
  es: "El perro busca la pelota.",
  fr: "Le chien cherche la balle.",
  it: "Il cane cerca la palla.",
  nl: "De hond zoekt de bal.",
  pl: "Pies szuka piłki.",
  pt: "O cão procura a bola.",
  ro: "Câinele caută mingea.",
  sv: "Hunden letar efter bollen.",
};

const ids = ["source", "translation", "example", "facts", "status", "attention", "sentences", "copy", "more", "others"];
const [source, translation, example, facts, notice, attention, sentences, copy, more, others] = ids.map(at);
const locked = at("locked"), key = at("key"); // shown where the server wants a key, which stays in this page
const targets = at("targets"); // languages, shown where there are several
const chosen = at("file");

let aligns = true;
let context = false; // true for a model that reads previous sentences: all lines are a document
let target = "und"; // the only target language; if nobody knows it, the server takes any
let timer = 0; // of the next request
let asking = null; // AbortController of the request that is on its way

function say(text, isBad = false) {
  notice.textContent = text;
  notice.classList.toggle("bad", isBad);
}

function askIn(milliseconds) {
  clearTimeout(timer);
  timer = setTimeout(ask, milliseconds);
}

const keyHeader = () => (key.value ? { Authorization: `Bearer ${key.value}` } : {});

function post(text, options, signal) {
  return fetch("translate", {
    method: "POST",
    headers: { "Content-Type": "application/json", ...keyHeader() },
    body: JSON.stringify({ text, context, ...(targets.value && { to: targets.value }), ...options }),
    signal,
  });
}

// Lists the next best translations of each line: as many as the server allows, which is its beam size.
async function askOthers(count) {
  const response = await post(texts(), { n_best: count }, asking.signal);
  const answer = await response.json();
  const most = Number(answer.error?.match(/^n_best: .* allows, (\d+)$/)?.[1]);
  if (most > 1) return askOthers(most);
  if (!response.ok) return say(answer.error, true);
  const found = answer.results.flatMap((result) => result.translations.slice(1));
  others.replaceChildren(...found.map((each) => element("li", { dir: "auto" }, each.text)));
  more.hidden = true;
}

// A translation and its confidence, where the server tells it, with the source again if some of its words are doubtful.
function translated({ source: text, translations: [{ text: best, confidence }] }) {
  const written = element("p", { dir: "auto" }, ...withDoubts(best, [...(confidence?.words ?? [])]));
  if (!confidence) return [written];
  const sourceLine = element("p", {}, "Source: ", element("bdi", {}, ...withDoubts(text, [...confidence.source_words])));
  sourceLine.hidden = !confidence.source_words.some(isDoubtful);
  const note = confidenceNote(confidence);
  note.append(sourceLine);
  return [written, note];
}

const texts = () => source.value.split("\n").filter((line) => line.trim());

async function ask() {
  clearTimeout(timer);
  asking?.abort(); // the server drops what nobody waits for
  if (!texts().length) {
    translation.removeAttribute("aria-busy");
    show([]);
    say("");
    return;
  }
  const mine = (asking = new AbortController());
  translation.setAttribute("aria-busy", "true");
  const began = performance.now();
  try {
    const response = await post(texts(), { alignment: aligns }, mine.signal);
    const answer = await response.json();
    if (mine !== asking) return;
    if (response.ok) {
      show(answer.results, performance.now() - began);
      say(answer.warnings.join(" "));
    } else {
      refuse(response, answer.error);
    }
  } catch (error) {
    if (mine !== asking || error.name === "AbortError") return;
    show([]); // the old answer is not one to this text
    say("The server does not answer.", true);
  }
  translation.removeAttribute("aria-busy");
}

// Has the chosen document translated, and offers the translation under the same name.
async function askFile() {
  const [file] = chosen.files;
  if (!file) return;
  say(`Translating ${file.name} …`);
  const body = new FormData();
  body.append("file", file);
  body.append("target", targets.value || target);
  const response = await fetch("translate_file", { method: "POST", headers: keyHeader(), body });
  const answer = await response.json();
  locked.hidden &&= response.status !== 401;
  if (!response.ok) return say(`Not translated: ${answer.error}.`, true);
  say("");
  const href = `download_file/${answer.translatedFileUrl.split("/").pop()}`; // below the path of this page
  notice.append(element("a", { href, download: file.name }, `Save the translation of ${file.name}`));
}

const chooseFile = () => askFile().catch(() => say("The server does not answer.", true));

function dropFile(event) {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault(); // the browser would open it
  if (event.type === "dragover") return;
  chosen.files = event.dataTransfer.files;
  chooseFile();
}

function refuse(response, why) {
  locked.hidden &&= response.status !== 401;
  const seconds = Number(response.headers.get("Retry-After"));
  if (seconds > 0) {
    say(`Busy: ${why}. Trying again in ${seconds} s.`, true);
    askIn(1000 * seconds);
  } else {
    show([]);
    say(`Not translated: ${why}.`, true);
  }
}

function show(results, milliseconds) {
  const best = results.map((result) => result.translations[0]);
  translation.replaceChildren(...results.flatMap(translated));
  copy.hidden = !(results.length && navigator.clipboard); // which browsers give to https and localhost only
  copy.textContent = "Copy";
  more.hidden = !results.length;
  others.replaceChildren();
  const subwords = best.reduce((sum, { tokens }) => sum + tokens.length, 0);
  facts.textContent = results.length
    ? `${subwords} ${subwords === 1 ? "subword" : "subwords"} in ${Math.round(milliseconds)} ms` +
      (results.length === 1 ? `, score ${best[0].score.toFixed(2).replace("-", "−")}` : "")
    : "";
  const aligned = best.map(({ alignment }) => alignment).filter(Boolean);
  sentences.replaceChildren(...aligned.map(sentence));
  attention.hidden = !aligned.length;
}

// One aligned sentence: the words of both sides, what is said of the chosen one, and all weights as a table.
function sentence(alignment) {
  const { source_tokens, target_tokens, weights } = alignment;
  const explanation = element("p", { class: "explanation", "aria-live": "polite" });
  const sources = source_tokens.map(button);
  const targets = target_tokens.map(button);
  sources.forEach((word, index) => light(explanation, word, "got weight from", targets, weights.map((row) => row[index])));
  targets.forEach((word, index) => light(explanation, word, "looked at", sources, weights[index]));
  const { cells, matrix } = weightTable("All weights", sources, targets);
  const linked = new Set(alignment.links.map(([from, to]) => to * sources.length + from));
  weights.flat().forEach((weight, cell) => {
    setWeight(cells[cell], weight);
    cells[cell].classList.toggle("link", linked.has(cell));
  });
  withAttributes(matrix, { tabindex: "0", role: "group", "aria-label": "All weights" });
  matrix.addEventListener("pointerover", (event) => {
    const cell = event.target.closest("td[title]");
    if (cell) explanation.textContent = cell.title;
  });
  const note = "All weights in per cent: a row for each word of the translation; framed where two words are linked";
  return element("article", { class: "sentence" }, explanation, element("p", { class: "small" }, note), matrix);
}

const button = (text) => element("button", { type: "button", class: "word" }, text);

// While a word is pointed at or focused, the others show what weight they have for it, and the largest are named.
function light(explanation, word, what, others, weights) {
  word.onpointerenter = word.onfocus = () => {
    word.closest("article").querySelectorAll(".word").forEach(dim);
    word.classList.add("chosen");
    weights.forEach((weight, index) => others[index].style.setProperty("--weight", weight));
    explanation.textContent = `${word.textContent} ${what} ${largest(others, weights, 4, 0.05) || "nothing in particular"}`;
  };
  word.onpointerleave = word.onblur = () => [word, ...others].forEach(dim);
}

function dim(word) {
  word.classList.remove("chosen");
  word.style.removeProperty("--weight");
}

// The English name of a language.
function named(code) {
  try { return new Intl.DisplayNames("en", { type: "language" }).of(code.replace("_", "-")); } catch { return code; } // it may be any text
}

// Lets the user choose a target language.
function offer(codes) {
  targets.replaceChildren(...codes.map((code) => element("option", { value: code }, named(code))));
  targets.hidden = false;
}

// Names the languages of the model in English, and offers an example in the source language.
function nameLanguages([from, to]) {
  document.querySelector("label[for=source]").textContent = named(from);
  at("answer").textContent = named(to);
  example.hidden = !(from in EXAMPLES);
  source.placeholder = EXAMPLES[from] ?? source.placeholder; // what an empty field shows
  example.addEventListener("click", () => {
    source.value = EXAMPLES[from];
    ask();
  });
}

async function greet() {
  try {
    const response = await fetch("health");
    const health = await response.json();
    at("model").textContent = health.model ?? health.status;
    aligns = health.alignment ?? aligns;
    context = health.context > 0;
    if (response.ok) {
      target = health.languages?.[1] ?? target;
      if (health.languages) nameLanguages(health.languages);
      if (health.targets?.length > 1) offer(health.targets);
      ask(); // the browser may have kept a text from before
      return;
    }
    say(`The server is ${health.status}.`);
  } catch {
    say("The server does not answer.", true);
  }
  setTimeout(greet, 1000);
}

copy.onclick = async () => {
  await navigator.clipboard.writeText([...translation.querySelectorAll(":scope > p")].map((line) => line.textContent).join("\n"));
  copy.textContent = "Copied";
};
more.onclick = () => askOthers(5).catch(() => say("The server does not answer.", true));
chosen.addEventListener("change", chooseFile);
document.addEventListener("dragover", dropFile);
document.addEventListener("drop", dropFile);
targets.addEventListener("change", ask);
source.addEventListener("input", () => askIn(PAUSE_MS));
locked.addEventListener("submit", (event) => (event.preventDefault(), ask(), chooseFile()));
source.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    ask();
  }
});
greet();
