// Shows the alignments that are in this file.

const SOURCE = 0;
const TARGET = 1;
const GAP = 8; // pixels that a space takes at most
const TOLD = 5; // words that are named beside a word

// Kinds of cells in the order of drawing: what is drawn first is covered by what follows. A mark is a shape around (0, 0).
const KINDS = {
  open: { name: "possible, not linked" },
  link: { name: "link" },
  possible: { name: "right, possible", mark: "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z" },
  sure: { name: "right, sure", mark: "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z" },
  missed: { name: "missed", mark: "M0-5L5 0L0 5L-5 0z" },
  wrong: { name: "wrong", mark: "M-4-4L4 4M-4 4L4-4" },
};
const ORDER = Object.keys(KINDS);

const meta = JSON.parse(at("meta").textContent);
const pairs = [];
for (const block of document.querySelectorAll("script.pairs")) {
  for (const [source, target, views, gold, told] of JSON.parse(block.textContent)) {
    const [sure, possible] = (gold ?? []).map((links) => new Set(cells(links, source.length)));
    const known = gold && { sure, possible };
    pairs.push({ number: told?.title ?? pairs.length + 1, words: [source, target], views, gold: known, texts: told?.texts ?? [], confidence: told?.confidence });
  }
  block.remove(); // what is on show is all that the document keeps
}

const state = { page: 0, size: 10, view: 0, layout: meta.layout ?? "lines", threshold: 0, order: "file", terms: [], pins: new Map() };
const wide = matchMedia("(min-width: 44rem)"); // elsewhere the controls are folded away
wide.onchange = () => { at("tools").open = wide.matches; };
wide.onchange();
let listed = pairs; // those that pass the filter, in order
let cards = []; // those on show

const drawing = (name, attributes = {}) =>
  withAttributes(at("drawing").content.firstElementChild.cloneNode(), { class: name, ...attributes });

// ---- numbers. A cell of the matrix is known by its place in it, target * sources + source.

function cells(flat, sources) {
  const found = [];
  for (let place = 0; place < flat.length; place += 2) found.push(flat[place + 1] * sources + flat[place]);
  return found;
}

// Weights in steps of 1 / 255; below 0 where they are signed.
function weights(pair) {
  const [, packed, , signed] = pair.views[state.view];
  const steps = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  return signed ? Float32Array.from(steps, (step) => ((step - 128) * 255) / 127) : steps;
}

function links(pair) {
  if (!state.threshold) return new Set(cells(pair.views[state.view][0], pair.words[SOURCE].length));
  const steps = weights(pair);
  return new Set([...steps.keys()].filter((cell) => 100 * steps[cell] >= 255 * state.threshold));
}

// What each cell is that is linked, or that the gold links.
function kinds(pair) {
  const found = new Map();
  const { gold } = pair;
  for (const cell of links(pair)) {
    found.set(cell, !gold ? "link" : gold.sure.has(cell) ? "sure" : gold.possible.has(cell) ? "possible" : "wrong");
  }
  for (const cell of gold?.possible ?? []) if (!found.has(cell)) found.set(cell, "open");
  for (const cell of gold?.sure ?? []) if (!found.has(cell)) found.set(cell, "missed");
  return found;
}

function count(found) {
  const counts = Object.fromEntries(ORDER.map((kind) => [kind, 0]));
  for (const kind of found) counts[kind] += 1;
  return counts;
}

// Och & Ney 2003: 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|).
function errorRate({ sure, possible, wrong, missed }) {
  const total = 2 * sure + possible + wrong + missed;
  return total ? 1 - (2 * sure + possible) / total : 0;
}

const percent = (rate) => (100 * rate).toFixed(1);
const number = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

// ---- which pairs are on show

const fold = (text) => text.normalize("NFKC").toLowerCase();
const folded = (pair) => (pair.folded ??= fold(pair.words.map((side) => side.join(" ")).join("\n")));

// What pairs are sorted by, from low to high, in each order.
const sortKeys = {
  file: () => 0,
  longest: ({ words }) => -words[SOURCE].length - words[TARGET].length,
  doubtful: ({ confidence }) => confidence?.right ?? 1,
  worst: (pair) => -errorRate(count(kinds(pair).values())),
  best: (pair) => errorRate(count(kinds(pair).values())),
};

function list() {
  listed = pairs.filter((pair) => state.terms.every((term) => folded(pair).includes(term)));
  const keys = new Map(listed.map((pair) => [pair, sortKeys[state.order](pair)]));
  listed.sort((one, other) => keys.get(one) - keys.get(other));
  summarize();
}

