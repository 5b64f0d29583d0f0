//! A pipeline as it is written: tasks, what they depend on, what they do, what is to go wrong
//! (spec speculation.md, "In a devnet").
//!
//! ```yaml
//! name: report
//! tasks:
//!   - id: fetch
//!     job: { kind: http, work: { url: "https://example.com/price" } }
//!   - id: double
//!     depends_on: [fetch]
//!     command: [sh, -c, "tr -d '{}' | wc -c"]
//!     fault: wrong_proof
//!     attempts: 2
//! ```
//!
//! A command reads its parents' outputs as JSON on its standard input, an object by name; where a
//! job of another kind has `${fetch}` in a text of its work, the output of `fetch` stands there.
//! Whatever a pipeline comes from, [`Pipeline::check`] says whether it can stand.

use cowboy_engine::{
    job::{
        document,
        json::Json,
        spec::{JobSpec, Verification, Work},
    },
    primitives::{Address, Hash, keccak256},
    proof::Element,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use utoipa::ToSchema;

/// Tasks of a pipeline at most.
pub const MAX_TASKS: usize = 10_000;
/// Tasks that one may depend on: what the chain takes.
pub const MAX_PARENTS: usize = 16;
/// Attempts at a task at most.
pub const MAX_ATTEMPTS: u32 = 10;
/// The longest name of a pipeline or a task, in bytes.
pub const MAX_NAME_BYTES: usize = 64;
/// The longest span of a fault, and the longest claim: a day, in ms.
pub const MAX_SPAN_MS: u64 = 86_400_000;
/// The most memory that a fault may take, in MiB.
pub const MAX_FAULT_MB: u64 = 1 << 20;

/// A pipeline as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PipelineRequest)]
pub struct Pipeline {
    /// Its name, for people.
    pub name: String,
    /// Its tasks, 1 to [`MAX_TASKS`], in any order.
    pub tasks: Vec<TaskEntry>,
}

/// A task of a pipeline as it is written. It has either `command` or `job`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskEntry {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub id: String,
    /// What it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
    /// A program and its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Any job, as `job submit -f` takes it; of its terms, `work` and `bounds` count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub job: Option<Value>,
    /// What goes wrong at its first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<FaultEntry>,
    /// How often it is tried in all where it fails, or is rolled back (default 1).
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub attempts: u32,
    /// Whether the policy `checkpoint` keeps its output when it is rolled back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checkpoint: bool,
    /// What its output has to be, as text; the chain then takes the proof of no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
    /// How long the agent claims it for, in ms, up to [`MAX_SPAN_MS`] (default 600,000, or twice
    /// `claimBufferMs`); more than `claimBufferMs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_ms: Option<u64>,
    /// What the creator pays for it, in wei, from escrow, when it is complete (default 0).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reward: u64,
}

/// What a task depends on: a name, or a name and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a task's name, or {task: NAME, order_only: true}")]
pub enum Dependency {
    /// It reads the output of the task of this name.
    Reads(String),
    /// The longer form.
    Of(DependencyEntry),
}

/// The longer form of a dependency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DependencyEntry {
    /// The task's name.
    pub task: String,
    /// It only comes after that task, whose output it does not read: under the policy `selective`
    /// it survives a rollback of it.
    #[serde(default)]
    pub order_only: bool,
}

impl Dependency {
    /// The task's name.
    pub fn task(&self) -> &str {
        match self {
            Self::Reads(task) => task,
            Self::Of(entry) => &entry.task,
        }
    }

    /// Whether the task's output is not read.
    pub const fn is_order_only(&self) -> bool {
        matches!(self, Self::Of(DependencyEntry { order_only: true, .. }))
    }
}

/// What goes wrong: a name, or a name and how much.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "expected wrong_proof, wrong_output, other_tasks_proof, old_proof, crash, \
                 {slow_ms: N}, {late_event_ms: N} or {memory_mb: N}"
)]
pub enum FaultEntry {
    /// A fault that needs no number: `wrong_proof`, `wrong_output`, `other_tasks_proof`,
    /// `old_proof` or `crash`.
    Named(String),
    /// A fault with its number: `slow_ms`, `late_event_ms` or `memory_mb`.
    Of(BTreeMap<String, u64>),
}

