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
