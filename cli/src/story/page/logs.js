// Logs.
const LEVELS = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR"];
const levelOf = (line) => { const i = LEVELS.indexOf(line.level); return i < 0 ? 2 : i; };
const PRINTED_LINES = 300;

function logsSection() {
  const node = section("logs", "Logs", story.logs.length ? null : "No log lines were kept.");
  if (!node) return;
  const log = { shown: story.logs, active: -1, rowHeight: 22, drawn: "" };
  buildFilters(node, log);
  log.room = el("div", { class: "room" });
  log.box = el("div", { class: "lines", id: "log-lines", tabindex: 0, role: "listbox", "aria-label": "Log lines. Arrow keys move, Enter opens a line, Space shows its time on the axis." }, log.room);
  log.printed = el("pre", { class: "printed" });
  node.append(log.box, log.printed);
  log.box.addEventListener("scroll", () => drawLines(log));
  log.box.addEventListener("keydown", (event) => logKey(event, log));
  log.box.addEventListener("click", (event) => logClick(event, log));
  new ResizeObserver(() => sizeLines(log)).observe(log.box);
  watchers.push(() => { if (log.inView.checked) filterLogs(log); });
  addEventListener("beforeprint", () => { log.printed.textContent = printedLines(log); });
  filterLogs(log);
}

function buildFilters(node, log) {
  const nodes = [...new Set(story.logs.map((line) => line.node))].sort().slice(0, 2000);
  const change = () => filterLogs(log);
  log.node = el("select", { id: "log-node", onchange: change }, el("option", { value: "all" }, "all"), ...nodes.map((n) => el("option", { value: `=${n}` }, short(n, 40) || "(none)")));
  log.level = el("select", { id: "log-level", onchange: change }, ...LEVELS.map((l) => el("option", { value: l }, l.toLowerCase())));
  log.text = el("input", { id: "log-text", type: "search", autocomplete: "off", spellcheck: "false", oninput: change });
  log.inView = el("input", { type: "checkbox", onchange: change });
  log.count = el("p", { class: "soft", role: "status" });
  node.append(el("div", { class: "filters" }, el("label", {}, "Node", log.node), el("label", {}, "Level, at least", log.level), el("label", {}, "Text contains", log.text),
    el("label", { class: "check" }, log.inView, "Only the time shown"), log.count));
}

function filterLogs(log) {
  const least = LEVELS.indexOf(log.level.value), wanted = log.text.value.toLowerCase(), from = log.node.value;
  const keep = (line) => levelOf(line) >= least && (from === "all" || `=${line.node}` === from) && (wanted === "" || line.text.toLowerCase().includes(wanted))
    && (!log.inView.checked || (line.time !== null && line.time >= view.from && line.time <= view.to));
  log.shown = story.logs.filter(keep);
  log.active = -1;
  log.count.textContent = log.shown.length === 0 ? "No line matches." : `${grouped.format(log.shown.length)} of ${count(story.logs.length, "line")}`;
  log.box.scrollTop = 0;
  sizeLines(log);
}

// Browsers clamp very tall elements; no report has that many lines (16 million px / 44).
function sizeLines(log) {
  const narrow = log.box.clientWidth > 0 && log.box.clientWidth < 640;
  log.box.classList.toggle("narrow", narrow);
  log.rowHeight = narrow ? 44 : 22;
  log.room.style.height = `${log.shown.length * log.rowHeight}px`;
  log.drawn = "";
  drawLines(log);
}

function drawLines(log) {
  const first = Math.max(0, Math.floor(log.box.scrollTop / log.rowHeight) - 5);
  const last = Math.min(log.shown.length, first + Math.ceil(log.box.clientHeight / log.rowHeight) + 10);
  const key = `${first} ${last} ${log.active}`;
  if (key === log.drawn) return;
  log.drawn = key;
  const lines = [];
  for (let i = first; i < last; i++) lines.push(lineNode(log, i));
  log.room.replaceChildren(...lines);
  if (log.active >= first && log.active < last) log.box.setAttribute("aria-activedescendant", `log-${log.active}`);
  else log.box.removeAttribute("aria-activedescendant");
}

function lineNode(log, i) {
  const line = log.shown[i], level = levelOf(line);
  const node = el("div", { class: i === log.active ? "line active" : "line", id: `log-${i}`, role: "option", "aria-selected": i === log.active ? "true" : "false", "aria-setsize": log.shown.length, "aria-posinset": i + 1, "data-line": i },
    el("span", { class: "when", title: "Show this time on the axis" }, time(line.time)),
    el("span", { class: level === 4 ? "level-error" : level === 3 ? "level-warn" : "level-quiet" }, short(line.level, 6)),
    el("span", { class: "node" }, short(line.node, 60)), el("span", { class: "body" }, short(line.text, 600)));
  node.style.top = `${i * log.rowHeight}px`;
  return node;
}

function logKey(event, log) {
  const page = Math.max(1, Math.floor(log.box.clientHeight / log.rowHeight) - 1);
  const moves = { ArrowDown: log.active + 1, ArrowUp: log.active - 1, PageDown: log.active + page, PageUp: log.active - page, Home: 0, End: log.shown.length - 1 };
  if (event.ctrlKey || event.metaKey || event.altKey || log.shown.length === 0) return;
  if (Object.hasOwn(moves, event.key)) activate(log, clamp(moves[event.key], 0, log.shown.length - 1));
  else if (event.key === "Enter" && log.active >= 0) openLine(log, log.active);
  else if (event.key === " " && log.active >= 0) showTime(log.shown[log.active]);
  else return;
  event.preventDefault();
}

function activate(log, i) {
  log.active = i;
  const top = i * log.rowHeight, bottom = top + log.rowHeight;
  if (top < log.box.scrollTop) log.box.scrollTop = top;
  else if (bottom > log.box.scrollTop + log.box.clientHeight) log.box.scrollTop = bottom - log.box.clientHeight;
  drawLines(log);
}

function logClick(event, log) {
  const node = event.target.closest("[data-line]");
  if (!node) return;
  const i = Number(node.dataset.line);
  activate(log, i);
  if (event.target.classList.contains("when")) showTime(log.shown[i]);
  else openLine(log, i);
}

function showTime(line) {
  const i = line.time === null ? null : blockAt(line.time);
  if (i === null) return;
  setCursor(i, true);
  byId("announce").textContent = `The cursor is on ${blockName(i)}.`;
}

function openLine(log, i) {
  const line = log.shown[i];
  const jump = button("Show this time on the axis", () => { byId("details").close(); showTime(line); });
  openDialog("Log line", [pairs([["Time", time(line.time)], ["Level", line.level], ["Node", line.node], ["Text", mono(line.text)]]), line.time === null ? "" : jump],
    (by) => { const next = clamp(i + by, 0, log.shown.length - 1); activate(log, next); openLine(log, next); });
}

function printedLines(log) {
  const lines = log.shown.slice(0, PRINTED_LINES).map((l) => `${time(l.time).padStart(12)} ${l.level.padEnd(5)} ${l.node} ${short(l.text, 300)}`);
  if (log.shown.length > PRINTED_LINES) lines.push(`${log.shown.length - PRINTED_LINES} more lines are not printed.`);
  return lines.join("\n");
}
