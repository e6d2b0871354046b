// Reads out charts under the mouse, a finger or the arrow keys. Whatever is text goes into the page as textContent.
(() => {
  "use strict";

  const NEAR = 12; // of a chart's units: a point farther from the hair is not read out

  function made(name, attributes = {}, ...children) {
    const element = name === "line" || name === "circle" ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  // The place of the point of a line that is nearest to x; points are in order of x.
  function nearest(points, x) {
    let [low, high] = [0, points.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (points[middle][0] < x) low = middle;
      else high = middle;
    }
    return Math.abs(points[high][0] - x) < Math.abs(points[low][0] - x) ? high : low;
  }

  function follow(plot) {
    const { size, box, x: label, lines, names } = JSON.parse(plot.closest("figure").querySelector(".trace").textContent);
    const told = plot.parentElement.querySelector(".readout");
    const svg = plot.querySelector("svg");
    const stops = [...new Set(lines.flatMap(({ points }) => points.map(([x]) => x)))].sort((one, other) => one - other);
    let marks = [];
    let at = null; // which stop is read out

    function clear() {
      for (const mark of marks) mark.remove();
      marks = [];
      at = null;
      told.hidden = true;
    }

    function read(stop) {
      for (const mark of marks) mark.remove();
      at = stop;
      const x = stops[stop];
      marks = [made("line", { class: "hair", x1: x, x2: x, y1: box[1], y2: box[3] })];
      const rows = [];
      let head = "";
      for (const { run, colour, name, points } of lines) {
        const point = points[nearest(points, x)];
        if (Math.abs(point[0] - x) > NEAR) continue;
        if (point[0] === x) head = point[2];
        marks.push(made("circle", { class: "dot", cx: point[0], cy: point[1], r: 3.5, style: `fill: var(--run${colour % 10})` }));
        const elsewhere = point[0] === x ? "" : ` at ${point[2]}`;
        const text = `${names.length > 1 ? `${names[run]}, ` : ""}${name}: ${point[3]}${elsewhere}`;
        rows.push(made("span", {}, made("i", { class: "swatch", style: `background: var(--run${colour % 10})` }), text));
      }
      svg.append(...marks);
      told.replaceChildren(made("b", {}, `${label} ${head}`), ...rows);
      const left = x > size[0] / 2;
      told.style.left = left ? `${(100 * box[0]) / size[0]}%` : "auto";
      told.style.right = left ? "auto" : "0";
      told.hidden = false;
    }

    function point(event) {
      const frame = svg.getBoundingClientRect();
      const x = ((event.clientX - frame.left) / frame.width) * size[0];
      read(nearest(stops.map((stop) => [stop]), x));
    }

    plot.addEventListener("pointermove", point);
    plot.addEventListener("pointerdown", point);
    plot.addEventListener("pointerleave", () => document.activeElement !== plot && clear());
    plot.addEventListener("blur", clear);
    plot.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const last = stops.length - 1;
      const page = Math.max(1, Math.round(last / 10));
      const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: page, PageDown: -page };
      if (event.key === "Escape") clear();
      else if (event.key === "Home") read(0);
      else if (event.key === "End") read(last);
      else if (event.key in moves) read(Math.min(last, Math.max(0, at === null ? (moves[event.key] > 0 ? 0 : last) : at + moves[event.key])));
      else return;
      event.preventDefault();
    });
  }

  // A matrix of subwords, whose cells are coloured anew for each update.
  function matrix(source, target) {
    const cells = [];
    const head = made("tr", {}, made("td"), ...source.map((text) => made("th", { scope: "col" }, made("span", { class: "word" }, text))));
    const rows = target.map((text) => {
      const row = made("tr", {}, made("th", { scope: "row" }, made("span", { class: "word" }, text)));
      for (const other of source) {
        const cell = made("td");
        cells.push([cell, `${other} – ${text}`]);
        row.append(cell);
      }
      return row;
    });
    const label = `Weights in per cent: ${target.length} target subwords, ${source.length} source subwords`;
    const table = made("table", { "aria-label": label }, made("thead", {}, head), made("tbody", {}, ...rows));
    return { cells, frame: made("div", { class: "matrix", tabindex: "0", role: "group", "aria-label": label }, table) };
  }

  function form(box) {
    const { updates, pairs } = JSON.parse(box.querySelector(".matrices").textContent);
    const [slider, output] = [box.querySelector("input"), box.querySelector("output")];
    const shown = pairs.map(([source, target, steps]) => ({ steps, ...matrix(source, target) }));
    box.append(...shown.map(({ frame }) => frame));
    function show() {
      const told = `update ${updates[slider.value].toLocaleString("en")}`;
      output.textContent = told;
      slider.setAttribute("aria-valuetext", told);
      for (const { steps, cells } of shown) {
        const weights = atob(steps[slider.value]);
        cells.forEach(([cell, pair], place) => {
          const share = weights.charCodeAt(place) / 255;
          cell.style.setProperty("--weight", share.toFixed(3));
          cell.textContent = Math.round(100 * share) || "";
          cell.title = `${pair}: ${(100 * share).toFixed(1)} %`;
        });
      }
    }
    slider.addEventListener("input", show);
    show();
  }

  for (const box of document.querySelectorAll(".forming")) form(box);
  for (const plot of document.querySelectorAll(".plot")) follow(plot);
})();
