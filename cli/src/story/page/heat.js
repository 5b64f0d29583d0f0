// Heat map.
const PAGE_ROWS = 40;
const SHADES = ["absent", "shade-1", "shade-2", "shade-3", "shade-4"];

function shadeOf(share) {
  if (share <= 0) return 0;
  return share >= 0.999 ? 4 : share >= 0.9 ? 3 : share >= 2 / 3 ? 2 : 1;
}

// The shades are one path each: a few nodes whatever the number of cells.
function heatChart(parent, { title, matrix, names, word, legend: items, table, dot }) {
  const shown = { from: 0, per: 1, all: names.length > PAGE_ROWS };
  const rows = () => (shown.all ? Math.ceil(names.length / shown.per) : Math.min(PAGE_ROWS, names.length - shown.from));
  const rowHeight = () => (rows() <= 24 ? 15 : 10);
  const span = (row) => {
    const a = shown.all ? row * shown.per : shown.from + row;
    return [a, Math.min(names.length, a + (shown.all ? shown.per : 1))];
  };
  const nameOf = (row, [a, b] = span(row)) => (b - a === 1 ? names[a] : `${names[a]} to ${names[b - 1]}`);
  const shortName = (row, [a, b] = span(row)) => (b - a === 1 ? names[a] : `${short(names[a], 12)} +${b - a - 1}`);
  const refresh = () => { shown.per = shown.all ? Math.ceil(names.length / 60) : 1; chart.row = null; chart.stamp = -1; drawChart(chart); };
  const spec = {
    title, legend: items, table, rows, height: () => rows() * rowHeight(),
    rowBox: (row) => ({ y: row * rowHeight(), h: rowHeight() }),
    rowAt: (y) => (y < 0 || y >= rows() * rowHeight() ? null : Math.floor(y / rowHeight())),
    paint: (chart) => {
      paintHeat(chart, heatMeans(matrix, rows(), span), rows(), rowHeight());
      drawRowNames(chart, rows(), rowHeight(), shortName, { cut: shortMiddle });
      if (dot) drawDots(chart, dot, rowHeight(), shown.from, rows(), shown.per);
    },
    read: (i) => heatCount(matrix, i, word),
    readRow: (row, i) => heatRow(matrix, nameOf(row), span(row), i, word),
    grain: () => `${grainText()} ${shown.per > 1 ? `Each row is ${shown.per} ${word.many}.` : ""}`,
  };
  if (names.length > PAGE_ROWS) spec.tools = rowPager(names.length, PAGE_ROWS, shown, word.many, () => refresh());
  shown.per = shown.all ? Math.ceil(names.length / 60) : 1;
  const chart = addChart(parent, spec);
}

// The cells of each block added up by row. Kept until the rows change, so that a redraw adds up
// rows and not members.
function rowSums(matrix, rows, span) {
  const [first, next] = span(0), last = span(rows - 1)[1], key = `${first} ${next} ${last}`;
  if (matrix.rows && matrix.rows.key === key) return matrix.rows;
  const sums = new Uint32Array(rows * story.blocks.length), known = new Uint32Array(sums.length);
  for (let b = 0; b < story.blocks.length; b++) {
    for (let m = first, from = b * matrix.width; m < last; m++) {
      const cell = matrix.cells[from + m], at = b * rows + Math.floor((m - first) / (next - first));
      if (cell === UNKNOWN) continue;
      sums[at] += cell;
      known[at]++;
    }
  }
  matrix.rows = { key, sums, known };
  return matrix.rows;
}

// The mean of each row in each column, or −1 where nothing is known.
function heatMeans(matrix, rows, span) {
  const { sums, known } = rowSums(matrix, rows, span);
  return columns().cols.map((col) => {
    const total = new Float64Array(rows), seen = new Float64Array(rows);
    for (let at = col.a * rows; at < col.b * rows; at++) {
      total[at % rows] += sums[at];
      seen[at % rows] += known[at];
    }
    return total.map((sum, row) => (seen[row] ? sum / seen[row] / FULL : -1));
  });
}

