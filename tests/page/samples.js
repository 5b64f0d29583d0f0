// Stories of runs, some of them hostile, huge or empty, and the pages that show them. Every story comes from a fixed seed, so that two runs write the same bytes.
"use strict";

const fs = require("fs");
const path = require("path");

const STORY = path.join(__dirname, "../../cli/src/story");

// The script as the program puts it together, which names its parts in their order.
function script() {
  const rust = fs.readFileSync(path.join(STORY, "mod.rs"), "utf8");
  const parts = Array.from(rust.matchAll(/include_str!\("(page\/\w+\.js)"\)/g), (match) => match[1]);
  return parts.map(read).join("");
}

const read = (name) => fs.readFileSync(path.join(STORY, name), "utf8");

// mulberry32: small, and good enough for samples.
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function hex(next, bytes) {
  let text = "0x";
  for (let i = 0; i < bytes; i++) text += Math.floor(next() * 256).toString(16).padStart(2, "0");
  return text;
}

// One run: validators, runners, blocks with faults that slow the chain down, jobs, logs.
function run({ seed, blocks, validators, runners, logs, jobs, graphs, faults, certified }) {
  const next = random(seed);
  const pick = (n) => Math.floor(next() * n);
  const story = {
    title: "crashes", kind: "devnet", version: "0.1.0 (abc1234)", made_at: "2026-11-29T02:00:00Z", seed, began_at: "2026-11-29T01:59:00Z",
    notes: [], verdict: null, checks: [], cycles_limit: 30000000,
    validators: Array.from({ length: validators }, (_, i) => `validator-${i}`),
    runners: Array.from({ length: runners }, (_, i) => ({ name: `runner-${i}`, address: hex(next, 20) })),
    faults, blocks: [], jobs: [], speculations: [], logs: [],
  };
  const faulty = (time) => faults.find((f) => f.from <= time && time <= (f.to ?? Infinity));
  let time = 0, basefee = 1;
  for (let i = 0; i < blocks; i++) {
    const fault = faulty(time);
    const due = pick(9), fired = Math.max(0, due - (next() < 0.2 ? pick(4) : 0));
    basefee = Math.max(1, basefee * (fired > 5 ? 1.08 : 0.97));
    const present = [], votes = {};
    for (let r = 0; r < runners; r++) {
      const joined = r % 7 === 6 ? Math.floor(blocks / 5) : 0;
      if (i < joined || (fault && r % 3 === 1) || (i + r * 13) % 97 < 6) continue;
      present.push(r);
      if (certified) votes[r] = next() < 0.8 ? validators : Math.max(1, validators - 1 - pick(2));
    }
    const block = {
      height: i + 1, time, hash: hex(next, 32), proposer: i % validators, transactions: pick(12) + (next() < 0.05 ? 60 : 0), cycles: pick(24000000), events: pick(20),
      final_after: 90 + pick(60) + (fault ? 200 + pick(500) : 0), views_abandoned: fault && next() < 0.3 ? 1 + pick(3) : 0,
      voters: story.validators.map((_, v) => v).filter((v) => !(fault && v === validators - 1) && next() > 0.01), present,
      timers: { due, fired, deferred: due - fired, basefee_wei: String(Math.round(basefee * 1e3)) },
    };
    if (certified) block.certified_present = votes;
    story.blocks.push(block);
    time += 200 + pick(60) + (fault ? 150 + pick(900) : 0);
  }
  story.length_ms = time;
  const statuses = ["verified", "verified", "verified", "failed", "expired", "open"];
  for (let i = 0; i < jobs; i++) {
    const submitted = 1 + Math.floor((i / jobs) * blocks * 0.95), status = statuses[pick(statuses.length)];
    const assigned = submitted + 1 + pick(3);
    story.jobs.push({
      id: hex(next, 32), name: i % 4 ? null : `job ${i}`, kind: ["llm", "http", "compute"][pick(3)], submitted, assigned, ended: status === "open" ? null : assigned + 2 + pick(Math.max(4, blocks / 12)),
      status, runners: runners ? [`runner-${pick(runners)}`, `runner-${pick(runners)}`] : [], candidates: 3 + pick(9), text: status === "failed" ? "two results of three differ" : null,
    });
  }
  for (let g = 0; g < graphs; g++) {
    const at = (g / graphs) * time * 0.8;
    story.speculations.push({
      id: hex(next, 16), status: g % 3 ? "confirmed" : "rolled_back",
      tasks: ["fetch", "plan", "act", "settle"].map((name, k) => ({ name, from: at + k * 700, to: g % 5 === 4 && k === 3 ? null : at + k * 700 + 300 + pick(1500), status: g % 5 === 4 && k === 3 ? "running" : g % 3 === 0 && k > 1 ? "rolled_back" : "confirmed" })),
    });
  }
  const texts = ["finalized block", "vote received from peer", "peer is not reachable: connection refused", "lease of a runner expired", "view timed out, nullify sent"];
  for (let i = 0; i < logs; i++) {
    story.logs.push({ time: Math.round((i / logs) * time), node: next() < 0.05 ? null : `validator-${pick(validators)}`, level: ["DEBUG", "INFO", "INFO", "WARN", "ERROR"][pick(5)], text: `${texts[pick(texts.length)]} height=${pick(blocks)} view=${pick(900)}` });
  }
  return story;
}

