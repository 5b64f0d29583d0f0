// Rows of bars in time (jobs, speculations).
const OUTCOMES = {
  good: ["verified", "completed", "settled", "confirmed", "passed", "done", "ok", "success", "succeeded", "paid"],
  bad: ["failed", "rolled_back", "rejected", "slashed", "error", "aborted", "disputed"],
  late: ["expired", "timeout", "timed_out", "cancelled", "canceled", "late"],
  open: ["open", "running", "pending", "assigned", "submitted", "waiting", "proving", "proved"],
};

function outcome(status) {
  const key = status.toLowerCase().replace(/[ -]/g, "_");
  return Object.keys(OUTCOMES).find((name) => OUTCOMES[name].includes(key)) || "other";
}

// rows: [{label, indent?: px, head?, wait?: [from, to], from, to, status, open(), read()}]; times may be null.
function rowChart(parent, { title, rows: all, many, size, legend: items, table }) {
  const shown = { from: 0, rows: all };
  const h = 19;
  const rows = () => Math.min(size, shown.rows.length - shown.from);
  const rowOf = (row) => shown.rows[shown.from + row];
  const refresh = () => { chart.row = null; chart.stamp = -1; drawChart(chart); };
  const tools = el("div", {});
  const filter = () => {
    tools.querySelector(".tools")?.remove();
    if (shown.rows.length > size) tools.append(rowPager(shown.rows.length, size, shown, many, refresh));
  };
  filter();
  if (all.every((row) => !row.head)) tools.prepend(outcomeSelect(all, (chosen) => { shown.rows = chosen; shown.from = 0; filter(); refresh(); }));
  const chart = addChart(parent, {
    title, legend: items, table, tools, rows, height: () => Math.max(1, rows()) * h,
    rowBox: (row) => ({ y: row * h, h }),
    rowAt: (y) => (y < 0 || y >= rows() * h ? null : Math.floor(y / h)),
    paint: (chart) => {
      drawRowNames(chart, rows(), h, (row) => rowOf(row).label, { indent: (row) => rowOf(row).indent || 0 });
      for (let row = 0; row < rows(); row++) drawRow(chart, rowOf(row), chart.y0 + row * h, h);
    },
    read: (i) => `${story.blocks[i].transactions ?? "unknown"} transactions`,
    readRow: (row) => rowOf(row).read(),
    openRow: (row) => rowOf(row).open(),
  });
}

function outcomeSelect(all, changed) {
  const statuses = [...new Set(all.map((row) => row.status))].sort();
  const options = ["", ...statuses].map((s) => el("option", { value: s }, s ? short(words(s), 24) : "all"));
  const select = el("select", { onchange: () => changed(select.value ? all.filter((row) => row.status === select.value) : all) }, ...options);
  return el("label", { class: "outcome" }, "Outcome ", select);
}

function drawRow(chart, row, y, h) {
  const middle = y + h / 2;
  const edge = (t) => clamp(scaleX(t), view.gutter, view.width - PAD);
  if (row.wait && row.wait[0] !== null && row.wait[1] !== null) {
    chart.layers.data.append(draw("path", { class: "wait", d: `M${edge(row.wait[0]).toFixed(1)} ${middle}H${edge(row.wait[1]).toFixed(1)}` }));
  }
  if (row.from === null) return;
  const x1 = edge(row.from), x2 = Math.max(edge(row.to ?? story.end), x1 + 3);
  const out = row.from > view.to || (row.to ?? story.end) < view.from;
  if (out) {
    const later = row.from > view.to;
    chart.layers.data.append(label(later ? view.width - PAD : view.gutter + 3, middle + 4, later ? "later ›" : "‹ earlier", later ? "end" : "start"));
    return;
  }
  chart.layers.data.append(draw("path", { class: outcome(row.status), d: `M${x1.toFixed(1)} ${y + 4}H${x2.toFixed(1)}V${y + h - 4}H${x1.toFixed(1)}Z` }));
  const text = short(words(row.status), 16), width = text.length * 6 + 4;
  const right = x2 + width < view.width;
  const left = row.wait && row.wait[0] !== null ? Math.min(x1, edge(row.wait[0])) : x1;
  if (right || left - width > view.gutter) chart.layers.data.append(label(right ? x2 + 4 : left - 4, middle + 4, text, right ? "start" : "end", "strong"));
}

// Tables.
const TABLE_ROWS = 100;
// columns: [[heading, class?]]; rows: a function of the number of rows and one of the cells of a row.
function pagedTable({ caption, columns: heads, length, row }) {
  const body = el("tbody", {});
  const table = el("table", {}, el("caption", { class: "hidden" }, caption),
    el("thead", {}, el("tr", {}, ...heads.map(([name, cls]) => el("th", { scope: "col", class: cls }, name)))), body);
  const shown = { from: 0 };
  const fill = () => {
    body.replaceChildren();
    for (let i = shown.from; i < Math.min(length, shown.from + TABLE_ROWS); i++) body.append(tableRow(row(i), heads));
  };
  fill();
  const box = el("div", { class: length > 12 ? "scroll tall" : "scroll", tabindex: 0, role: "region", "aria-label": caption }, table);
  return el("div", {}, length > TABLE_ROWS ? rowPager(length, TABLE_ROWS, shown, "rows", () => { fill(); box.scrollTop = 0; }) : null, box);
}

function tableRow(cells, heads) {
  return el("tr", {}, ...cells.map((cell, c) => el(c === 0 ? "th" : "td", { scope: c === 0 ? "row" : null, class: heads[c][1] },
    cell instanceof Node ? cell : cell === null || cell === undefined ? "–" : String(cell))));
}

// The table behind a chart, made when it is first opened.
function tableDetails(table) {
  const details = el("details", {}, el("summary", {}, "As a table"));
  details.addEventListener("toggle", () => details.open && details.children.length === 1 && details.append(pagedTable(table)));
  return details;
}

function blockTable(caption, columnsAfter, cells) {
  return {
    caption, length: story.blocks.length,
    columns: [["Height", "number"], ["Time", "number"], ...columnsAfter.map((name) => [name, "number"])],
    row: (i) => [blockLink(i), time(story.times[i]), ...cells(i).map((v) => (typeof v === "number" ? amount(v) : v))],
  };
}

const blockLink = (i) => button(String(story.heights[i]), () => openBlock(i), { class: "link", "aria-label": `Open block ${story.heights[i]}` });
