// The story.
function readStory(raw) {
  const story = {
    title: clean(raw.title) || "Untitled run", kind: clean(raw.kind), version: clean(raw.version),
    madeAt: clean(raw.made_at), seed: clean(raw.seed), beganAt: clean(raw.began_at),
    notes: list(raw.notes).map(clean), verdict: readVerdict(raw.verdict),
    checks: records(raw.checks).map((c) => ({ name: clean(c.name), passed: c.passed === true, text: clean(c.text) })),
    validators: list(raw.validators).map((name, i) => clean(name) || `validator ${i}`),
    runners: list(raw.runners).map(readRunner), cyclesLimit: number(raw.cycles_limit),
    faults: records(raw.faults).map(readFault), jobs: records(raw.jobs).map(readJob),
    speculations: records(raw.speculations).map(readSpeculation), unspeculative: clean(raw.speculations_absent), logs: records(raw.logs).map(readLog),
  };
  story.blocks = readBlocks(records(raw.blocks));
  story.times = story.blocks.map((b) => b.time);
  story.heights = story.blocks.map((b) => b.height);
  story.usual = usualInterval(story.times);
  story.length = moment(raw.length_ms);
  const last = story.times.length ? story.times[story.times.length - 1] + story.usual : 0;
  const ends = story.speculations.flatMap((s) => s.tasks.flatMap((t) => [t.from, t.to])).filter(isNumber);
  story.end = Math.max(story.length || 0, last, ends.reduce((a, b) => Math.max(a, b), 0), 1);
  const submitted = (job) => job.submitted ?? Infinity;
  story.jobs.sort((a, b) => (submitted(a) < submitted(b) ? -1 : submitted(a) > submitted(b) ? 1 : 0));
  story.faults.sort((a, b) => a.from - b.from).forEach((f, i) => { f.label = `F${i + 1}`; });
  story.presence = readMatrix(story, story.runners.length, presenceOf);
  story.votes = readMatrix(story, story.validators.length, votesOf);
  story.blocks.forEach((block) => { block.raw = null; }); // The lists of a long run take hundreds of megabytes.
  return story;
}

function readVerdict(raw) {
  if (raw === null || typeof raw !== "object") return null;
  return { passed: typeof raw.passed === "boolean" ? raw.passed : null, text: clean(raw.text) };
}

// `registered` (a height) is optional: without it a runner counts as registered from the first
// block that shows it as present.
function readRunner(raw, i) {
  const runner = raw !== null && typeof raw === "object" ? raw : { name: raw };
  return { name: clean(runner.name) || `runner ${i}`, address: clean(runner.address), registered: number(runner.registered) };
}

const readFault = (raw) => ({ from: moment(raw.from) || 0, to: moment(raw.to), kind: clean(raw.kind) || "fault",
  target: clean(raw.target), text: clean(raw.text) });

function readJob(raw) {
  return {
    id: clean(raw.id), name: clean(raw.name), kind: clean(raw.kind), status: clean(raw.status) || "unknown",
    submitted: number(raw.submitted), assigned: number(raw.assigned), ended: number(raw.ended),
    runners: list(raw.runners).map(clean), candidates: number(raw.candidates), text: clean(raw.text),
  };
}

function readSpeculation(raw) {
  const task = (t) => ({ name: clean(t.name), from: moment(t.from), to: moment(t.to), status: clean(t.status) || "unknown" });
  return { id: clean(raw.id), status: clean(raw.status) || "unknown", tasks: records(raw.tasks).map(task) };
}

const readLog = (raw) => ({ time: moment(raw.time), node: clean(raw.node), level: clean(raw.level).toUpperCase() || "INFO",
  text: clean(raw.text) });

function readBlocks(raw) {
  const blocks = raw.map((b, i) => ({
    raw: b, height: number(b.height) ?? i, time: moment(b.time), hash: clean(b.hash), proposer: number(b.proposer),
    transactions: number(b.transactions), cycles: number(b.cycles), events: number(b.events),
    finalAfter: number(b.final_after), abandoned: number(b.views_abandoned), timers: readTimers(b.timers),
  }));
  blocks.sort((a, b) => a.height - b.height);
  let previous = 0; // Times never run backwards on the axis; a missing time repeats the last one.
  for (const [i, block] of blocks.entries()) {
    block.time = Math.max(previous, block.time ?? previous);
    block.interval = i === 0 ? null : block.time - previous;
    previous = block.time;
  }
  return blocks;
}