function paintHeat(chart, means, rows, h) {
  const { cols } = columns();
  const paths = SHADES.map(() => []);
  for (let row = 0; row < rows; row++) {
    const y = chart.y0 + row * h;
    for (let c = 0; c < cols.length; c++) {
      if (means[c][row] < 0) continue;
      const shade = shadeOf(means[c][row]);
      let end = c; // Neighbours of one shade join into one box, except across a gap in time.
      while (end + 1 < cols.length && means[end + 1][row] >= 0 && shadeOf(means[end + 1][row]) === shade && cols[end + 1].x - cols[end].x - cols[end].w < 1.5 && cols[c].w < 8) end++;
      const x = cols[c].x, w = cols[end].x + cols[end].w - x;
      paths[shade].push(`M${x.toFixed(1)} ${y}h${w.toFixed(1)}v${h - 1}h${(-w).toFixed(1)}z`);
      c = end;
    }
  }
  paths.forEach((d, shade) => { if (d.length) chart.layers.data.append(draw("path", { class: SHADES[shade], d: d.join("") })); });
}

function drawRowNames(chart, rows, h, nameOf, { cut = short, indent = () => 0 } = {}) {
  const every = Math.ceil(12 / h);
  for (let row = 0; row < rows; row += every) {
    const x = 2 + indent(row), letters = Math.floor((view.gutter - 6 - x) / 6.4);
    chart.layers.rows.append(label(x, chart.y0 + row * h + h / 2 + 4, cut(nameOf(row), letters)));
  }
}

// A dot marks the proposer of a block, when columns are single blocks wide enough for one.
function drawDots(chart, dot, h, from, rows, per) {
  const { cols, per: blocks } = columns();
  if (blocks > 1 || per > 1) return;
  for (const col of cols) {
    const row = (dot(col.a) ?? -1) - from;
    if (col.w >= 7 && row >= 0 && row < rows) chart.layers.data.append(draw("circle", { class: "proposed", cx: col.x + col.w / 2, cy: chart.y0 + row * h + h / 2 - 0.5, r: 2.5 }));
  }
}

function heatCount(matrix, i, word) {
  let here = 0, known = 0;
  for (let m = 0; m < matrix.width; m++) {
    const cell = matrix.cells[i * matrix.width + m];
    if (cell !== UNKNOWN) known++;
    if (cell !== UNKNOWN && cell > 0) here++;
  }
  return known ? `${here} of ${known} ${word.many} ${word.yes}` : "not recorded";
}

function heatRow(matrix, name, [a, b], i, word) {
  if (i === null) return name;
  if (b - a > 1) {
    let here = 0;
    for (let m = a; m < b; m++) if (((matrix.cells[i * matrix.width + m] + 1) & 255) > 1) here++;
    return `${name}, ${blockName(i)}: ${here} of ${b - a} ${word.yes}`;
  }
  return `${name}, ${blockName(i)}: ${heatState(matrix.cells[i * matrix.width + a], word)}`;
}

function heatState(cell, word) {
  if (cell === UNKNOWN) return word.blank;
  if (cell === 0) return word.no;
  return cell === FULL ? word.yes : `${word.yes}, seen by ${Math.round((cell / FULL) * 100)} % of the votes that could`;
}

// Buttons that page through rows. `shown` holds the first row and is changed in place.
function rowPager(total, size, shown, many, changed) {
  const say = el("span", {});
  const go = (from, all) => () => { shown.from = clamp(from(), 0, Math.max(0, total - 1)); shown.all = all; update(); changed(); };
  const back = button("Previous rows", go(() => shown.from - size, false));
  const next = button("Next rows", go(() => (shown.all ? 0 : shown.from + size), false));
  const all = shown.all === undefined ? null : button("All at once", go(() => 0, true));
  const update = () => {
    say.textContent = shown.all ? `All ${grouped.format(total)} ${many} at once.` : `${grouped.format(shown.from + 1)} to ${grouped.format(Math.min(total, shown.from + size))} of ${grouped.format(total)} ${many}.`;
    back.disabled = shown.all || shown.from === 0;
    next.disabled = !shown.all && shown.from + size >= total;
    next.textContent = shown.all ? "One row each" : "Next rows";
    if (all) all.disabled = shown.all;
  };
  update();
  return el("div", { class: "tools" }, back, next, all, say);
}
