// Sections.
const sections = [];

function section(id, title, empty) {
  const node = el("section", { id, class: empty ? "empty" : null, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title));
  if (empty) node.append(el("p", {}, empty));
  byId("main").append(node);
  sections.push([id, title]);
  return empty ? null : node;
}

const say = (node, text) => node.append(el("p", { class: "soft" }, text));

function timeSection() {
  const dated = [story.blocks, story.faults, story.speculations, story.logs].some((items) => items.length);
  const node = section("time", "Time", dated ? null : "Nothing in this report has a time.");
  if (!node) return;
  const range = el("p", { class: "range" });
  node.append(el("div", { class: "controls", role: "group", "aria-label": "Time shown" }, node.firstChild,
    button("−", () => zoom(0.5), { "aria-label": "Zoom out", id: "zoom-out" }), button("+", () => zoom(2), { "aria-label": "Zoom in", id: "zoom-in" }),
    button("‹", () => pan(-0.5), { "aria-label": "Earlier" }), button("›", () => pan(0.5), { "aria-label": "Later" }),
    button("Whole run", () => setView(0, story.end), { id: "zoom-all" }), range));
  watchers.push(() => { range.textContent = `${time(view.from)} to ${time(view.to)} of ${time(story.end)}`; });
  const chart = addChart(node, { title: "Time since the first block", bare: true, height: axisHeight, paint: paintAxis, read: (i) => `hash ${short(story.blocks[i].hash, 20)}` });
  chart.figure.querySelector("figcaption").classList.add("hidden");
}

const axisHeight = () => 40 + 13 * faultLabels().lanes;

// The overview strip, the fault labels, the times and the heights below them.
function paintAxis(chart) {
  const labels = faultLabels(), g = chart.layers.axes, w = plotWidth();
  const a = view.gutter + (view.from / story.end) * w, b = view.gutter + (view.to / story.end) * w;
  const base = 8 + 13 * labels.lanes;
  drawBands({ ...chart, y0: 0, body: base }, labels);
  g.append(draw("rect", { class: "track", x: view.gutter, y: base, width: w, height: 3 }), draw("rect", { class: "window", x: a, y: base, width: Math.max(2, b - a), height: 3 }));
  g.append(draw("text", { x: 2, y: base + 15 }, "time"), draw("text", { x: 2, y: base + 28 }, "height"));
  const ticks = timeTicks();
  g.append(draw("path", { class: "axis", d: ticks.map((t) => `M${Math.round(scaleX(t)) + 0.5} ${base + 3}v4`).join("") }));
  for (const t of ticks) g.append(label(scaleX(t), base + 15, tickText(t, ticks), "middle"));
  for (const i of heightTicks()) g.append(label(scaleX(story.times[i]), base + 28, String(story.heights[i]), "middle", "strong"));
}

function heightTicks() {
  const first = blockAt(view.from), ticks = [];
  if (first === null) return ticks;
  let edge = -Infinity;
  const stepBy = niceAbove(((upperBound(story.times, view.to) - first) * 60) / plotWidth());
  for (let i = first; i < story.times.length && story.times[i] <= view.to; i++) {
    const x = scaleX(story.times[i]);
    const half = String(story.heights[i]).length * 3.5;
    if (x < view.gutter || (stepBy > 1 && story.heights[i] % stepBy !== 0) || x - half < edge + 6) continue;
    ticks.push(i);
    edge = x + half;
  }
  return ticks;
}

