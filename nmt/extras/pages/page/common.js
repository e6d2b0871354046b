"use strict";
// Elements that the programs of the pages share. Whatever is text goes into a page as textContent, never as HTML.

function withAttributes(made, attributes, children = []) {
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children); // strings become text
  return made;
}

function element(name, attributes = {}, ...children) {
  return withAttributes(document.createElement(name), attributes, children);
}

// Adds an element of SVG to another.
function shape(parent, name, attributes = {}) {
  const made = withAttributes(document.createElementNS(parent.namespaceURI, name), attributes);
  parent.append(made);
  return made;
}

// A table of weights, and its cells, target word by target word.
function weightTable(label, sources, targets) {
  const cells = [];
  const head = element("tr", {}, element("td"), ...sources.map((word) => element("th", { scope: "col" }, word)));
  const rows = targets.map((word) => {
    const row = sources.map(() => element("td"));
    cells.push(...row);
    return element("tr", {}, element("th", { scope: "row" }, word), ...row);
  });
  const table = element("table", { "aria-label": label }, element("thead", {}, head), element("tbody", {}, ...rows));
  return { cells, matrix: element("div", { class: "matrix" }, table) };
}

// Puts a weight, as a share of 1, into the cell of two words.
function setWeight(cell, share, source, target, note = "") {
  cell.style.setProperty("--weight", Math.abs(share).toFixed(3));
  cell.textContent = Math.round(100 * share) || "";
  cell.title = `${source.textContent} – ${target.textContent}: ${(100 * share).toFixed(1)} %${note}`;
}

// ---- confidence of translations, as in the JSON of `nmt translate --confidence`

const DOUBTFUL = 0.5; // a word is marked below this, as reasons name it, and a line is one to check
const VERY_DOUBTFUL = 0.2;

const inPercent = (share) => `${Math.round(100 * share)}\u00a0%`;
const isPunctuation = (word) => /^(?![#%&@§‰])\p{P}+$/u.test(word);
const isDoubtful = ([word, ...probabilities]) => Math.min(...probabilities) < DOUBTFUL && !isPunctuation(word);

// A word of a target has two probabilities, and that of a source has one.
function doubtful([word, ...probabilities]) {
  const [first, supported] = probabilities.map(inPercent);
  const title = supported ? `${first} likely right, ${supported} likely supported by the source` : `${first} likely translated`;
  const least = Math.min(...probabilities);
  const made = element("span", { class: least < VERY_DOUBTFUL ? "doubtful very" : "doubtful", title }, word);
  made.style.setProperty("--doubt", (1 - least / DOUBTFUL).toFixed(2));
  return made;
}

// The nodes of each part of a text, in which the doubtful ones of its words are marked. Every word is within one part.
function withDoubts(parts, words) {
  const text = parts.join("");
  const found = [];
  let from = 0;
  for (const word of words) {
    const begin = text.indexOf(word[0], from);
    if (begin < 0) continue;
    from = begin + word[0].length;
    if (isDoubtful(word)) found.push({ begin, end: from, word });
  }
  let start = 0;
  return parts.map((part) => {
    const nodes = [];
    let done = start;
    start += part.length;
    for (const { begin, end, word } of found) {
      if (begin < done || end > start) continue;
      nodes.push(text.slice(done, begin), doubtful(word));
      done = end;
    }
    return [...nodes, text.slice(done, start)];
  });
}

// Says in words how sure a translation is, and why to look at it.
function confidenceNote({ right, reasons, words }) {
  const doubts = words.filter(isDoubtful).map(([word, first, supported]) => `${word} ${inPercent(Math.min(first, supported))}`);
  const lines = [...reasons, ...(doubts.length ? [`doubtful words: ${doubts.join(", ")}`] : [])];
  const likely = `${inPercent(right)} likely right`;
  const head = right < DOUBTFUL ? element("strong", {}, `Check: ${likely}`) : likely;
  const list = element("ul", {}, ...lines.map((each) => element("li", {}, each)));
  return element("div", { class: "confidence" }, head, ...(lines.length ? [list] : []));
}