function summarize() {
  const all = number(pairs.length, "pair");
  let told = listed.length === pairs.length ? all : `${listed.length.toLocaleString("en")} of ${all}`;
  if (meta.gold && listed.length) {
    told += `, AER ${percent(errorRate(count(listed.flatMap((pair) => [...kinds(pair).values()]))))}`;
  }
  at("status").textContent = told;
}

const pages = () => Math.max(1, Math.ceil(listed.length / state.size));

function show() {
  state.page = Math.min(Math.max(0, state.page), pages() - 1);
  const focused = focusedWord();
  const first = state.page * state.size;
  cards = listed.slice(first, first + state.size).map(card);
  at("pairs").dataset.layout = state.layout;
  at("pairs").replaceChildren(...cards.map((each) => each.article));
  if (state.layout === "lines") {
    const measured = cards.map(measure); // all at once, as each change of the page would make it be laid out anew
    cards.forEach((made, place) => arrange(made, measured[place]));
  }
  for (const pager of document.querySelectorAll(".pager")) {
    pager.querySelector(".page").value = state.page + 1;
    pager.querySelector(".page").max = pages();
    pager.querySelector(".pages").textContent = `of ${pages().toLocaleString("en")}`;
    for (const button of pager.querySelectorAll("button")) {
      button.disabled = state.page === (["first", "previous"].includes(button.dataset.go) ? 0 : pages() - 1);
    }
  }
  draw();
  const still = focused && cards.find((made) => made.pair === focused.pair);
  if (still) go(still, ...focused.word);
}

function focusedWord() {
  const word = document.activeElement?.closest(".word");
  const made = word && cards.find((each) => each.article.contains(word));
  return made && { pair: made.pair, word: place(word) };
}

// ---- one pair

function card(pair) {
  const sides = pair.words.map((words, side) => {
    const doubts = [...([pair.confidence?.source_words, pair.confidence?.words][side] ?? [])];
    return words.map((text, place) => word(withDoubts(text, doubts), side, place));
  });
  for (const words of sides) if (words.length) words[0].tabIndex = 0;
  const facts = element("span");
  const told = element("p", { class: "told", "aria-live": "polite", dir: "auto" });
  const head = element("header", {}, element("h2", {}, String(pair.number)), facts, told);
  const article = element("article", { class: "pair", "aria-label": `Pair ${pair.number}` }, head, ...pair.texts.map((text) => line(text, pair.confidence)));
  if (pair.confidence) article.append(confidenceNote(pair.confidence));
  const made = { pair, sides, facts, told, article, kinds: new Map(), weights: null };
  if (state.layout === "matrix") {
    const label = "Weights in per cent: a row for each target word, a column for each source word";
    Object.assign(made, weightTable(label, ...sides));
    made.cells.forEach((cell, place) => { cell.dataset.cell = place; });
    article.append(made.matrix);
  } else {
    made.svg = drawing("links");
    made.ties = element("div", { class: "ties" });
    article.append(made.ties);
    arrange(made, { rows: sides.map((words) => words.map(() => 0)), count: 1, directions: ["auto", "auto"] });
  }
  listen(made);
  return made;
}

// A line of text above a pair; its odd parts are marked, and so are its doubtful words.
function line([name, ...parts], confidence) {
  const words = [...({ Source: confidence?.source_words, Translation: confidence?.words }[name] ?? [])];
  const written = parts.map((part, place) => element(place % 2 ? "mark" : "span", {}, ...withDoubts(part, words)));
  return element("p", { class: "text" }, element("span", { class: "name" }, name), element("span", { dir: "auto" }, ...written));
}

function word(parts, side, place) {
  const made = element("span", { class: "word", role: "button", tabindex: "-1", "aria-pressed": "false" }, ...parts);
  made.dataset.side = side;
  made.dataset.place = place;
  if (state.terms.length) {
    const own = fold(made.textContent);
    made.classList.toggle("found", state.terms.some((term) => own.includes(term)));
  }
  return made;
}

// Source and target in rows by turns, as in a score, so that most links are between neighbours.
function arrange(made, { rows, count, directions }) {
  const lines = [];
  for (let row = 0; row < count; row += 1) {
    ["source", "target"].forEach((name, side) => {
      const words = made.sides[side].filter((_, index) => rows[side][index] === row).flatMap((each) => [" ", each]).slice(1);
      lines.push(element("p", { class: `words ${name}`, dir: directions[side], role: "group", "aria-label": name }, ...words));
    });
  }
  made.ties.replaceChildren(made.svg, ...lines);
}

