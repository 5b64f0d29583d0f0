//! Plays a [`Script`]: a devnet under load whose nodes and links fail according to the script.
//! Every block that a validator executes is checked.

use crate::{
    cluster::ClusterError,
    conditions::{self, Condition, Travel},
    devnet::{Devnet, Plan},
    invariant::{Invariants, Violation},
    liar::Liar,
    load::Requests,
    scenario::{self, ScenarioError},
    script::{Fault, Node, Script, Span, Who},
    witness::{Coverage, Presences, Witness},
};
use commonware_runtime::{Clock as _, Supervisor as _, deterministic::Context};
use cowboy_devnet::{
    chain::ledger::ExecutedBlock,
    consensus::{lying::Lying, presence::RunnerView, timing::Timing},
    faults::{self, Faults, Tap},
    sample::{key, validator_keys, validator_name},
    validator::node::StartError,
};
use cowboy_engine::primitives::{Hash, Height, keccak256};
use rand::RngExt as _;
use std::{
    collections::BTreeMap,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::sync::broadcast::Receiver;

/// An event of the simulation, in order.
#[derive(Debug, Clone)]
pub struct Line {
    /// Time since the beginning, on the simulation's clock.
    pub time: Duration,
    /// The newest height at that time; for a block, its own height.
    pub height: Height,
    /// The kind of event: `block`, `fault`, `heal` or `fabricated`.
    pub kind: &'static str,
    pub what: String,
    /// The block, if it is one.
    pub block: Option<Arc<ExecutedBlock>>,
}

impl PartialEq for Line {
    fn eq(&self, other: &Self) -> bool {
        let parts = |line: &Self| {
            let block = line.block.as_ref().map(|executed| (executed.hash, executed.root));
            (line.time, line.height, line.kind, line.what.clone(), block)
        };
        parts(self) == parts(other)
    }
}

impl Eq for Line {}

/// The result of a played scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Played {
    /// The lowest and the highest height of the validators at the end.
    pub heights: (Height, Height),
    /// The state root after the last requested block; zero if it was not reached.
    pub root: Hash,
    /// Hash over the stored data of `validator-0`: blocks, roots, receipts, fires, events, P.
    pub digest: Hash,
    /// Hash over everything that the runtime did: every message, every random draw, every wake-up.
    pub audit: String,
    /// Number of jobs that were accepted.
    pub submitted: usize,
    pub verified: usize,
    /// Number of blocks with their parent's certificate, and of all blocks, from height 2 on.
    pub certified: (usize, usize),
    pub presence: Coverage,
    /// Number of events of each kind.
    pub events: BTreeMap<&'static str, u64>,
    /// Duration on the simulation's clock.
    pub time: Duration,
    pub breach: Option<Breach>,
}

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// Its name, such as `fork`.
    pub invariant: &'static str,
    /// The newest height at that time.
    pub height: Height,
    /// The actual and the expected value.
    pub what: String,
}

/// Why a scenario could not be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error("{0}")]
    Panic(String),
}

/// Plays a scenario with a seed until its end, until the height `until`, or until an invariant
/// breaks. `trace` is called with each block and each fault.
pub fn play(
    script: &Script,
    seed: u64,
    until: Option<u64>,
    trace: &mut dyn FnMut(Line),
) -> Result<Played, PlayError> {
    caught(|| {
        crate::run(seed, async |context| {
            let auditor = context.auditor().clone();
            let mut player = Player::new(script, context).await?;
            let outcome = match player.run(until.unwrap_or(script.blocks), trace).await {
                Ok(()) if until.is_none_or(|until| until >= script.blocks) => {
                    player.settle(trace).await
                }
                outcome => outcome,
            };
            let breach = match outcome {
                Ok(()) => None,
                Err(error) => match error.invariant() {
                    Some(invariant) => {
                        let height = player.invariants.height();
                        Some(Breach { invariant, height, what: error.to_string() })
                    }
                    None => return Err(error),
                },
            };
            let cluster = &player.devnet.cluster;
            Ok::<_, ScenarioError>(Played {
                heights: cluster.heights(),
                root: player.invariants.root(Height::new(script.blocks)).unwrap_or_default(),
                digest: cluster.log_hash(0)?,
                audit: auditor.state(),
                submitted: player.requests.jobs().len(),
                verified: player.verified(),
                certified: cluster.parents_certified(0)?,
                presence: player.presences.coverage(),
                events: player.invariants.events().clone(),
                time: player.elapsed(),
                breach,
            })
        })
    })
}