/// What goes wrong at a task's first attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// One bit of its proof is wrong on the way to the chain: a point is on no curve.
    WrongProof,
    /// Its proof is one of another output than the one committed to.
    WrongOutput,
    /// Its proof is one of another task.
    OtherTasksProof,
    /// Its proof is one of an earlier commitment to the same output.
    OldProof,
    /// Its prover dies in the middle of its work.
    Crash,
    /// Its proof takes so much longer, in ms.
    Slow(u64),
    /// The chain's confirmation is told so much later, in ms.
    LateEvent(u64),
    /// While it is on its way, its agent has so much less memory, in MiB.
    Memory(u64),
}

impl Fault {
    const NAMES: &'static str = "wrong_proof, wrong_output, other_tasks_proof, old_proof, crash, \
                                 {slow_ms: N}, {late_event_ms: N} or {memory_mb: N}";

    /// The fault as it is written.
    pub fn describe(self) -> String {
        match self {
            Self::WrongProof => "wrong_proof".to_owned(),
            Self::WrongOutput => "wrong_output".to_owned(),
            Self::OtherTasksProof => "other_tasks_proof".to_owned(),
            Self::OldProof => "old_proof".to_owned(),
            Self::Crash => "crash".to_owned(),
            Self::Slow(ms) => format!("slow_ms: {ms}"),
            Self::LateEvent(ms) => format!("late_event_ms: {ms}"),
            Self::Memory(mb) => format!("memory_mb: {mb}"),
        }
    }

    fn read(entry: &FaultEntry) -> Result<Self, String> {
        let refused = || format!("there is no such fault: expected {}", Self::NAMES);
        match entry {
            FaultEntry::Named(name) => match name.as_str() {
                "wrong_proof" => Ok(Self::WrongProof),
                "wrong_output" => Ok(Self::WrongOutput),
                "other_tasks_proof" => Ok(Self::OtherTasksProof),
                "old_proof" => Ok(Self::OldProof),
                "crash" => Ok(Self::Crash),
                _ => Err(refused()),
            },
            FaultEntry::Of(fields) => {
                let mut fields = fields.iter();
                let (Some((name, amount)), None) = (fields.next(), fields.next()) else {
                    return Err(format!("one fault is expected: {}", Self::NAMES));
                };
                let (fault, most) = match name.as_str() {
                    "slow_ms" => (Self::Slow(*amount), MAX_SPAN_MS),
                    "late_event_ms" => (Self::LateEvent(*amount), MAX_SPAN_MS),
                    "memory_mb" => (Self::Memory(*amount), MAX_FAULT_MB),
                    _ => return Err(refused()),
                };
                match (1..=most).contains(amount) {
                    true => Ok(fault),
                    false => Err(format!("{name} is {amount}: it must lie in 1..={most}")),
                }
            }
        }
    }
}

/// Why a pipeline cannot stand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PipelineError {
    /// A name that is none.
    #[error(
        "{place} is `{name}`: expected 1 to {MAX_NAME_BYTES} letters, digits, `-`, `_` and `.`"
    )]
    Name {
        /// What bears it.
        place: String,
        /// The name.
        name: String,
    },
    /// No task, or too many.
    #[error("{0} tasks: a pipeline has 1 to {MAX_TASKS}")]
    Tasks(usize),
    /// Two tasks of one name.
    #[error("task `{0}` stands in the pipeline twice")]
    Repeated(String),
    /// A parent that is not there.
    #[error("task `{task}` depends on `{parent}`, which is not in the pipeline")]
    UnknownParent {
        /// The task.
        task: String,
        /// The parent.
        parent: String,
    },
    /// A parent that is named twice.
    #[error("task `{task}` depends on `{parent}` twice")]
    RepeatedParent {
        /// The task.
        task: String,
        /// The parent.
        parent: String,
    },
    /// Tasks that wait for one another.
    #[error("task `{0}` would wait for itself: its dependencies make a cycle")]
    Cycle(String),
    /// Too many parents.
    #[error("task `{task}` depends on {got} tasks: {MAX_PARENTS} at most")]
    Parents {
        /// The task.
        task: String,
        /// How many.
        got: usize,
    },
    /// Something else in a task.
    #[error("task `{task}`: {problem}")]
    Task {
        /// The task.
        task: String,
        /// What is wrong, and what would do.
        problem: String,
    },
}

/// A pipeline that can stand.
#[derive(Debug, Clone)]
pub struct Checked {
    /// Its name.
    pub name: String,
    /// Its tasks, as written.
    pub tasks: Vec<CheckedTask>,
    /// Positions of the tasks, each after those that it depends on.
    pub order: Vec<usize>,
}

