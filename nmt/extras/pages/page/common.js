"use strict";
// Elements that the programs of the pages share. Whatever is text goes into a page as textContent, never as HTML.

const at = (id) => document.getElementById(id);

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

// A table of weights, and its cells, target word by target word, each with its two words.
function weightTable(label, sources, targets) {
  const cells = [];
  const head = element("tr", {}, element("td"), ...sources.map((word) => element("th", { scope: "col" }, word)));
  const rows = targets.map((target) => {
    const row = sources.map((source) => Object.assign(element("td"), { words: [source, target] }));
    cells.push(...row);
    return element("tr", {}, element("th", { scope: "row" }, target), ...row);
  });
  const table = element("table", { "aria-label": label }, element("thead", {}, head), element("tbody", {}, ...rows));
  return { cells, matrix: element("div", { class: "matrix" }, table) };
}

// Puts a weight, as a share of 1, into the cell of two words.
function setWeight(cell, share, note = "") {
  cell.style.setProperty("--weight", Math.abs(share).toFixed(3));
  cell.textContent = Math.round(100 * share) || "";
  cell.title = `${cell.words.map((word) => word.textContent).join(" – ")}: ${(100 * share).toFixed(1)} %${note}`;
}

// The words whose weights, shares of 1, are the largest and not below a least one, with these in per cent.
function largest(words, shares, most, least) {
  return shares
    .map((share, index) => ({ share, text: words[index].textContent }))
    .sort((one, other) => Math.abs(other.share) - Math.abs(one.share))
    .filter(({ share }) => Math.abs(share) >= least)
    .slice(0, most)
    .map(({ share, text }) => `${text} ${Math.round(100 * share)} %`)
    .join(", ");
}

// ---- confidence of translations, as `nmt translate --confidence` has it in JSON

const DOUBTFUL = 0.5; // a probability below this, also in the reasons

const inPercent = (share) => `${Math.round(100 * share)}\u00a0%`;
const least = ([, ...probabilities]) => Math.min(...probabilities);
const isDoubtful = (word) => least(word) < DOUBTFUL && !/^(?![#%&@§‰])\p{P}+$/u.test(word[0]);

// A text in which the doubtful words are marked. Takes the words that it has from the front of the list.
function withDoubts(text, words) {
  const nodes = [];
  let end = 0;
  while (words.length && text.includes(words[0][0], end)) {
    const word = words.shift();
    const begin = text.indexOf(word[0], end);
    const mark = { class: "doubtful", title: `doubtful: ${inPercent(least(word))}` };
    nodes.push(text.slice(end, begin), isDoubtful(word) ? element("span", mark, word[0]) : word[0]);
    end = begin + word[0].length;
  }
  return [...nodes, text.slice(end)];
}

// Says how sure a translation is, and why to look at it.
function confidenceNote({ right, reasons, words }) {
  const doubts = words.filter(isDoubtful).map((word) => `${word[0]} ${inPercent(least(word))}`).join(", ");
  const lines = [...reasons, doubts && `doubtful words: ${doubts}`].filter(Boolean);
  const likely = element(right < DOUBTFUL ? "strong" : "p", {}, `${right < DOUBTFUL ? "Check: " : ""}${inPercent(right)} likely right`);
  return element("div", { class: "confidence" }, likely, ...lines.map((line) => element("p", {}, `– ${line}`)));
}