/// Runs a simulation and turns a panic of the simulated code into an error.
fn caught<T>(simulate: impl FnOnce() -> Result<T, ScenarioError>) -> Result<T, PlayError> {
    match panic::catch_unwind(AssertUnwindSafe(simulate)) {
        Ok(outcome) => Ok(outcome?),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(PlayError::Panic(text.unwrap_or("without a word").to_owned()))
        }
    }
}

struct Awaited<'a> {
    fault: &'a Fault,
    /// The height at which it begins; `None` if it does not begin again.
    at: Option<u64>,
}

struct Ongoing {
    condition: Condition,
    until: Until,
}

#[derive(Clone, Copy)]
enum Until {
    Height(u64),
    Time(SystemTime),
    Healed,
}

struct Player<'a> {
    script: &'a Script,
    context: Context,
    began: SystemTime,
    devnet: Devnet,
    requests: Requests,
    invariants: Invariants,
    presences: Presences,
    lies: Faults,
    /// By validator: the blocks that it executes; `None` while it is down.
    watching: Vec<Option<Receiver<Arc<ExecutedBlock>>>>,
    awaited: Vec<Awaited<'a>>,
    ongoing: Vec<Ongoing>,
    links: BTreeMap<(Node, Node), Option<Travel>>,
}

impl<'a> Player<'a> {
    async fn new(script: &'a Script, mut context: Context) -> Result<Self, ScenarioError> {
        let mut plan = Plan::new(script.validators, script.runners);
        plan.pace = script.block_time;
        plan.setup.timing = Timing::new(script.block_time);
        plan.setup.genesis.params.threshold_rule = script.rule.into();
        plan.setup.link = Travel::from(script.links).between_validators();
        plan.runner_link = Travel::from(script.runner_links).to_runners();
        let (liars, witness, lies) = (script.liars.clone(), Witness::default(), Faults::new(0));
        let (watching, laid) = (witness.clone(), lies.clone());
        plan.vote = Box::new(move |validator, gateway| {
            let sight: Arc<dyn RunnerView> = Arc::new(gateway.clone());
            let view = match liars.get(&Node::Validator(validator)) {
                Some(lie) => {
                    let noise = keccak256(&[&validator.to_be_bytes()]);
                    Arc::new(Liar::new(lie.0, noise, gateway))
                }
                None => sight.clone(),
            };
            let tap = Tap::new(laid.clone(), &validator_name(validator));
            watching.of(validator, sight, Arc::new(Lying { view, tap }))
        });
        let genesis = plan.setup.genesis.state().map_err(StartError::Genesis);
        let supply = genesis.map_err(ClusterError::Start)?.supply().total();
        let mut devnet = Devnet::launch(context.child("devnet"), plan).await?;
        (0..script.runners).for_each(|runner| devnet.start_runner(runner));
        let watching =
            (0..script.validators).map(|v| scenario::watch(&devnet.cluster, v)).collect();
        let awaited = script.faults.iter().map(|fault| {
            let at = context.random_range(fault.at.from..=fault.at.to);
            Awaited { fault, at: Some(at) }
        });
        let awaited = awaited.collect();
        let links = pairs(script).into_iter().map(|(a, b)| ((a, b), Some(usual(script, a).into())));
        Ok(Self {
            script,
            began: context.current(),
            devnet,
            requests: Requests::new(script.load, script.blocks),
            invariants: Invariants::new(supply),
            presences: Presences::new(witness, script.validators, script.runners),
            lies,
            watching,
            awaited,
            ongoing: Vec::new(),
            links: links.collect(),
            context,
        })
    }

