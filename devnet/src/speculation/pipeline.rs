//! The file format of a pipeline: tasks, their dependencies, their work, and faults to inject (spec
//! speculation.md, "In a devnet").
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
//! A command reads its parents' outputs as JSON on its standard input, as an object by name. In a
//! job of another kind, `${fetch}` in any text of its work is replaced by the output of `fetch`.
//! [`Pipeline::check`] validates a pipeline from any source.

use cowboy_engine::{
    chain::tasks::MAX_PARENTS,
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

/// The maximum number of tasks in a pipeline.
pub const MAX_TASKS: usize = 10_000;
/// The maximum number of attempts at a task.
pub const MAX_ATTEMPTS: u32 = 10;
/// The longest name of a pipeline or a task, in bytes.
pub const MAX_NAME_BYTES: usize = 64;
/// The longest fault duration and the longest claim, in ms: a day.
pub const MAX_SPAN_MS: u64 = 86_400_000;
/// The most memory that a fault may take, in MiB.
pub const MAX_FAULT_MB: u64 = 1 << 20;

/// A pipeline of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PipelineRequest)]
pub struct Pipeline {
    /// Its name.
    pub name: String,
    /// Its tasks, 1 to [`MAX_TASKS`], in any order.
    pub tasks: Vec<TaskEntry>,
}

/// A task of a pipeline. It has either `command` or `job`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskEntry {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub id: String,
    /// The tasks that it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
    /// A program and its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Any job in the format of `job submit -f`; only its `work` and `bounds` are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub job: Option<Value>,
    /// A fault to inject into its first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<FaultEntry>,
    /// The maximum number of attempts, counting failures and rollbacks (default 1).
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub attempts: u32,
    /// Whether the policy `checkpoint` keeps its output after a rollback.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checkpoint: bool,
    /// The required output, as text; the chain then accepts no proof of another output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
    /// Duration of the agent's claim in ms: more than `claimBufferMs`, up to [`MAX_SPAN_MS`]
    /// (default 600,000, or twice `claimBufferMs`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_ms: Option<u64>,
    /// The creator's payment on completion, in wei, from escrow (default 0).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reward: u64,
}

/// A dependency on a task: its name, or an object with options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a task's name, or {task: NAME, order_only: true}")]
pub enum Dependency {
    /// The name of a task whose output it reads.
    Reads(String),
    /// The object form.
    Of(DependencyEntry),
}

/// A dependency with options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DependencyEntry {
    /// The task's name.
    pub task: String,
    /// Only orders the tasks, without reading the output: under the policy `selective` the task
    /// survives a rollback of this dependency.
    #[serde(default)]
    pub order_only: bool,
}

impl Dependency {
    pub fn task(&self) -> &str {
        match self {
            Self::Reads(task) => task,
            Self::Of(entry) => &entry.task,
        }
    }

    pub const fn is_order_only(&self) -> bool {
        matches!(self, Self::Of(DependencyEntry { order_only: true, .. }))
    }
}

/// A fault to inject: a name, or a name with an amount.
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

/// A fault at a task's first attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskFault {
    /// One bit of its proof is flipped on the way to the chain, so that a point is not on its
    /// curve.
    WrongProof,
    /// Its proof is for another output than the committed one.
    WrongOutput,
    OtherTasksProof,
    /// Its proof is for an earlier commitment to the same output.
    OldProof,
    Crash,
    /// Its proof takes this much longer, in ms.
    Slow(u64),
    /// The chain's confirmation is reported this much later, in ms.
    LateEvent(u64),
    /// Its agent has this much less memory while the task is running, in MiB.
    Memory(u64),
}

impl TaskFault {
    const NAMES: &'static str = "wrong_proof, wrong_output, other_tasks_proof, old_proof, crash, \
                                 {slow_ms: N}, {late_event_ms: N} or {memory_mb: N}";