// How many rows there have to be, and which each word is in: at the same part of either side's width.
function measure(made) {
  const room = made.article.firstElementChild.getBoundingClientRect().width;
  const widths = made.sides.map((words) => words.map((each) => each.getBoundingClientRect().width + GAP));
  const directions = [...made.ties.querySelectorAll(".words")].map((line) => getComputedStyle(line).direction);
  const most = Math.max(1, ...widths.map((side) => side.length));
  for (let count = 1; ; count += 1) {
    const sides = widths.map((side) => spread(side, count));
    const fits = sides.every(({ taken }) => taken.every((width) => width <= room + GAP));
    if (fits || count === most) return { rows: sides.map(({ rows }) => rows), count, directions };
  }
}

// The row of each word of a side, and the width that each row takes.
function spread(widths, count) {
  const total = widths.reduce((sum, width) => sum + width, 0);
  const taken = Array(count).fill(0);
  let before = 0;
  const rows = widths.map((width) => {
    const row = Math.floor((count * (before + width / 2)) / total);
    before += width;
    taken[row] += width;
    return row;
  });
  return { rows, taken };
}

// Puts links and weights of the view and threshold of now into all cards.
function draw() {
  for (const made of cards) {
    made.weights = weights(made.pair);
    made.kinds = kinds(made.pair);
    const counts = count(made.kinds.values());
    const linked = counts.link + counts.sure + counts.possible + counts.wrong;
    const facts = [number(linked, "link")];
    const largest = made.pair.views[state.view][2]; // where weights are shares of it
    if (largest !== undefined) facts.push(`100 % is ${largest.toPrecision(3)}`);
    if (made.pair.gold) facts.push(`${counts.wrong} wrong, ${counts.missed} missed`, `AER ${percent(errorRate(counts))}`);
    made.facts.textContent = facts.join(" · ");
    if (made.matrix) fill(made);
    else tie(made);
    settle(made);
  }
}

function tie(made) {
  const { svg, sides, kinds, weights } = made;
  const origin = svg.parentElement.getBoundingClientRect();
  const boxes = sides.map((words) => words.map((each) => each.getBoundingClientRect()));
  svg.replaceChildren();
  const drawn = [...kinds].sort(([, one], [, other]) => ORDER.indexOf(one) - ORDER.indexOf(other));
  const marks = [];
  for (const [cell, kind] of drawn) {
    const [source, target] = placesOf(cell, sides);
    const { path, middle } = join(boxes[SOURCE][source], boxes[TARGET][target], origin);
    const line = shape(svg, "path", { class: `tie ${kind}`, d: path, "data-cell": cell });
    if (kind === "link") line.style.strokeWidth = 1.25 + (2.25 * Math.abs(weights[cell])) / 255;
    if (KINDS[kind].mark) marks.push({ class: `mark ${kind}`, d: KINDS[kind].mark, transform: `translate(${middle})`, "data-cell": cell });
  }
  for (const mark of marks) shape(svg, "path", mark);
}

const placesOf = (cell, sides) => [cell % sides[SOURCE].length, Math.floor(cell / sides[SOURCE].length)];

// The curve between the sides of two words that face each other, and its middle.
function join(source, target, origin) {
  const isAcross = state.layout === "columns";
  const [near, far, low, high] = isAcross ? ["left", "right", "top", "bottom"] : ["top", "bottom", "left", "right"];
  const [from, to] = target[near] > source[near] ? [source[far], target[near]] : [source[near], target[far]];
  const [begin, end] = [from - origin[near], to - origin[near]];
  const [one, other] = [source, target].map((box) => (box[low] + box[high]) / 2 - origin[low]);
  const half = (begin + end) / 2;
  const points = [[one, begin], [one, half], [other, half], [other, end], [(one + other) / 2, half]];
  const [start, ...rest] = isAcross ? points.map(([x, y]) => [y, x]) : points;
  return { path: `M${start}C${rest.slice(0, 3)}`, middle: rest[3] };
}