    async fn run(&mut self, until: u64, trace: &mut dyn FnMut(Line)) -> Result<(), ScenarioError> {
        let step = self.script.block_time / 2;
        let mut silent = Duration::ZERO;
        let mut height = Height::GENESIS;
        while height.get() < until.min(self.script.blocks) {
            self.context.sleep(step).await;
            self.look(trace)?;
            let now = self.invariants.height();
            self.change(now, trace).await?;
            if now > height {
                height = now;
                silent = Duration::ZERO;
                self.requests.at(&self.devnet, height.get());
                continue;
            }
            // A fault with a duration in time allows the chain to wait for the fault's end.
            let waits = self.ongoing.iter().any(|it| matches!(it.until, Until::Time(_)));
            silent = if waits { Duration::ZERO } else { silent + step };
            if silent > self.script.patience {
                return Err(ScenarioError::Stuck(height));
            }
        }
        Ok(())
    }

    /// Ends all faults. Validators that are behind catch up, and all must agree.
    async fn settle(&mut self, trace: &mut dyn FnMut(Line)) -> Result<(), ScenarioError> {
        self.awaited.clear();
        let healed: Vec<_> = self.ongoing.drain(..).map(|ongoing| ongoing.condition).collect();
        for condition in &healed {
            self.tell(trace, "heal", condition.to_string());
        }
        self.apply(trace).await?;
        let end = self.script.blocks + 1;
        let reached = self.devnet.cluster.reach(end, self.script.patience).await;
        self.look(trace)?;
        if !reached {
            return Err(ScenarioError::Stuck(self.devnet.cluster.heights().0));
        }
        if let Some(height) = self.devnet.cluster.disagreement()? {
            return Err(ScenarioError::Disagreement(height));
        }
        let cut_off = self.devnet.cluster.blocked().await?.len();
        if cut_off > 0 {
            return Err(ScenarioError::CutOff(cut_off));
        }
        for validator in self.devnet.cluster.running() {
            if let Some(alarm) = validator.services().ledger.alarm() {
                return Err(ScenarioError::Alarm(alarm));
            }
            let contradictions = validator.services().counters().conflicts;
            if contradictions > 0 {
                return Err(ScenarioError::Contradictions(contradictions));
            }
        }
        let Some(state) = self.devnet.state(0) else { return Ok(()) };
        // The block after the deadline ends open jobs.
        let overdue =
            state.open_jobs().find(|(_, job)| job.deadline().get() + 1 < state.height().get());
        overdue.map_or(Ok(()), |(job, _)| Err(ScenarioError::Overdue(*job)))
    }

    /// Checks the blocks that validators have executed since the last call.
    fn look(&mut self, trace: &mut dyn FnMut(Line)) -> Result<(), ScenarioError> {
        (0..self.watching.len()).try_for_each(|validator| self.check(validator, trace))
    }

    fn check(
        &mut self,
        validator: usize,
        trace: &mut dyn FnMut(Line),
    ) -> Result<(), ScenarioError> {
        let elapsed = self.elapsed();
        let mut newest = self.invariants.height();
        let (script, invariants, presences) =
            (self.script, &mut self.invariants, &mut self.presences);
        let blocks = self.watching[validator].as_mut();
        let checked: Result<(), Violation> = scenario::each(blocks, |executed| {
            let height = executed.block.header.height;
            invariants.check(validator, executed)?;
            for wrong in presences.check(executed)? {
                let by: Vec<_> = wrong.by.iter().map(|liar| validator_name(*liar)).collect();
                let what = format!(
                    "runner-{} is present in P({}) by {} alone",
                    wrong.runner,
                    wrong.first,
                    by.join(", ")
                );
                trace(Line { time: elapsed, height, kind: "fabricated", what, block: None });
            }
            if height > newest {
                newest = height;
                let (what, block) = (words(script, executed), Some(executed.clone()));
                trace(Line { time: elapsed, height, kind: "block", what, block });
            }
            Ok(())
        });
        Ok(checked?)
    }