/// A task that can stand.
#[derive(Debug, Clone)]
pub struct CheckedTask {
    /// As it was written.
    pub entry: TaskEntry,
    /// Positions of its parents, and whether only the order counts.
    pub parents: Vec<(usize, bool)>,
    /// The kind of its work.
    pub kind: &'static str,
    /// What goes wrong.
    pub fault: Option<Fault>,
}

impl Pipeline {
    /// Checks all of it.
    pub fn check(self) -> Result<Checked, PipelineError> {
        let Self { name, tasks } = self;
        let named = |place: &str, name: &str| {
            let fits = (1..=MAX_NAME_BYTES).contains(&name.len());
            let known = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
            let error = || PipelineError::Name { place: place.to_owned(), name: name.to_owned() };
            (fits && name.bytes().all(known)).then_some(()).ok_or_else(error)
        };
        named("the pipeline's name", &name)?;
        if !(1..=MAX_TASKS).contains(&tasks.len()) {
            return Err(PipelineError::Tasks(tasks.len()));
        }
        let mut places = BTreeMap::new();
        for (at, entry) in tasks.iter().enumerate() {
            named("a task's id", &entry.id)?;
            if places.insert(entry.id.clone(), at).is_some() {
                return Err(PipelineError::Repeated(entry.id.clone()));
            }
        }
        let checked = tasks.into_iter().map(|entry| CheckedTask::of(entry, &places));
        let tasks = checked.collect::<Result<Vec<_>, _>>()?;
        let order = order(&tasks)?;
        Ok(Checked { name, tasks, order })
    }
}

impl CheckedTask {
    fn of(entry: TaskEntry, places: &BTreeMap<String, usize>) -> Result<Self, PipelineError> {
        let task = || entry.id.clone();
        let problem = |problem| PipelineError::Task { task: task(), problem };
        if entry.depends_on.len() > MAX_PARENTS {
            return Err(PipelineError::Parents { task: task(), got: entry.depends_on.len() });
        }
        let (mut parents, mut seen) = (Vec::new(), BTreeSet::new());
        for dependency in &entry.depends_on {
            let parent = dependency.task();
            let at = places.get(parent).ok_or_else(|| PipelineError::UnknownParent {
                task: task(),
                parent: parent.to_owned(),
            })?;
            if !seen.insert(*at) {
                let parent = parent.to_owned();
                return Err(PipelineError::RepeatedParent { task: task(), parent });
            }
            parents.push((*at, dependency.is_order_only()));
        }
        if !(1..=MAX_ATTEMPTS).contains(&entry.attempts) {
            let got = entry.attempts;
            return Err(problem(format!("attempts is {got}: it must lie in 1..={MAX_ATTEMPTS}")));
        }
        if let Some(got) = entry.claim_ms.filter(|ms| !(1..=MAX_SPAN_MS).contains(ms)) {
            return Err(problem(format!("claim_ms is {got}: it must lie in 1..={MAX_SPAN_MS}")));
        }
        let fault = entry.fault.as_ref().map(Fault::read).transpose();
        let fault = fault.map_err(|error| problem(format!("fault: {error}")))?;
        let spec = spec(&entry, &BTreeMap::new()).map_err(problem)?;
        Ok(Self { kind: spec.work.kind().name(), parents, fault, entry })
    }

    /// What a runner is asked to do, with the outputs of those parents that it reads, by name.
    pub fn work(&self, outputs: &BTreeMap<String, Vec<u8>>) -> Result<JobSpec, String> {
        spec(&self.entry, outputs)
    }
}

/// The job that an entry stands for.
fn spec(entry: &TaskEntry, outputs: &BTreeMap<String, Vec<u8>>) -> Result<JobSpec, String> {
    let mut job = match (&entry.job, entry.command.split_first()) {
        (Some(job), None) => job.clone(),
        (None, Some((program, args))) => {
            serde_json::json!({ "kind": "custom", "work": { "program": program, "args": args } })
        }
        (None, None) => return Err("it has neither `command` nor `job`".to_owned()),
        (Some(_), Some(_)) => return Err("it has both `command` and `job`: one will do".to_owned()),
    };
    let runs_a_command = job.get("kind").and_then(Value::as_str) == Some("custom");
    if !runs_a_command && let Some(work) = job.get_mut("work") {
        fill(work, outputs);
    }
    let json = Json::parse(job.to_string().as_bytes()).map_err(|error| format!("job: {error}"))?;
    let mut spec = document::read(json).map_err(|error| format!("job.{error}"))?;
    if let Work::Custom(command) = &mut spec.work
        && !entry.depends_on.is_empty()
    {
        if command.stdin.is_some() {
            return Err("job.work.stdin: parents' outputs come there".to_owned());
        }
        command.stdin = Some(stdin(outputs));
    }
    spec.check().map_err(|error| format!("job: {error}"))?;
    // Nothing of it goes onto the chain as a job: one runner does it, and its proof says how it is
    // verified.
    spec.verification = Verification::none();
    (spec.callback, spec.required_runner_pool, spec.tee_required) = (None, None, false);
    Ok(spec)
}

