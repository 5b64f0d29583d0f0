// The chart frame.
const KEYS = "Arrow keys left and right move over the blocks, Home and End go to the first and last, Enter opens one, plus and minus zoom.";

// A chart is a focusable plot with its caption, a line that reads out the cursor, and a table.
// `spec`: title, unit?, height() in px, paint(chart), read(i) → text, legend, table?, rows?, grain?
function addChart(parent, spec) {
  const id = `chart-${charts.length}`;
  const chart = { id, spec, near: false, stamp: -1, row: null, y0: 0, layers: {} };
  for (const name of ["rows", "bands", "axes", "data", "over"]) chart.layers[name] = draw(name === "rows" ? "svg" : "g", { class: `layer-${name}` });
  chart.clip = draw("rect", { y: 0 });
  chart.layers.data.setAttribute("clip-path", `url(#${id}-clip)`);
  chart.svg = draw("svg", { role: "img", "aria-labelledby": `${id}-title` },
    draw("title", { id: `${id}-title` }, spec.title),
    draw("defs", {}, draw("clipPath", { id: `${id}-clip` }, chart.clip)),
    ...Object.values(chart.layers));
  // The role "application" hands the arrow keys to the page also when a screen reader runs.
  chart.plot = el("div", { class: "plot", id: `${id}-plot`, tabindex: 0, role: "application", "aria-label": `${spec.title}. ${KEYS}${spec.rows ? " Up and down move over the rows." : ""}` }, chart.svg);
  chart.readout = el("p", { class: "readout" });
  chart.grain = el("p", { class: "grain" });
  const caption = el("figcaption", {}, el("h3", {}, spec.title), spec.legend ? legend(spec.legend) : null, chart.grain);
  chart.figure = el("figure", {}, caption, spec.tools || null, chart.plot, chart.readout, spec.table ? tableDetails(spec.table) : null);
  parent.append(chart.figure);
  charts.push(chart);
  listen(chart);
  seen.observe(chart.figure);
  return chart;
}

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const chart = charts.find((c) => c.figure === entry.target);
    chart.near = entry.isIntersecting;
    if (chart.near) drawChart(chart);
  }
}, { rootMargin: "300px" });

function legend(items) {
  return el("ul", { class: "legend" }, ...items.map(([label, cls, shape]) => el("li", {},
    draw("svg", { viewBox: "0 0 18 11", "aria-hidden": "true" }, swatch(cls, shape)), label)));
}

function swatch(cls, shape) {
  if (shape === "line") return draw("path", { class: cls, d: "M0 5.5H18" });
  if (shape === "mark") return draw("path", { class: cls, d: "M4 1H14L9 10Z" });
  if (shape === "dot") return draw("circle", { class: cls, cx: 9, cy: 5.5, r: 3 });
  return draw("rect", { class: cls, x: 0.5, y: 0.5, width: 17, height: 10 });
}

function drawChart(chart) {
  if (chart.stamp === view.stamp) return moveCursor(chart);
  chart.stamp = view.stamp;
  const labels = faultLabels();
  chart.y0 = chart.spec.bare ? 0 : Math.max(8, 13 * labels.lanes);
  chart.body = chart.spec.height();
  chart.height = chart.y0 + chart.body + (chart.spec.bare ? 0 : 18);
  chart.svg.setAttribute("viewBox", `0 0 ${view.width} ${chart.height}`);
  put(chart.layers.rows, { width: view.gutter - 3, height: chart.height }, []); // An inner svg clips long names.
  put(chart.clip, { x: view.gutter, width: plotWidth() + 1, height: chart.height }, []);
  for (const layer of Object.values(chart.layers)) layer.replaceChildren();
  if (!chart.spec.bare) { drawTimes(chart); drawBands(chart, labels); }
  chart.spec.paint(chart);
  chart.grain.textContent = chart.spec.grain ? chart.spec.grain() : "";
  moveCursor(chart);
}

function moveCursor(chart) {
  const over = chart.layers.over;
  over.replaceChildren();
  if (chart.row !== null && chart.spec.rowBox) {
    const box = chart.spec.rowBox(chart.row);
    over.append(draw("rect", { class: "chosen", x: 0, y: chart.y0 + box.y, width: view.width, height: box.h }));
  }
  const t = cursorTime();
  if (t !== null && t >= view.from && t <= view.to) {
    const x = Math.round(scaleX(t)) + 0.5;
    over.append(draw("path", { class: "cursor", d: `M${x} 0V${chart.height - (chart.spec.bare ? 0 : 16)}` }));
  }
  const text = readOut(chart);
  chart.readout.textContent = text ?? "";
}