function blocksSection() {
  const node = section("blocks", "Blocks and finality", story.blocks.length ? null : "No blocks were made.");
  if (!node) return;
  say(node, "Point at a block or move to it with the arrow keys; Enter or a double click opens it. Drag to move along the axis; hold Ctrl and turn the wheel, or press + and −, to zoom.");
  const at = (name) => (i) => story.blocks[i][name];
  const finality = story.blocks.some((b) => b.finalAfter !== null);
  const views = story.blocks.some((b) => b.abandoned !== null);
  const delay = at(finality ? "finalAfter" : "interval");
  const name = finality ? "Time to finality" : "Interval since the block before";
  barChart(node, {
    title: name, format: time, series: [{ name: "mean of the column", cls: "bar-1", kind: "bar", value: delay }, { name: "largest in the column", cls: "peak", kind: "peak", value: delay }],
    marks: views ? at("abandoned") : null, legend: views ? [["views abandoned", "mark", "mark"]] : [],
    read: (i) => `${name.toLowerCase()} ${time(delay(i))}${story.blocks[i].abandoned ? `, ${count(story.blocks[i].abandoned, "view")} abandoned` : ""}`,
    table: blockTable(name, ["Since the block before", "Final after", "Views abandoned", "Proposer"], (i) => {
      const b = story.blocks[i];
      return [b.interval === null ? null : time(b.interval), b.finalAfter === null ? null : time(b.finalAfter), b.abandoned, short(validatorName(b.proposer), 30)];
    }),
  });
  barChart(node, {
    title: "Transactions per block", format: amount, series: [{ name: "mean of the column", cls: "bar-1", kind: "bar", value: at("transactions") }, { name: "largest in the column", cls: "peak", kind: "peak", value: at("transactions") }],
    read: (i) => `${story.blocks[i].transactions ?? "unknown"} transactions, ${story.blocks[i].events ?? "unknown"} events`,
    table: blockTable("Transactions per block", ["Transactions", "Events"], (i) => [story.blocks[i].transactions, story.blocks[i].events]),
  });
  cyclesChart(node);
}

function cyclesChart(node) {
  if (story.blocks.every((b) => b.cycles === null)) return say(node, "Cycles were not recorded.");
  const limit = story.cyclesLimit;
  const value = (i) => (story.blocks[i].cycles === null ? null : limit ? (100 * story.blocks[i].cycles) / limit : story.blocks[i].cycles);
  barChart(node, {
    title: limit ? `Cycles per block, in percent of the limit of ${grouped.format(limit)}` : "Cycles per block", format: limit ? (v) => `${amount(v)} %` : amount,
    series: [{ name: "mean of the column", cls: "bar-1", kind: "bar", value }, { name: "largest in the column", cls: "peak", kind: "peak", value }],
    read: (i) => (story.blocks[i].cycles === null ? "cycles unknown" : `cycles ${cyclesText(story.blocks[i].cycles)}`),
    table: blockTable("Cycles per block", ["Cycles", "Part of the limit"], (i) => [story.blocks[i].cycles, limit && value(i) !== null ? `${amount(value(i))} %` : null]),
  });
}

function presenceSection() {
  const empty = story.presence || story.votes ? null : "Neither the presence of runners nor the votes of validators were recorded.";
  const node = section("presence", "Presence and votes", empty);
  if (!node) return;
  if (story.presence) runnersChart(node);
  else say(node, story.runners.length ? "The presence of runners was not recorded." : "The run had no runners.");
  if (story.votes) votesChart(node);
  else say(node, "The votes of validators were not recorded.");
}

function runnersChart(node) {
  const matrix = story.presence;
  const shades = matrix.shares
    ? [["present, seen by all votes that could", "shade-4"], ["by 90 %", "shade-3"], ["by 2/3", "shade-2"], ["by fewer", "shade-1"]]
    : [["present", "shade-4"], ["in 90 % of the cell", "shade-3"], ["in 2/3", "shade-2"], ["in less", "shade-1"]];
  heatChart(node, {
    title: "Presence of runners", matrix, names: story.runners.map((r) => r.name), word: { many: "runners", yes: "present", no: "absent", blank: "not registered or not recorded" },
    legend: [...shades, ["absent", "absent"], ["not registered", "blank"]],
    table: memberTable("Presence of runners", matrix, ["Runner", "Address", "First seen", "Blocks present", "Blocks absent", "Present"], (m) => [
      story.runners[m].name, el("code", {}, story.runners[m].address || "–"), matrix.first[m] < story.blocks.length ? `height ${story.heights[matrix.first[m]]}` : "never"]),
  });
}

function votesChart(node) {
  heatChart(node, {
    title: "Votes of validators in the certificate", matrix: story.votes, names: story.validators, dot: (i) => story.blocks[i].proposer,
    word: { many: "validators", yes: "voted", no: "did not vote", blank: "not recorded" },
    legend: [["voted", "shade-4"], ["in 90 % of the column", "shade-3"], ["in 2/3", "shade-2"], ["in less", "shade-1"], ["did not vote", "absent"], ["proposer, when zoomed in", "proposed", "dot"]],
    table: memberTable("Votes of validators", story.votes, ["Validator", "Blocks voted", "Blocks not voted", "Voted"], (m) => [story.validators[m]]),
  });
}