function fill({ cells, kinds, weights }) {
  cells.forEach((cell, place) => {
    const [share, kind] = [weights[place] / 255, kinds.get(place)];
    cell.className = kind ?? "";
    cell.classList.toggle("negative", share < 0);
    setWeight(cell, share, kind ? `, ${KINDS[kind].name}` : "");
    if (!KINDS[kind]?.mark) return;
    const svg = drawing("", { viewBox: "-6 -6 12 12" });
    shape(svg, "path", { class: `mark ${kind}`, d: KINDS[kind].mark });
    cell.append(svg);
  });
}

// ---- looking at a word

const place = (word) => [Number(word.dataset.side), Number(word.dataset.place)];

// The weight of each word of the other side, as a share of 1.
function others(made, [side, index]) {
  const sources = made.sides[SOURCE].length;
  return made.sides[1 - side].map((_, other) => made.weights[side === TARGET ? index * sources + other : other * sources + index] / 255);
}

function look(made, chosen) {
  const [side, index] = chosen;
  const shares = others(made, chosen);
  rest(made);
  made.sides[side][index].classList.add("chosen");
  made.sides[1 - side].forEach((each, other) => {
    each.style.setProperty("--weight", Math.abs(shares[other]).toFixed(3));
    each.classList.toggle("negative", shares[other] < 0);
  });
  const within = (cell) => placesOf(cell, made.sides)[side] === index;
  const drawn = made.svg ? [...made.svg.children] : made.cells;
  for (const each of drawn) each.classList.toggle("on", within(Number(each.dataset.cell)));
  (made.svg ?? made.matrix).classList.add("some");
  const named = largest(made.sides[1 - side], shares, TOLD, 0.01);
  made.told.textContent = `${made.sides[side][index].textContent}: ${named || "no word with 1 % or more"}`;
}

function rest(made) {
  for (const each of made.sides.flat()) {
    each.classList.remove("chosen", "negative");
    each.style.removeProperty("--weight");
  }
  (made.svg ?? made.matrix).classList.remove("some");
  made.told.textContent = "";
}

// Back to the word that is kept, or that has the focus, or to none.
function settle(made) {
  const pin = state.pins.get(made.pair);
  for (const each of made.sides.flat()) {
    const [side, index] = place(each);
    each.setAttribute("aria-pressed", String(pin?.[0] === side && pin?.[1] === index));
  }
  const focused = focusedWord();
  if (pin) look(made, pin);
  else if (focused?.pair === made.pair) look(made, focused.word);
  else rest(made);
}

function listen(made) {
  const { article, pair } = made;
  article.addEventListener("pointerover", (event) => {
    if (state.pins.has(pair)) return;
    const over = event.target.closest(".word");
    if (over) look(made, place(over));
    else settle(made);
  });
  article.addEventListener("pointerleave", () => settle(made));
  article.addEventListener("focusin", (event) => {
    const [side, index] = place(event.target);
    made.sides[side].forEach((each, other) => { each.tabIndex = other === index ? 0 : -1; }); // Tab comes back to it
    settle(made);
  });
  article.addEventListener("focusout", () => setTimeout(settle, 0, made));
  article.addEventListener("click", (event) => {
    const clicked = event.target.closest(".word");
    if (!clicked || !getSelection().isCollapsed) return;
    keep(made, place(clicked));
    if (!state.pins.has(pair)) clicked.blur(); // let go of for good, not lit for being in focus
  });
  article.addEventListener("keydown", (event) => {
    const pressed = event.target.closest(".word");
    if (pressed && !event.ctrlKey && !event.altKey && !event.metaKey && press(made, place(pressed), event.key)) {
      event.preventDefault();
    }
  });
}

function keep(made, chosen) {
  const pin = state.pins.get(made.pair);
  if (pin && String(pin) === String(chosen)) state.pins.delete(made.pair);
  else state.pins.set(made.pair, chosen);
  settle(made);
}

// Whether the key meant something.
function press(made, [side, index], key) {
  const upright = state.layout === "columns" || (state.layout === "matrix" && side === TARGET);
  const leftward = !upright && state.layout === "lines" && getComputedStyle(made.sides[side][index].parentElement).direction === "rtl";
  const [back, on] = upright ? ["ArrowUp", "ArrowDown"] : leftward ? ["ArrowRight", "ArrowLeft"] : ["ArrowLeft", "ArrowRight"];
  const last = made.sides[side].length - 1;
  const moves = { Home: 0, End: last, [back]: Math.max(0, index - 1), [on]: Math.min(last, index + 1) };
  if (key === "Enter" || key === " ") keep(made, [side, index]);
  else if (key === "Escape") {
    state.pins.delete(made.pair);
    settle(made);
  } else if (key in moves) go(made, side, moves[key]);
  else if (key.startsWith("Arrow")) {
    const shares = others(made, [side, index]);
    if (shares.length) go(made, 1 - side, shares.indexOf(Math.max(...shares)));
  } else return false;
  return true;
}