    async fn change(
        &mut self,
        height: Height,
        trace: &mut dyn FnMut(Line),
    ) -> Result<(), ScenarioError> {
        let (now, time) = (height.get(), self.context.current());
        let over = |ongoing: &mut Ongoing| match ongoing.until {
            Until::Height(until) => until <= now,
            Until::Time(until) => until <= time,
            Until::Healed => false,
        };
        let over: Vec<_> = self.ongoing.extract_if(.., over).map(|it| it.condition).collect();
        for condition in &over {
            self.tell(trace, "heal", condition.to_string());
        }
        let mut changed = !over.is_empty();
        for index in 0..self.awaited.len() {
            let Awaited { fault, at: Some(at) } = self.awaited[index] else { continue };
            if at > now {
                continue;
            }
            // No node is left for it, so it is tried again with the next block.
            let who = fault.kill.or(fault.pause);
            let node = who.and_then(|who| self.draw(who));
            let Some(condition) = Condition::of(fault, node) else { continue };
            let (until, words) = match fault.lasting {
                Some(Span::Blocks(range)) => {
                    let blocks = self.context.random_range(range.from..=range.to);
                    (Until::Height(now + blocks), format!(" for {blocks} blocks"))
                }
                Some(Span::Time(span)) => {
                    (Until::Time(time + span), format!(" for {} ms", span.as_millis()))
                }
                None => (Until::Healed, String::new()),
            };
            self.tell(trace, "fault", format!("{condition}{words}"));
            self.ongoing.push(Ongoing { condition, until });
            let next = fault.every.map(|every| self.context.random_range(every.from..=every.to));
            self.awaited[index].at = next.map(|blocks| now + blocks);
            changed = true;
        }
        if changed { self.apply(trace).await } else { Ok(()) }
    }

    /// The node that a fault is about; `None` if none is available.
    fn draw(&mut self, who: Who) -> Option<Node> {
        let struck: Vec<_> = self.ongoing.iter().filter_map(|it| it.condition.node()).collect();
        let (all, room): (Vec<_>, bool) = match who {
            Who::Node(node) => return Some(node),
            Who::AnyRunner => ((0..self.script.runners).map(Node::Runner).collect(), true),
            Who::AnyValidator => {
                let down = struck.iter().filter(|node| matches!(node, Node::Validator(_))).count();
                // Fewer than a third of the validators may fail at once.
                let room = down < (self.script.validators - 1) / 3;
                ((0..self.script.validators).map(Node::Validator).collect(), room)
            }
        };
        let free: Vec<_> = all.into_iter().filter(|node| !struck.contains(node)).collect();
        if !room || free.is_empty() {
            return None;
        }
        Some(free[self.context.random_range(0..free.len())])
    }

    async fn apply(&mut self, trace: &mut dyn FnMut(Line)) -> Result<(), ScenarioError> {
        let conditions: Vec<_> = self.ongoing.iter().map(|it| it.condition.clone()).collect();
        for rule in self.lies.rules() {
            self.lies.lift(rule.id);
        }
        for condition in &conditions {
            if let Condition::Lie(node, lie, of) = condition {
                let runner = of.map(|of| (of.to_string(), key(&of.to_string()).address()));
                let lie = faults::Fault::Lie { node: node.to_string(), lie: *lie, of: runner };
                self.lies.lay(lie, None, None);
            }
        }
        for validator in 0..self.script.validators {
            let down = conditions::is_down(&conditions, Node::Validator(validator));
            let running = self.watching[validator].is_some();
            if down && running {
                self.devnet.cluster.stop(validator).await;
                // It has executed more since the last check, and will not execute that again when
                // it returns.
                self.check(validator, trace)?;
                self.watching[validator] = None;
            } else if !down && !running {
                self.devnet.cluster.start(validator)?;
                self.watching[validator] = scenario::watch(&self.devnet.cluster, validator);
            }
        }
        for runner in 0..self.script.runners {
            let down = conditions::is_down(&conditions, Node::Runner(runner));
            let running = self.devnet.runners.contains_key(&runner);
            if down && running {
                self.devnet.kill_runner(runner).await;
            } else if !down && !running {
                self.devnet.start_runner(runner);
            }
        }
        for (a, b) in pairs(self.script) {
            let wanted = conditions::travel(&conditions, usual(self.script, a), a, b);
            let current = self.links.insert((a, b), wanted).flatten();
            if current != wanted {
                self.relink(a, b, current, wanted).await?;
            }
        }
        Ok(())
    }