function memberTable(caption, matrix, heads, before) {
  const row = (m) => {
    let here = 0, away = 0;
    for (let at = m; at < matrix.cells.length; at += matrix.width) {
      if (matrix.cells[at] === 0) away++; else if (matrix.cells[at] !== UNKNOWN) here++;
    }
    return [...before(m), here, away, here + away ? `${amount((100 * here) / (here + away))} %` : null];
  };
  return { caption, length: matrix.width, columns: heads.map((h, i) => [h, i >= heads.length - 3 ? "number" : null]), row };
}

function timersSection() {
  const has = story.blocks.some((b) => b.timers);
  const node = section("timers", "Timers and lane", has ? null : "No timers were recorded.");
  if (!node) return;
  const at = (name) => (i) => (story.blocks[i].timers ? story.blocks[i].timers[name] : null);
  const idle = story.blocks.every((b) => !b.timers || (b.timers.due === 0 && b.timers.fired === 0 && b.timers.deferred === 0));
  if (idle) say(node, "No timer was due.");
  else barChart(node, {
    title: "Timers per block", format: amount,
    series: [{ name: "fired", cls: "bar-1", kind: "bar", value: at("fired") }, { name: "deferred", cls: "bar-2", kind: "bar", value: at("deferred") }, { name: "due", cls: "due", kind: "tick", value: at("due") }],
    read: (i) => (story.blocks[i].timers ? ["fired", "due", "deferred"].map((n) => `${at(n)(i) ?? "unknown"} ${n}`).join(", ") : "not recorded"),
    table: blockTable("Timers per block", ["Due", "Fired", "Deferred"], (i) => [at("due")(i), at("fired")(i), at("deferred")(i)]),
  });
  if (story.blocks.every((b) => !b.timers || b.timers.basefee === null)) return say(node, "The basefee of the timer lane was not recorded.");
  barChart(node, {
    title: "Basefee of the timer lane, in wei", format: (v) => `${amount(v)} wei`, series: [{ name: "basefee", cls: "step", kind: "step", value: at("basefee") }],
    read: (i) => `basefee ${at("basefee")(i) === null ? "unknown" : `${amount(at("basefee")(i))} wei`}`,
    table: blockTable("Basefee of the timer lane", ["Basefee, wei"], (i) => [at("basefee")(i)]),
  });
}

const OUTCOME_LEGEND = [["succeeded", "good"], ["failed", "bad"], ["expired", "late"], ["open", "open"], ["other", "other"]];

function jobsSection() {
  const node = section("jobs", "Jobs", story.jobs.length ? null : "No jobs were submitted.");
  if (!node) return;
  const rows = story.jobs.map((job) => ({
    job, label: jobName(job), status: job.status, wait: [timeOfHeight(job.submitted), timeOfHeight(job.assigned ?? job.ended)],
    from: timeOfHeight(job.assigned ?? job.submitted), to: timeOfHeight(job.ended), read: () => jobText(job),
  }));
  rows.forEach((row, at) => { row.open = () => openJob(rows, at); });
  rowChart(node, {
    title: "Jobs from submission to end", rows, many: "jobs", size: 30, legend: [["waiting for runners", "wait", "line"], ...OUTCOME_LEGEND],
    table: {
      caption: "Jobs", length: story.jobs.length,
      columns: [["Job"], ["Kind"], ["Submitted", "number"], ["Assigned", "number"], ["Ended", "number"], ["Outcome"], ["Runners"], ["Candidates", "number"]],
      row: (i) => {
        const job = story.jobs[i];
        return [button(jobName(job), rows[i].open, { class: "link" }), job.kind, job.submitted, job.assigned, job.ended, words(job.status), names(job.runners, (n) => n), job.candidates];
      },
    },
  });
}

function jobText(job) {
  const parts = [`submitted at height ${job.submitted ?? "unknown"}`];
  if (job.assigned !== null) parts.push(`assigned at ${job.assigned}`);
  parts.push(job.ended === null ? words(job.status) : `${words(job.status)} at ${job.ended}`);
  return `${jobName(job)}, ${job.kind || "unknown kind"}: ${parts.join(", ")}`;
}