function readOut(chart) {
  const row = chart.row !== null && chart.spec.readRow ? chart.spec.readRow(chart.row, view.cursor) : null;
  if (row !== null) return row;
  if (view.cursor === null) return null;
  return `${blockName(view.cursor)}: ${chart.spec.read(view.cursor)}`;
}

const blockName = (i) => `Block ${story.heights[i]} at ${time(story.times[i])}`;

function timeTicks() {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5, 864e5];
  const wanted = ((view.to - view.from) * 90) / plotWidth();
  const step = steps.find((s) => s >= wanted) || niceAbove(wanted);
  const ticks = [];
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) ticks.push(t);
  return ticks;
}

const tickText = (t, ticks) => (t === 0 && ticks[ticks.length - 1] >= 1000 ? "0 s" : time(t));

function drawTimes(chart) {
  const top = chart.y0, bottom = chart.y0 + chart.body;
  const ticks = timeTicks();
  const lines = ticks.map((t) => `M${Math.round(scaleX(t)) + 0.5} ${top}V${bottom}`).join("");
  chart.layers.axes.append(draw("path", { class: "grid", d: lines }),
    draw("path", { class: "axis", d: `M${view.gutter} ${top}V${bottom + 0.5}H${view.width - PAD}` }));
  for (const t of ticks) chart.layers.axes.append(label(scaleX(t), bottom + 13, tickText(t, ticks), "middle"));
}

function label(x, y, text, anchor, cls) {
  // A label in the middle of its tick is pushed inwards where the chart ends.
  const half = text.length * 3.5;
  if (anchor === "middle") x = Math.min(x, view.width - half - 1);
  return draw("text", { x: Math.round(x), y, "text-anchor": anchor || "start", class: cls }, text);
}

// Faults as bands.
const faultEnd = (fault) => fault.to ?? story.end;
let faultCache = { stamp: -1 };

// Which labels fit. Full labels are tried first, then short ones ("F3"); a label
// without room is left out. The table of faults has them all.
function faultLabels() {
  if (faultCache.stamp === view.stamp) return faultCache;
  const shown = story.faults.filter((f) => f.from <= view.to && faultEnd(f) >= view.from);
  const full = placeLabels(shown, (f) => short(`${f.label} ${words(f.kind)} ${f.target}`, 32));
  const labels = full.length === shown.length ? full : placeLabels(shown, (f) => f.label);
  const lanes = Math.min(2, story.faults.length); // Constant, so that charts keep their height while zooming.
  faultCache = { stamp: view.stamp, shown, labels, lanes };
  return faultCache;
}

function placeLabels(faults, textOf) {
  const ends = [0, 0], labels = [];
  for (const fault of faults.slice(0, 400)) {
    const text = textOf(fault), width = text.length * 6.3 + 6;
    const x = Math.min(Math.max(view.gutter, scaleX(fault.from)) + 3, view.width - width);
    const lane = ends.findIndex((end) => end <= x);
    if (lane < 0) continue;
    ends[lane] = x + width;
    labels.push({ x, lane, text });
  }
  return labels;
}

function drawBands(chart, { shown, labels }) {
  const bottom = chart.y0 + chart.body;
  const boxes = [], edges = [], crowded = shown.length * 12 > plotWidth();
  for (const fault of shown) {
    const x1 = Math.max(view.gutter, scaleX(fault.from));
    const x2 = Math.min(view.width - PAD, scaleX(faultEnd(fault)));
    boxes.push(`M${x1.toFixed(1)} 0H${Math.max(x2, x1 + 1).toFixed(1)}V${bottom}H${x1.toFixed(1)}Z`);
    if (crowded) continue;
    if (fault.from >= view.from) edges.push(`M${x1.toFixed(1)} 0V${bottom}`);
    if (fault.to !== null && fault.to <= view.to) edges.push(`M${x2.toFixed(1)} 0V${bottom}`);
  }
  if (boxes.length === 0) return;
  chart.layers.bands.append(draw("path", { class: "band", d: boxes.join("") }), draw("path", { class: "band-hatch", d: boxes.join("") }),
    draw("path", { class: "band-edge", d: edges.join("") }));
  for (const { x, lane, text } of labels) chart.layers.bands.append(label(x, 10 + lane * 13, text, "start", "band-label"));
}
