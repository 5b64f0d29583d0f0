// The details dialog.
let step = null; // Opens the neighbour of what the dialog shows, if it has any.

function openDialog(title, nodes, neighbour) {
  const dialog = byId("details");
  byId("details-title").textContent = short(title, 90);
  byId("details-body").replaceChildren(...nodes);
  step = neighbour || null;
  byId("details-previous").hidden = byId("details-next").hidden = step === null;
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}

function pairs(items) {
  const known = items.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl", { class: "pairs" }, ...known.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value instanceof Node ? value : String(value))]));
}

function names(members, nameOf) {
  const shown = members.slice(0, 200).map(nameOf).join(", ");
  return members.length > 200 ? `${shown} and ${members.length - 200} more` : shown || "none";
}

function openBlock(i) {
  setCursor(i, true);
  const b = story.blocks[i], t = b.timers;
  openDialog(`Block ${b.height}`, [pairs([
    ["Time", time(b.time)], ["Hash", mono(b.hash)], ["Proposer", validatorName(b.proposer)],
    ["Since the block before", b.interval === null ? "" : time(b.interval)], ["Final after", b.finalAfter === null ? "" : time(b.finalAfter)],
    ["Views abandoned", b.abandoned], ["Transactions", b.transactions], ["Events", b.events],
    ["Cycles", b.cycles === null ? "" : cyclesText(b.cycles)],
    ...(story.votes ? memberPairs(story.votes, i, "Voted", "Did not vote", (m) => story.validators[m]) : []),
    ...(story.presence ? memberPairs(story.presence, i, "Runners present", "Runners absent", (m) => story.runners[m].name) : []),
    ["Timers", t && `${t.fired ?? "unknown"} fired, ${t.due ?? "unknown"} due, ${t.deferred ?? "unknown"} deferred`],
    ["Lane basefee", t && t.basefee !== null ? `${amount(t.basefee)} wei` : ""],
    ["Faults", story.faults.filter((f) => f.from <= blockEnd(i) && faultEnd(f) >= b.time).map(faultText).join("\n")],
    ["Jobs", names(story.jobs.filter((j) => [j.submitted, j.assigned, j.ended].includes(b.height)), (j) => jobAt(j, b.height))],
  ])], (by) => openBlock(clamp(view.cursor + by, 0, story.blocks.length - 1)));
}

const mono = (text) => el("code", {}, text || "unknown");
const faultText = (f) => `${f.label} ${words(f.kind)} ${f.target}`;

function memberPairs(matrix, i, yes, no, nameOf) {
  const cells = matrix.cells.subarray(i * matrix.width, (i + 1) * matrix.width);
  const here = [...cells.keys()].filter((m) => cells[m] !== UNKNOWN && cells[m] > 0), away = [...cells.keys()].filter((m) => cells[m] === 0);
  if (here.length + away.length === 0) return [];
  const nameShare = (m) => nameOf(m) + (matrix.shares && cells[m] < FULL ? ` (${Math.round((cells[m] / FULL) * 100)} % of the votes)` : "");
  return [[`${yes} (${here.length})`, names(here, nameShare)], [`${no} (${away.length})`, names(away, nameOf)]];
}

function cyclesText(cycles) {
  return story.cyclesLimit ? `${grouped.format(cycles)}, ${amount((100 * cycles) / story.cyclesLimit)} % of the limit` : grouped.format(cycles);
}

const jobName = (job) => job.name || short(job.id, 14) || "unnamed";

function jobAt(job, height) {
  const what = job.ended === height ? words(job.status) : job.assigned === height ? "assigned" : "submitted";
  return `${jobName(job)} ${what}`;
}

function heightLink(height) {
  const i = story.heights.indexOf(height);
  return height === null ? "" : i < 0 ? `height ${height}, not in the report` : blockLink(i);
}

