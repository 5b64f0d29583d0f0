// Bars and lines.
// series: [{name, cls, kind: "bar" | "peak" | "tick" | "step", value(i) → number | null}]. Bars are
// stacked in order. A column of several blocks shows their mean; "peak" shows their maximum.
function barChart(parent, { title, series, format, marks, legend: extra, read, table }) {
  const paint = (chart) => {
    const parts = series.map((one) => ({ ...one, values: columns().cols.map((col) => summary(col, one)) }));
    const ticks = valueTicks(highest(parts));
    const max = ticks[ticks.length - 1];
    const y = (value) => chart.y0 + chart.body * (1 - value / max);
    drawValues(chart, ticks, y, format);
    if (parts.every((part) => part.values.every((v) => v === null))) chart.layers.data.append(label(view.gutter + 8, chart.y0 + chart.body / 2, "No values in the time shown."));
    drawSeries(chart, parts.filter((part) => part.kind !== "peak" || columns().per > 1), y);
    if (marks) drawMarks(chart, marks);
  };
  const items = series.map((one) => [one.name, one.cls, one.kind === "bar" ? "box" : "line"]);
  return addChart(parent, { title, height: () => 110, paint, read, legend: [...items, ...(extra || [])], table, grain: grainText });
}

function summary(col, { value, kind }) {
  let sum = 0, known = 0, max = null;
  for (let i = col.a; i < col.b; i++) {
    const v = value(i);
    if (v === null) continue;
    sum += v;
    known++;
    if (max === null || v > max) max = v;
  }
  return known === 0 ? null : kind === "peak" ? max : sum / known;
}

function highest(parts) {
  const stacked = parts.filter((p) => p.kind === "bar");
  let max = 0;
  columns().cols.forEach((_, c) => {
    const sum = stacked.reduce((total, p) => total + (p.values[c] || 0), 0);
    max = Math.max(max, sum, ...parts.filter((p) => p.kind !== "bar").map((p) => p.values[c] || 0));
  });
  return max;
}

function valueTicks(max) {
  if (!(max > 0)) return [0, 1];
  const step = niceAbove(max / 4);
  const ticks = [];
  for (let n = 0; n <= Math.ceil(max / step - 1e-9); n++) ticks.push(Number((n * step).toPrecision(12)));
  return ticks;
}

function drawValues(chart, ticks, y, format) {
  const lines = ticks.map((v) => `M${view.gutter} ${Math.round(y(v)) + 0.5}H${view.width - PAD}`).join("");
  chart.layers.axes.append(draw("path", { class: "grid", d: lines }));
  for (const v of ticks) chart.layers.axes.append(label(view.gutter - 6, Math.round(y(v)) + 4, format(v), "end"));
}

function drawSeries(chart, parts, y) {
  const { cols } = columns();
  const base = cols.map(() => 0);
  for (const part of parts) {
    const d = [];
    cols.forEach((col, c) => {
      const value = part.values[c];
      if (value === null) return;
      const x1 = col.x.toFixed(1), x2 = (col.x + col.w).toFixed(1);
      if (part.kind === "bar") {
        const low = y(base[c]).toFixed(1);
        base[c] += value;
        if (value > 0) d.push(`M${x1} ${low}V${y(base[c]).toFixed(1)}H${x2}V${low}Z`);
      } else if (part.kind === "step" && c > 0 && part.values[c - 1] !== null) {
        d.push(`L${x1} ${y(value).toFixed(1)}H${x2}`);
      } else d.push(`M${x1} ${y(value).toFixed(1)}H${x2}`);
    });
    if (d.length) chart.layers.data.append(draw("path", { class: part.cls, d: d.join("") }));
  }
}

// A triangle at the top of a column, with the sum of `marks(i)` where there is room for it.
function drawMarks(chart, marks) {
  const d = [], texts = [];
  let edge = Infinity; // Where the mark to the right begins.
  for (const col of [...columns().cols].reverse()) {
    let sum = 0;
    for (let i = col.a; i < col.b; i++) sum += marks(i) || 0;
    if (sum === 0) continue;
    const x = col.x + col.w / 2, text = amount(sum);
    d.unshift(`M${(x - 4).toFixed(1)} ${chart.y0}h8l-4 7z`);
    if (sum > 1 && x + 7 + text.length * 6.5 < Math.min(edge, view.width)) texts.push(label(x + 5, chart.y0 + 9, text, "start", "strong"));
    edge = x - 4;
  }
  chart.layers.data.append(...texts);
  if (d.length) chart.layers.data.append(draw("path", { class: "mark", d: d.join("") }));
}