function crashes() {
  const faults = [
    { from: 9000, to: 16000, kind: "crash", target: "validator-3", text: "killed with SIGKILL, then started again" },
    { from: 13000, to: 22000, kind: "partition", target: "validator-1", text: "no packets from or to validator-0" },
    { from: 30000, to: null, kind: "slow_disk", target: "runner-2", text: "every write takes 50 ms" },
  ];
  const story = run({ seed: 7, blocks: 160, validators: 4, runners: 9, logs: 600, jobs: 44, graphs: 5, faults, certified: true });
  story.blocks.forEach((b) => { if (b.height > 100) b.time += 4000; }); // The chain halts for a while.
  story.length_ms += 4000;
  story.notes = ["the simulation's clock is virtual: one second of it may take less than one second"];
  story.checks = [
    { name: "agreement", passed: true, text: "no two validators finalized different blocks at one height" },
    { name: "liveness", passed: false, text: "no block was finalized for 4,212 ms after height 100; the limit is 3,000 ms" },
    { name: "presence", passed: true, text: "every runner that held its lease was present" },
    { name: "jobs", passed: false, text: "7 jobs of 44 failed; the limit is 5" },
  ];
  story.verdict = { passed: false, text: "2 of 4 checks failed" };
  return story;
}

function passedRun() {
  const story = run({ seed: 11, blocks: 40, validators: 4, runners: 3, logs: 80, jobs: 6, graphs: 0, faults: [], certified: false });
  story.title = "quiet network";
  story.speculations_absent = "A simulated devnet has no agent.";
  story.kind = "simulation";
  story.checks = [{ name: "agreement", passed: true, text: "all heads agree" }];
  story.verdict = { passed: true, text: "1 check passed" };
  for (const block of story.blocks) { block.final_after = null; block.views_abandoned = null; }
  return story;
}

function huge() {
  const faults = Array.from({ length: 60 }, (_, i) => ({ from: i * 40000, to: i * 40000 + 6000 + (i % 5) * 3000, kind: ["crash", "partition", "slow_link"][i % 3], target: `validator-${i % 20}`, text: "" }));
  const story = run({ seed: 3, blocks: 10000, validators: 20, runners: 1000, logs: 5000, jobs: 2000, graphs: 200, faults, certified: false });
  story.title = "huge run";
  story.notes = ["blocks 1–900 are left out: the report has the last 10,000"];
  story.checks = Array.from({ length: 60 }, (_, i) => ({ name: `check ${i}`, passed: true, text: "" }));
  return story;
}