/// Parents' outputs as a command reads them: a JSON object by name. An output that is JSON stands
/// there as it is, one that is other text as text without the line's end, bytes as 0x-hex.
fn stdin(outputs: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let read = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str(text)
            .unwrap_or_else(|_| Value::String(text.trim_end_matches('\n').to_owned())),
        Err(_) => Value::String(format!("0x{}", hex::encode(bytes))),
    };
    let all: Map<_, _> = outputs.iter().map(|(name, out)| (name.clone(), read(out))).collect();
    Value::Object(all).to_string().into_bytes()
}

/// Puts outputs where texts name them, `${name}`. Nothing is looked for in what is put there.
fn fill(value: &mut Value, outputs: &BTreeMap<String, Vec<u8>>) {
    let mut left = VecDeque::from([value]);
    while let Some(value) = left.pop_front() {
        match value {
            Value::String(text) => *text = filled(text, outputs),
            Value::Array(values) => left.extend(values),
            Value::Object(fields) => left.extend(fields.values_mut()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn filled(text: &str, outputs: &BTreeMap<String, Vec<u8>>) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let found = from[2..].split_once('}');
        match found.and_then(|(name, after)| Some((outputs.get(name)?, after))) {
            Some((output, after)) => {
                out.push_str(String::from_utf8_lossy(output).trim_end_matches('\n'));
                rest = after;
            }
            None => {
                out.push_str("${");
                rest = &from[2..];
            }
        }
    }
    out + rest
}

/// The tasks, each after its parents; among those that could come next, as they were written.
fn order(tasks: &[CheckedTask]) -> Result<Vec<usize>, PipelineError> {
    let mut missing: Vec<usize> = tasks.iter().map(|task| task.parents.len()).collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); tasks.len()];
    for (at, task) in tasks.iter().enumerate() {
        for (parent, _) in &task.parents {
            children[*parent].push(at);
        }
    }
    let mut next: BTreeSet<usize> = (0..tasks.len()).filter(|at| missing[*at] == 0).collect();
    let mut order = Vec::with_capacity(tasks.len());
    while let Some(at) = next.pop_first() {
        order.push(at);
        for child in &children[at] {
            missing[*child] -= 1;
            if missing[*child] == 0 {
                next.insert(*child);
            }
        }
    }
    match missing.iter().position(|missing| *missing > 0) {
        Some(at) => Err(PipelineError::Cycle(tasks[at].entry.id.clone())),
        None => Ok(order),
    }
}

/// An output as the four elements that proofs are of: both halves of its keccak256, its length,
/// and a number that keeps them apart from all others.
pub fn elements(output: &[u8]) -> [Element; 4] {
    let hash = keccak256(&[output]).0;
    let half = |bytes: &[u8]| {
        let mut whole = [0; 32];
        whole[16..].copy_from_slice(bytes);
        Element::reduce(&whole)
    };
    let length = u64::try_from(output.len()).unwrap_or(u64::MAX);
    [half(&hash[..16]), half(&hash[16..]), length.into(), OUTPUT.into()]
}

/// A task's identifier on the chain: of its agent, its pipeline's number and both names, so that
/// the same file twice makes different tasks.
pub fn task_id(agent: &Address, number: u64, pipeline: &str, task: &str) -> Hash {
    let parts = [pipeline.as_bytes(), b"\0", task.as_bytes()];
    keccak256(&[b"cowboy/task/v1", &agent.0, &number.to_be_bytes(), parts[0], parts[1], parts[2]])
}