function speculationsSection() {
  const node = section("speculations", "Speculations", story.speculations.length ? null : story.unspeculative || "No pipelines were run.");
  if (!node) return;
  const rows = story.speculations.flatMap((graph) => [graphRow(graph), ...graph.tasks.map((task) => taskRow(graph, task))]);
  const tasks = story.speculations.flatMap((graph) => graph.tasks.map((task) => [graph, task]));
  rowChart(node, {
    title: "Tasks of each graph", rows, many: "rows", size: 40,
    legend: [["confirmed", "good"], ["failed or rolled back", "bad"], ["cancelled", "late"], ["not final", "open"], ["other", "other"], ["the whole graph", "wait", "line"]],
    table: {
      caption: "Tasks", length: tasks.length, columns: [["Task"], ["Graph"], ["From", "number"], ["To", "number"], ["Status"], ["Graph's status"]],
      row: (i) => [tasks[i][1].name, short(tasks[i][0].id, 24), tasks[i][1].from === null ? null : time(tasks[i][1].from), tasks[i][1].to === null ? null : time(tasks[i][1].to), words(tasks[i][1].status), words(tasks[i][0].status)],
    },
  });
}

function graphRow(graph) {
  const from = graph.tasks.map((t) => t.from).filter(isNumber).reduce((a, b) => Math.min(a, b), Infinity);
  const open = graph.tasks.some((t) => t.to === null);
  const to = open ? story.end : graph.tasks.reduce((a, t) => Math.max(a, t.to), 0);
  return {
    label: `Graph ${short(graph.id, 12)}`, head: true, status: graph.status, wait: from === Infinity ? null : [from, to], from: null, to: null,
    read: () => `Graph ${graph.id}: ${words(graph.status)}, ${count(graph.tasks.length, "task")}`, open: () => openGraph(graph),
  };
}

function taskRow(graph, task) {
  const read = () => `Task ${task.name} of ${short(graph.id, 20)}: ${words(task.status)}, from ${time(task.from)} to ${task.to === null ? "the end" : time(task.to)}`;
  return { label: task.name, indent: 12, head: true, status: task.status, from: task.from, to: task.to, read, open: () => openGraph(graph) };
}

function openGraph(graph) {
  const lines = graph.tasks.slice(0, 200).map((t) => `${t.name}: ${words(t.status)}, ${time(t.from)} to ${t.to === null ? "the end" : time(t.to)}`);
  openDialog(`Graph ${graph.id}`, [pairs([["Id", mono(graph.id)], ["Status", words(graph.status)], [`Tasks (${graph.tasks.length})`, lines.join("\n") || "none"]])]);
}

function faultsSection() {
  const node = section("faults", "Faults", story.faults.length ? null : "No faults were injected.");
  if (!node) return;
  const show = (f) => () => {
    const span = Math.max(faultEnd(f) - f.from, story.usual * 4);
    setView(f.from - span * 0.25, f.from + span * 1.25);
    setCursor(blockAt(f.from), false);
  };
  node.append(pagedTable({
    caption: "Faults", length: story.faults.length, columns: [["Fault", "brief"], ["From", "number"], ["To", "number"], ["Kind", "brief"], ["Target"], ["Text", "wide"]],
    row: (i) => {
      const f = story.faults[i];
      return [button(f.label, show(f), { class: "link", "aria-label": `Show fault ${f.label} on the time axis` }), time(f.from), f.to === null ? "not ended" : time(f.to), words(f.kind), f.target, f.text];
    },
  }));
}

function checksSection() {
  const name = story.kind === "simulation" ? "Invariants" : "Checks";
  const node = section("checks", name, story.checks.length ? null : `No ${name.toLowerCase()} were tested.`);
  if (!node) return;
  const sorted = [...story.checks].sort((a, b) => Number(a.passed) - Number(b.passed));
  const state = (c) => el("span", { class: `state ${c.passed ? "is-passed" : "is-failed"}` }, c.passed ? "✓ passed" : "✗ failed");
  node.append(pagedTable({ caption: name, length: sorted.length, columns: [["Name"], ["Result"], ["Text", "wide"]], row: (i) => [sorted[i].name, state(sorted[i]), sorted[i].text] }));
}