function readTimers(raw) {
  if (raw === null || typeof raw !== "object") return null;
  return { due: number(raw.due), fired: number(raw.fired), deferred: number(raw.deferred), basefee: number(raw.basefee_wei) };
}

function usualInterval(times) {
  const gaps = times.slice(1).map((t, i) => t - times[i]).filter((gap) => gap > 0).sort((a, b) => a - b);
  return gaps.length ? gaps[gaps.length >> 1] : 1000;
}

// What each member did in each block, in steps of FULL: 0 is absent, FULL is seen by all, UNKNOWN
// is not registered or not recorded. Block-major, so that one block's members are adjacent.
const UNKNOWN = 255, FULL = 200, MAX_CELLS = 1e8;

function readMatrix(story, width, read) {
  const blocks = story.blocks;
  if (width === 0 || blocks.length === 0) return null;
  if (width * blocks.length > MAX_CELLS) {
    story.notes.push("The map of presence or votes has too many cells and is left out.");
    return null;
  }
  const matrix = { width, cells: new Uint8Array(width * blocks.length).fill(UNKNOWN), first: new Int32Array(width).fill(blocks.length), known: false, shares: false };
  blocks.forEach((block, b) => read(story, block, matrix, b * width, b));
  if (!matrix.known) return null;
  for (let member = 0; member < width; member++) {
    const registered = story.runners[member] && read === presenceOf ? story.runners[member].registered : null;
    const first = registered === null ? matrix.first[member] : upperBound(story.heights, registered - 0.5);
    if (read === votesOf) continue;
    for (let b = 0; b < first; b++) matrix.cells[b * width + member] = UNKNOWN;
  }
  return matrix;
}

function presenceOf(story, block, matrix, at, b) {
  const { present, certified_present: certified } = block.raw;
  const shared = certified !== null && typeof certified === "object";
  if (!Array.isArray(present) && !shared) return;
  matrix.known = true;
  matrix.cells.fill(0, at, at + matrix.width);
  const voters = Math.max(1, list(block.raw.voters).length || story.validators.length);
  const could = block.raw.certified_could;
  // A runner connects to some of the validators, and the votes of others cannot see it.
  const ofAll = (member) => Math.max(1, (could !== null && typeof could === "object" && number(could[member])) || voters);
  const set = (member, seen) => {
    if (!(member >= 0 && member < matrix.width && Number.isInteger(member))) return;
    const votes = shared ? number(certified[member]) : null;
    if (votes !== null) matrix.shares = true;
    matrix.cells[at + member] = votes === null ? (seen ? FULL : 0) : clamp(Math.round((FULL * votes) / ofAll(member)), 1, FULL);
    if (b < matrix.first[member]) matrix.first[member] = b;
  };
  if (Array.isArray(present)) present.forEach((member) => set(member, true));
  // Without a list of those present, any vote that saw a runner counts as presence.
  else Object.keys(certified).forEach((member) => { if (number(certified[member]) > 0) set(Number(member), false); });
}

function votesOf(story, block, matrix, at) {
  if (!Array.isArray(block.raw.voters)) return;
  matrix.known = true;
  matrix.cells.fill(0, at, at + matrix.width);
  for (const voter of block.raw.voters) if (voter >= 0 && voter < matrix.width && Number.isInteger(voter)) matrix.cells[at + voter] = FULL;
}

let story; // Set once by `start`; every function below reads it.

// The time of a height; a height outside the report is drawn at the report's edge.
function timeOfHeight(height) {
  if (height === null) return null;
  const i = upperBound(story.heights, height) - 1;
  if (i < 0) return 0;
  return height > story.heights[i] && i === story.heights.length - 1 ? story.end : story.times[i];
}

// A block fills the axis up to the next block, but no more than two usual intervals: a halt of the
// chain shows as a gap.
function blockEnd(i) {
  const next = i + 1 < story.times.length ? story.times[i + 1] : story.end;
  return Math.min(Math.max(next, story.times[i]), story.times[i] + 2 * story.usual);
}

const validatorName = (i) => (i === null ? "unknown" : story.validators[i] ?? `validator ${i}`);