    /// The fault in the form of the file.
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

/// Why a pipeline is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PipelineError {
    #[error(
        "{place} is `{name}`: expected 1 to {MAX_NAME_BYTES} letters, digits, `-`, `_` and `.`"
    )]
    Name { place: String, name: String },
    #[error("{0} tasks: a pipeline has 1 to {MAX_TASKS}")]
    Tasks(usize),
    #[error("task `{0}` is in the pipeline twice")]
    Repeated(String),
    #[error("task `{task}` depends on `{parent}`, which is not in the pipeline")]
    UnknownParent { task: String, parent: String },
    #[error("task `{task}` depends on `{parent}` twice")]
    RepeatedParent { task: String, parent: String },
    #[error("task `{0}` would wait for itself: its dependencies make a cycle")]
    Cycle(String),
    #[error("task `{task}` depends on {got} tasks: {MAX_PARENTS} at most")]
    Parents { task: String, got: usize },
    #[error("task `{task}`: {problem}")]
    Task { task: String, problem: String },
}

/// A pipeline that [`Pipeline::check`] has accepted.
#[derive(Debug, Clone)]
pub struct Checked {
    pub name: String,
    /// The tasks in the order of the file.
    pub tasks: Vec<CheckedTask>,
    /// Positions of the tasks in an order in which each comes after its parents.
    pub order: Vec<usize>,
}

/// A task of a [`Checked`] pipeline.
#[derive(Debug, Clone)]
pub struct CheckedTask {
    pub entry: TaskEntry,
    /// Positions of its parents, each with its `order_only` flag.
    pub parents: Vec<(usize, bool)>,
    pub kind: &'static str,
    pub fault: Option<TaskFault>,
}

impl Pipeline {
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
        let fault = entry.fault.as_ref().map(TaskFault::read).transpose();
        let fault = fault.map_err(|error| problem(format!("fault: {error}")))?;
        let spec = spec(&entry, &BTreeMap::new()).map_err(problem)?;
        Ok(Self { kind: spec.work.kind().name(), parents, fault, entry })
    }

    /// The job for a runner, given the outputs of those parents that it reads, by name.
    pub fn work(&self, outputs: &BTreeMap<String, Vec<u8>>) -> Result<JobSpec, String> {
        spec(&self.entry, outputs)
    }
}

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
    // It never becomes a job on the chain: one runner does it, and its proof replaces verification.
    spec.verification = Verification::none();
    (spec.callback, spec.required_runner_pool, spec.tee_required) = (None, None, false);
    Ok(spec)
}

/// Parents' outputs as a command reads them: a JSON object by name. A JSON output is inserted as it
/// is, other text as a string without the trailing newline, and bytes as 0x-hex.
fn stdin(outputs: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let read = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str(text)
            .unwrap_or_else(|_| Value::String(text.trim_end_matches('\n').to_owned())),
        Err(_) => Value::String(format!("0x{}", hex::encode(bytes))),
    };
    let all: Map<_, _> = outputs.iter().map(|(name, out)| (name.clone(), read(out))).collect();
    Value::Object(all).to_string().into_bytes()
}

/// Replaces `${name}` in texts by outputs. Inserted outputs are not searched again.
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

/// The positions of the tasks, each after its parents and otherwise in the order of the file.
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

/// An output as the four field elements that proofs cover: both halves of its keccak256, its
/// length, and a constant that separates them from all other uses.
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

/// A task's identifier on the chain, derived from its agent, its pipeline's number and both names,
/// so that running the same file twice makes different tasks.
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
        assert_eq!(pipeline.tasks[1].fault, Some(TaskFault::Slow(5)));
        assert_eq!(pipeline.tasks[2].fault, Some(TaskFault::Crash));
        assert_eq!(pipeline.tasks[2].kind, "http");
    }

    #[test]
    fn what_cannot_stand_is_named() {
        let check = |tasks: &str, wanted: &str| {
            let error = read(&format!("name: p\ntasks:\n{tasks}\n")).map(drop).unwrap_err();
            assert!(error.contains(wanted), "{tasks}: {error}");
        };
        check("- { id: a, command: [x] }\n- { id: a, command: [x] }", "task `a` is in the");
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
