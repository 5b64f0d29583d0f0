// The view: the times shown and the block under the cursor.
const charts = [];
const view = { from: 0, to: 1, cursor: null, width: 800, gutter: 120, stamp: 0 };
const PAD = 12; // Room at the right of every plot, px.
const MIN_COLUMN = 3; // px; below this, blocks share a column.

const plotWidth = () => Math.max(40, view.width - view.gutter - PAD);
const scaleX = (t) => view.gutter + ((t - view.from) / (view.to - view.from)) * plotWidth();
const timeAt = (x) => view.from + ((x - view.gutter) / plotWidth()) * (view.to - view.from);

function setView(from, to) {
  const least = Math.min(story.end, Math.max(1, story.usual * 4));
  const span = clamp(to - from, least, story.end);
  view.from = clamp(from, 0, story.end - span);
  view.to = view.from + span;
  redraw();
}

function zoom(factor, around) {
  const centre = around ?? cursorTime() ?? (view.from + view.to) / 2;
  const at = clamp(centre, view.from, view.to);
  setView(at - (at - view.from) / factor, at + (view.to - at) / factor);
}

function pan(share) {
  const step = (view.to - view.from) * share;
  setView(view.from + step, view.to + step);
}

const cursorTime = () => view.cursor === null ? null : (story.times[view.cursor] + blockEnd(view.cursor)) / 2;

function blockAt(t) {
  if (story.times.length === 0) return null;
  return clamp(upperBound(story.times, t) - 1, 0, story.times.length - 1);
}

// `follow` moves the view so that the cursor stays in sight.
function setCursor(i, follow) {
  view.cursor = i === null || story.blocks.length === 0 ? null : clamp(i, 0, story.blocks.length - 1);
  if (follow && view.cursor !== null) {
    const t = cursorTime(), span = view.to - view.from;
    if (t < view.from || t > view.to) setView(t - span / 2, t + span / 2);
  }
  for (const chart of charts) if (chart.near) moveCursor(chart);
}

let asked = false;
function redraw() {
  view.stamp++;
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    for (const chart of charts) if (chart.near) drawChart(chart);
    watchers.forEach((watch) => watch());
  });
}

const watchers = []; // Called after the view changed.

// The columns that bars and heat maps share. Columns start at multiples of their size, so they
// keep their contents while the view pans.
let columnCache = { stamp: -1 };
function columns() {
  if (columnCache.stamp === view.stamp) return columnCache;
  const first = Math.max(0, upperBound(story.times, view.from) - 1);
  const last = upperBound(story.times, view.to);
  const per = grainAbove(((last - first) * MIN_COLUMN) / plotWidth());
  const cols = [];
  for (let a = Math.floor(first / per) * per; a < last; a += per) {
    const b = Math.min(a + per, story.blocks.length);
    cols.push(columnBox(a, b));
  }
  columnCache = { stamp: view.stamp, per, cols };
  return columnCache;
}

function grainAbove(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((n) => n * power).find((n) => Number.isInteger(n) && n >= value);
}

function columnBox(a, b) {
  const left = scaleX(story.times[a]);
  const width = Math.max(1, scaleX(blockEnd(b - 1)) - left);
  return { a, b, x: left, w: width > 4 ? width - 1 : width };
}

function grainText() {
  const { per } = columns();
  return per === 1 ? "Each column is one block." : `Each column is ${grouped.format(per)} blocks.`;
}