const go = (made, side, index) => made.sides[side][index].focus();

// ---- what is shown

function legend() {
  const shown = meta.gold ? ["sure", "possible", "wrong", "missed", "open"] : [];
  at("legend").replaceChildren(
    ...shown.map((kind) => {
      const { name, mark } = KINDS[kind];
      const svg = drawing("", { viewBox: "0 0 38 16" });
      shape(svg, "path", { class: `tie ${kind}`, d: "M2 8H36" });
      if (mark) shape(svg, "path", { class: `mark ${kind}`, d: mark, transform: "translate(19 8)" });
      return element("span", {}, svg, name);
    }),
  );
}

function tellThreshold() {
  const told = state.threshold ? `weight at least ${state.threshold} %` : "the alignment's own";
  at("least").textContent = told;
  at("threshold").setAttribute("aria-valuetext", told);
  const rule = state.threshold ? `Linked: every weight of at least ${state.threshold} %.` : meta.explanations[meta.views[state.view]];
  at("rule").textContent = [rule, state.layout === "matrix" && "Links are framed."].filter(Boolean).join(" ");
}

const on = (id, kind, act) => at(id).addEventListener(kind, (event) => act(event.target.value));

// Shows the first page of another choice of pairs.
function restart(changes) {
  Object.assign(state, { page: 0, ...changes });
  list();
  show();
}

let waiting = 0;
on("filter", "input", (value) => {
  clearTimeout(waiting);
  waiting = setTimeout(restart, 120, { terms: fold(value).split(/\s+/).filter(Boolean) });
});
on("view", "change", (value) => {
  state.view = Number(value);
  tellThreshold();
  relist();
});
on("threshold", "input", (value) => {
  state.threshold = Number(value);
  tellThreshold();
  draw();
});
on("threshold", "change", relist);
on("order", "change", (order) => restart({ order }));
on("size", "change", (value) => {
  const first = state.page * state.size;
  state.size = Number(value);
  state.page = Math.floor(first / state.size);
  show();
});
for (const choice of document.querySelectorAll("[name=layout]")) {
  choice.addEventListener("change", () => {
    state.layout = choice.value;
    tellThreshold();
    show();
  });
}

// After a change of links, by which pairs may be sorted.
function relist() {
  const sorted = state.order === "worst" || state.order === "best";
  for (const act of sorted ? [list, show] : [summarize, draw]) act();
}

function follow(pager, top) {
  const to = (page) => {
    state.page = page;
    show();
    if (!top) at("top").scrollIntoView();
  };
  pager.addEventListener("click", (event) => {
    const where = event.target.dataset.go;
    if (where) to({ first: 0, previous: state.page - 1, next: state.page + 1, last: pages() - 1 }[where]);
  });
  pager.querySelector(".page").addEventListener("change", (event) => to(Math.round(Number(event.target.value) || 1) - 1));
}

// ---- the beginning

const isJudged = pairs.some(({ confidence }) => confidence);
if (at("facts")) {
  document.title = `${meta.facts[0] ?? "Word alignments"} – word alignments`;
  at("facts").textContent = meta.facts.join(" · ");
  if (isJudged) at("order").value = state.order = "doubtful";
}
document.querySelector(`[name=layout][value=${state.layout}]`).checked = true;
at("view").replaceChildren(...meta.views.map((name, place) => element("option", { value: place }, name)));
at("views").hidden = meta.views.length < 2;
at("threshold").parentElement.hidden = pairs.some(({ views }) => views[0].length > 2); // shares make no links
const offered = { worst: meta.gold, best: meta.gold, doubtful: isJudged };
for (const option of at("order").options) option.hidden = option.disabled = !(offered[option.value] ?? true);
const above = document.querySelector(".pager");
const below = above.cloneNode(true);
below.setAttribute("aria-label", "Pages, again");
at("pairs").after(below);
follow(above, true);
follow(below, false);
tellThreshold();
legend();
list();
show();
let width = innerWidth;
new ResizeObserver(() => {
  if (innerWidth !== width) show();
  width = innerWidth;
}).observe(document.body);