// Every text field is markup, a control sequence or a very long word; numbers have wrong types.
function hostile() {
  const evil = (i) => [
    `<img src=x onerror="window.broken=1"><b class="from-data">x</b>`, `</script><script>window.broken=1</script><p class="from-data">`, `"><svg onload="window.broken=1" class="from-data">`,
    `\u202egnp.exe\u0000\u001b[31mred\u001b[0m`, "W".repeat(500), "<style>*{display:none}</style>", "javascript:window.broken=1", "a\nb\tc", "$& $1 /*JS*/ /*CSS*/ /*DATA*/", "<!--<script>", "constructor", "__proto__",
  ][i % 12];
  const story = run({ seed: 5, blocks: 30, validators: 4, runners: 12, logs: 60, jobs: 12, graphs: 4, faults: [], certified: true });
  story.title = evil(0) + evil(1);
  story.kind = evil(2);
  story.version = evil(1);
  story.made_at = evil(3);
  story.seed = evil(4);
  story.began_at = { deep: [evil(0)] };
  story.notes = [0, 1, 2, 3, 4, 5].map(evil);
  story.verdict = { passed: false, text: evil(1) };
  story.checks = Array.from({ length: 12 }, (_, i) => ({ name: evil(i), passed: i % 2 ? "yes" : false, text: evil(i + 1) }));
  story.validators = [evil(0), evil(1), evil(3), evil(4)];
  story.runners = Array.from({ length: 12 }, (_, i) => ({ name: evil(i), address: evil(i + 2) }));
  story.blocks.forEach((b, i) => { b.hash = evil(i); if (i % 5 === 0) { b.time = "nonsense"; b.transactions = "many"; b.voters = [-1, 99, "0", null, 1.5]; b.present = [1e9, -4, "x"]; b.certified_present = { x: "y", 1: -3, 2: 1e9 }; b.timers = "none"; } });
  story.blocks.push({ height: 1e15, time: -50, cycles: 1e300 }, { height: -3, time: 1e7 }, { height: 1e15, time: 1e300, cycles: -1e300, transactions: -9 }, null, 7);
  story.faults = Array.from({ length: 12 }, (_, i) => ({ from: i % 3 ? i * 300 : "x", to: i % 2 ? i * 300 - 900 : null, kind: evil(i), target: evil(i + 1), text: evil(i + 2) }));
  story.jobs.forEach((job, i) => { job.name = evil(i); job.id = evil(i + 1); job.kind = evil(i + 2); job.status = evil(i + 3); job.text = evil(i + 4); job.runners = [evil(i), evil(i + 1)]; job.submitted = i % 3 ? job.submitted : -5; job.ended = i % 4 ? job.ended : 1e12; });
  story.speculations.forEach((graph, i) => { graph.id = evil(i); graph.status = evil(i + 1); graph.tasks.forEach((task, k) => { task.name = evil(k + i); task.status = evil(k); if (k === 1) task.from = null; }); });
  story.logs.forEach((line, i) => { line.node = evil(i); line.level = evil(i + 1); line.text = evil(i + 2); if (i % 9 === 0) line.time = null; });
  return story;
}

function tiny() {
  return {
    title: "one block", kind: "devnet", version: "0.1.0", made_at: "2026-11-29T02:00:00Z", length_ms: 0, validators: ["validator-0"], runners: [{ name: "runner-0", address: "0x01" }], notes: [],
    blocks: [{ height: 1, time: 0, hash: "0xab", transactions: 0, voters: [0], present: [0] }], checks: [], faults: [], jobs: [], speculations: [], logs: [{ time: 0, level: "INFO", text: "started" }],
  };
}

// A many-runner run with the votes of each block, the largest form the data can take.
function votesStory() {
  const story = run({ seed: 9, blocks: 2000, validators: 20, runners: 200, logs: 1000, jobs: 100, graphs: 20, faults: [{ from: 60000, to: 90000, kind: "partition", target: "validator-4", text: "" }], certified: true });
  story.title = "votes on presence";
  return story;
}

// As the program joins them: data last, so that no placeholder in the data is replaced.
function join(story) {
  const json = typeof story === "string" ? story : JSON.stringify(story);
  return read("page/page.html").replace("/*CSS*/", () => read("page/page.css")).replace("/*JS*/", script).replace("/*DATA*/", () => json.replace(/</g, "\\u003c"));
}

const SAMPLES = { crashes, passed: passedRun, hostile, tiny, empty: () => ({}), nothing: () => "null", broken: () => "{ not json", votes: votesStory, huge };

module.exports = { SAMPLES, join, read, script };