/// "output" in ASCII.
const OUTPUT: u64 = 0x6f_75_74_70_75_74;

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_one(number: &u32) -> bool {
    *number == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(yaml: &str) -> Result<Checked, String> {
        let pipeline: Pipeline = serde_yaml::from_str(yaml).map_err(|error| error.to_string())?;
        pipeline.check().map_err(|error| error.to_string())
    }

    fn outputs(of: &[(&str, &[u8])]) -> BTreeMap<String, Vec<u8>> {
        of.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect()
    }

    #[test]
    fn tasks_stand_after_what_they_depend_on() {
        let pipeline = read(
            "name: p\ntasks:\n\
             - { id: c, depends_on: [a, { task: b, order_only: true }], command: [cat] }\n\
             - { id: b, depends_on: [a], command: [cat], fault: { slow_ms: 5 }, attempts: 2 }\n\
             - { id: a, job: { kind: http, work: { url: 'http://127.0.0.1/' } }, fault: crash }\n",
        )
        .unwrap();
        assert_eq!(pipeline.order, [2, 1, 0]);
        assert_eq!(pipeline.tasks[0].parents, [(2, false), (1, true)]);
        assert_eq!(pipeline.tasks[1].fault, Some(Fault::Slow(5)));
        assert_eq!(pipeline.tasks[2].fault, Some(Fault::Crash));
        assert_eq!(pipeline.tasks[2].kind, "http");
    }

    #[test]
    fn what_cannot_stand_is_named() {
        let check = |tasks: &str, wanted: &str| {
            let error = read(&format!("name: p\ntasks:\n{tasks}\n")).map(drop).unwrap_err();
            assert!(error.contains(wanted), "{tasks}: {error}");
        };
        check("- { id: a, command: [x] }\n- { id: a, command: [x] }", "task `a` stands in");
        check("- { id: a, command: [x], depends_on: [b] }", "depends on `b`, which is not");
        check("- { id: a, command: [x], depends_on: [a] }", "task `a` would wait for itself");
        check(
            "- { id: a, command: [x], depends_on: [b] }\n- { id: b, command: [x], depends_on: [a, a] }",
            "depends on `a` twice",
        );
        check("- { id: a }", "neither `command` nor `job`");
        check("- { id: a, command: [x], job: { kind: http } }", "both `command` and `job`");
        check("- { id: a, job: { kind: http, work: {} } }", "job.work.url");
        check("- { id: a, job: { kind: dance, work: {} } }", "dance");
        check("- { id: a, command: [x], fault: melt }", "fault: there is no such fault");
        check("- { id: a, command: [x], fault: { slow_ms: 0 } }", "slow_ms is 0");
        check("- { id: a, command: [x], attempts: 0 }", "attempts is 0");
        check("- { id: 'a b', command: [x] }", "a task's id is `a b`");
        check("- { id: a, command: [x], colour: red }", "colour");
        assert!(read("name: p\ntasks: []").unwrap_err().contains("0 tasks"));
        assert!(read("name: ''\ntasks: []").unwrap_err().contains("the pipeline's name"));
    }

    #[test]
    fn children_read_what_their_parents_wrote() {
        let pipeline = read(
            "name: p\ntasks:\n- { id: a, command: [x] }\n- { id: b, command: [x] }\n\
             - { id: c, depends_on: [a, b], command: [cat] }\n\
             - id: d\n  depends_on: [a]\n  job:\n    kind: llm\n    work:\n      model: m\n      \
             messages: [{ role: user, content: 'is ${a} odd? ${e} ${' }]\n",
        )
        .unwrap();
        let outputs = outputs(&[("a", b"{\"n\": 1}\n"), ("b", b"plain\n"), ("e", b"\xff")]);
        let Work::Custom(command) = pipeline.tasks[2].work(&outputs).unwrap().work else {
            panic!()
        };
        let read: Value = serde_json::from_slice(&command.stdin.unwrap()).unwrap();
        assert_eq!(read, serde_json::json!({ "a": { "n": 1 }, "b": "plain", "e": "0xff" }));
        let Work::Llm(work) = pipeline.tasks[3].work(&outputs).unwrap().work else { panic!() };
        assert_eq!(work.messages[0].content, "is {\"n\": 1} odd? \u{fffd} ${");
    }

    #[test]
    fn outputs_that_differ_have_other_elements() {
        let all = [elements(b""), elements(b"a"), elements(b"b")];
        assert!(all[0] != all[1] && all[1] != all[2]);
        assert_eq!(all[1][2], 1_u64.into());
    }
}
