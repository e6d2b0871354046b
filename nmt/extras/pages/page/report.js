// Reads out charts under the mouse, a finger or the arrow keys, and shows attention at each validation.
(() => {
  const NEAR = 12; // of a chart's units: a point farther from the hair is not read out

  // The index of the place that is nearest to x.
  function nearest(places, x) {
    return places.reduce((best, place, index) => (Math.abs(place - x) < Math.abs(places[best] - x) ? index : best), 0);
  }

  function readOut(plot) {
    const { size, box, x: label, lines, names } = JSON.parse(plot.closest("figure").querySelector(".trace").textContent);
    const readout = plot.parentElement.querySelector(".readout");
    const svg = plot.querySelector("svg");
    const marks = shape(svg, "g");
    for (const line of lines) line.places = line.points.map(([x]) => x);
    const stops = [...new Set(lines.flatMap(({ places }) => places))].sort((one, other) => one - other);
    let at = null; // which stop is read out

    function clear() {
      marks.replaceChildren();
      at = null;
      readout.hidden = true;
    }

    function read(stop) {
      at = stop;
      const x = stops[stop];
      marks.replaceChildren();
      shape(marks, "line", { class: "hair", x1: x, x2: x, y1: box[1], y2: box[3] });
      const head = element("b");
      readout.replaceChildren(head);
      for (const { run, colour, name, points, places } of lines) {
        const [cx, cy, update, value] = points[nearest(places, x)];
        if (Math.abs(cx - x) > NEAR) continue;
        if (cx === x) head.textContent = `${label} ${update}`;
        const fill = `var(--run${colour % 10})`;
        shape(marks, "circle", { class: "dot", cx, cy, r: 3.5, style: `fill: ${fill}` });
        const text = `${names.length > 1 ? `${names[run]}, ` : ""}${name}: ${value}${cx === x ? "" : ` at ${update}`}`;
        readout.append(element("span", {}, element("i", { class: "swatch", style: `background: ${fill}` }), text));
      }
      const left = x > size[0] / 2;
      readout.style.left = left ? `${(100 * box[0]) / size[0]}%` : "auto";
      readout.style.right = left ? "auto" : "0";
      readout.hidden = false;
    }

    for (const kind of ["pointermove", "pointerdown"]) {
      plot.addEventListener(kind, (event) => {
        const frame = svg.getBoundingClientRect();
        read(nearest(stops, ((event.clientX - frame.left) / frame.width) * size[0]));
      });
    }
    plot.addEventListener("pointerleave", () => document.activeElement !== plot && clear());
    plot.addEventListener("blur", clear);
    plot.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const last = stops.length - 1;
      const page = Math.max(1, Math.round(last / 10));
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: page, PageDown: -page }[event.key];
      if (event.key === "Escape") clear();
      else if (event.key === "Home") read(0);
      else if (event.key === "End") read(last);
      else if (step) read(at === null ? (step > 0 ? 0 : last) : Math.min(last, Math.max(0, at + step)));
      else return;
      event.preventDefault();
    });
  }

  // Matrices of subwords, whose cells are coloured anew for each update.
  function form(box) {
    const { updates, pairs } = JSON.parse(box.querySelector(".matrices").textContent);
    const [slider, output] = [box.querySelector("input"), box.querySelector("output")];
    const shown = pairs.map(([source, target, steps]) => {
      const sides = [source, target].map((side) => side.map((text) => element("span", { class: "word" }, text)));
      const label = `Weights in per cent: ${target.length} target subwords, ${source.length} source subwords`;
      const { cells, matrix } = weightTable(label, ...sides);
      box.append(withAttributes(matrix, { tabindex: "0", role: "group", "aria-label": label }));
      return { steps, cells };
    });
    function show() {
      const text = `update ${updates[slider.value].toLocaleString("en")}`;
      output.textContent = text;
      slider.setAttribute("aria-valuetext", text);
      for (const { steps, cells } of shown) {
        const weights = atob(steps[slider.value]);
        cells.forEach((cell, place) => setWeight(cell, weights.charCodeAt(place) / 255));
      }
    }
    slider.addEventListener("input", show);
    show();
  }

  for (const box of document.querySelectorAll(".forming")) form(box);
  for (const plot of document.querySelectorAll(".plot")) readOut(plot);
})();