function openJob(rows, at) {
  const job = rows[at].job;
  openDialog(`Job ${jobName(job)}`, [pairs([
    ["Outcome", words(job.status)], ["Kind", job.kind], ["Id", mono(job.id)], ["Submitted", heightLink(job.submitted)],
    ["Assigned", heightLink(job.assigned)], ["Ended", heightLink(job.ended)],
    ["Blocks until the end", job.ended !== null && job.submitted !== null ? job.ended - job.submitted : ""],
    ["Candidates in the draw", job.candidates ?? "unknown"], [`Runners (${job.runners.length})`, names(job.runners, (name) => name)], ["Text", job.text],
  ])], (by) => openJob(rows, clamp(at + by, 0, rows.length - 1)));
}

function setUpDialog() {
  byId("details-close").addEventListener("click", () => byId("details").close());
  byId("details-previous").addEventListener("click", () => step && step(-1));
  byId("details-next").addEventListener("click", () => step && step(1));
  byId("details").addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft" && step) step(-1);
    if (event.key === "ArrowRight" && step) step(1);
  });
}

// Header.
function headerSection() {
  document.title = `${short(story.title, 60)}: run report`;
  byId("product").textContent = `cowboyctl ${short(story.kind, 30) || "run"} report`;
  const facts = [
    ["Kind", story.kind], ["Version", story.version], ["Seed", story.seed], ["Began at", date(story.beganAt)], ["Made at", date(story.madeAt)],
    ["Length of the run", story.length === null ? "unknown" : time(story.length)],
    ["Blocks", blockRange()], ["Validators", grouped.format(story.validators.length)], ["Runners", grouped.format(story.runners.length)],
    ["Transactions", totalTransactions()], ["Jobs", outcomes(story.jobs)],
    ["Speculations", story.unspeculative ? "" : grouped.format(story.speculations.length)], ["Faults", grouped.format(story.faults.length)], ["Log lines", grouped.format(story.logs.length)],
  ].filter(([, value]) => value !== "");
  byId("summary").append(el("h1", {}, short(story.title, 200)), verdictBox(),
    el("dl", { class: "facts" }, ...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, short(value, 160))))));
  if (story.notes.length) byId("summary").append(el("ul", { class: "notes" }, ...story.notes.map((note) => el("li", {}, short(note, 400)))));
}

function blockRange() {
  const n = story.blocks.length;
  return n === 0 ? "0" : `${grouped.format(n)} (${story.heights[0]} to ${story.heights[n - 1]})`;
}

const totalTransactions = () => grouped.format(story.blocks.reduce((sum, b) => sum + (b.transactions || 0), 0));

function outcomes(jobs) {
  const byStatus = new Map();
  for (const job of jobs) byStatus.set(job.status, (byStatus.get(job.status) || 0) + 1);
  const parts = [...byStatus].slice(0, 6).map(([status, n]) => `${n} ${words(short(status, 20))}`);
  return jobs.length === 0 ? "0" : `${grouped.format(jobs.length)} (${parts.join(", ")})`;
}

function verdictBox() {
  const failing = story.checks.filter((check) => !check.passed);
  const passed = story.verdict && story.verdict.passed !== null ? story.verdict.passed : failing.length ? false : story.checks.length ? true : null;
  const word = passed === null ? "No verdict" : passed ? "Passed" : "Failed";
  const text = story.verdict && story.verdict.text ? story.verdict.text
    : story.checks.length === 0 ? "No checks were made." : `${story.checks.length - failing.length} of ${count(story.checks.length, "check")} passed.`;
  const sign = passed === null ? "M12 7v6M12 16v1.5" : passed ? "M7 12.5l3.5 3.5L17 8.5" : "M8 8l8 8M16 8l-8 8";
  const shape = passed === false ? "M8 2h8l6 6v8l-6 6H8l-6-6V8z" : "M12 2a10 10 0 1 0 .01 0z";
  const failures = failing.length ? el("ul", {}, ...failing.map((c) => el("li", {}, el("b", {}, short(c.name, 80)), c.text ? `: ${short(c.text, 400)}` : ""))) : null;
  return el("div", { class: `verdict ${passed === null ? "" : passed ? "passed" : "failed"}` },
    draw("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, draw("path", { d: shape }), draw("path", { d: sign })),
    el("div", {}, el("strong", {}, word), ` ${short(text, 400)}`, failures));
}