    async fn relink(
        &self,
        a: Node,
        b: Node,
        current: Option<Travel>,
        wanted: Option<Travel>,
    ) -> Result<(), ScenarioError> {
        match (a, b) {
            (Node::Validator(a), Node::Validator(b)) => {
                for (from, to) in [(a, b), (b, a)] {
                    if current.is_some() {
                        self.devnet.cluster.cut(from, to).await?;
                    }
                    if let Some(travel) = wanted {
                        let link = travel.between_validators();
                        self.devnet.cluster.relink(from, to, link).await?;
                    }
                }
            }
            (Node::Runner(runner), Node::Validator(validator)) => match wanted {
                None => self.devnet.cut_runner(runner, validator),
                Some(travel) => {
                    self.devnet.relink_runner(runner, validator, travel.to_runners());
                    self.devnet.restore_runner(runner, validator);
                }
            },
            (_, Node::Runner(_)) => {}
        }
        Ok(())
    }

    fn verified(&self) -> usize {
        let state = (0..self.script.validators).find_map(|v| self.devnet.state(v));
        let Some(state) = state else { return 0 };
        let is_verified =
            |job: &&Hash| state.job(job).is_some_and(|job| job.status.name() == "Verified");
        self.requests.jobs().iter().filter(is_verified).count()
    }

    fn elapsed(&self) -> Duration {
        self.context.current().duration_since(self.began).unwrap_or_default()
    }

    fn tell(&self, trace: &mut dyn FnMut(Line), kind: &'static str, what: String) {
        let (time, height) = (self.elapsed(), self.invariants.height());
        trace(Line { time, height, kind, what, block: None });
    }
}

/// All links; the second node of each is a validator.
fn pairs(script: &Script) -> Vec<(Node, Node)> {
    let mut pairs = Vec::new();
    for b in 0..script.validators {
        pairs.extend((0..b).map(|a| (Node::Validator(a), Node::Validator(b))));
        pairs.extend((0..script.runners).map(|r| (Node::Runner(r), Node::Validator(b))));
    }
    pairs
}

const fn usual(script: &Script, node: Node) -> crate::script::Links {
    match node {
        Node::Validator(_) => script.links,
        Node::Runner(_) => script.runner_links,
    }
}

fn words(script: &Script, executed: &ExecutedBlock) -> String {
    let proposer = executed.block.header.proposer;
    let proposer = (0..script.validators).find(|validator| {
        use commonware_cryptography::Signer as _;

        validator_keys(*validator).consensus.public_key().as_ref() == proposer.as_slice()
    });
    let proposer = proposer.map_or_else(|| "nobody".to_owned(), validator_name);
    let mut events: BTreeMap<&str, usize> = BTreeMap::new();
    for event in &executed.execution.events {
        *events.entry(event.kind.name()).or_default() += 1;
    }
    let events: Vec<_> = events.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let transactions = executed.execution.receipts.len();
    let fires = executed.execution.fires.len();
    format!(
        "{} root {} by {proposer}: {transactions} transactions, {fires} timers{}{}",
        short(&executed.hash),
        short(&executed.root),
        if events.is_empty() { "" } else { ", " },
        events.join(", "),
    )
}

fn short(hash: &Hash) -> String {
    hash.to_string().chars().take(14).collect()
}
