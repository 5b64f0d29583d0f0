//! The runners, as the agent uses them: it picks one, sends it an errand through a validator that
//! it is connected to, and tries others when that runner fails to serve.

use crate::validator::{gateway::Gateway, node::Services, offchain_jobs::ErrandError};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::State,
    job::{filter::Scene, needs, spec::JobSpec},
    presence::view::Label,
    primitives::{Address, Hash, Height, SecretKey, codec::to_vec, keccak256},
    wire::{Body, Errand},
};
use cowboy_host::duration::Plain;
use std::{collections::BTreeMap, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

/// Runners tried with the same work when the fault is the runner's.
const RUNNERS: usize = 3;
/// Extra time beyond the work's own before a runner is called back.
const GRACE: Duration = Duration::from_secs(5);

pub(super) struct Dispatch {
    chain_id: u64,
    key: SecretKey,
    /// Time between blocks, in ms.
    block_ms: u64,
    validators: Mutex<BTreeMap<String, (Services, Gateway)>>,
    out: Mutex<BTreeMap<Address, u32>>,
    /// Counts events after which a runner may become available: blocks, ends of errands.
    occasions: watch::Sender<u64>,
}

pub(super) struct Work {
    pub(super) task: Hash,
    pub(super) attempt: u32,
    pub(super) spec: Box<JobSpec>,
    pub(super) until: Instant,
}

/// An errand's validity in blocks: a multiple of its work's time, and a margin. The agent calls its
/// runner back by the clock, and blocks may come faster.
const VALID: (u64, u64) = (4, 100);

/// Counts an errand as open while it lives; calls its runner back if the caller stops waiting.
struct OpenErrand<'a> {
    dispatch: &'a Dispatch,
    gateway: Gateway,
    runner: Address,
    errand: Hash,
}

impl Drop for OpenErrand<'_> {
    fn drop(&mut self) {
        self.gateway.call_back(&self.errand);
        if let Some(count) = self.dispatch.out.lock().get_mut(&self.runner) {
            *count = count.saturating_sub(1);
        }
        self.dispatch.stir();
    }
}

impl Dispatch {
    /// A dispatch without validators. `key` signs the errands; a block comes every `block_ms`.
    pub(super) fn new(chain_id: u64, key: SecretKey, block_ms: u64) -> Self {
        Self {
            chain_id,
            key,
            block_ms,
            validators: Mutex::default(),
            out: Mutex::default(),
            occasions: watch::Sender::default(),
        }
    }

    /// An errand for a runner; `None` if the runner has left the registry.
    fn errand(
        &self,
        work: &Work,
        body: &Body,
        turn: u32,
        to: (&Address, Height),
    ) -> Option<Errand> {
        let (runner, head) = to;
        let label = keccak256(&[&work.task.0, &work.attempt.to_be_bytes(), &turn.to_be_bytes()]);
        let runner = self.state()?.registry().get(runner)?.pubkey.clone();
        let blocks = work.spec.bounds.expected_execution_ms.div_ceil(self.block_ms);
        let deadline = head.after(blocks.saturating_mul(VALID.0).saturating_add(VALID.1));
        let content = (label, body.clone(), deadline);
        Some(Errand::signed(self.chain_id, &self.key, &runner, content))
    }

    pub(super) fn joined(&self, name: &str, services: Services, gateway: Gateway) {
        self.validators.lock().insert(name.to_owned(), (services, gateway));
        self.stir();
    }

    /// Removes a validator that has stopped; its errands are lost.
    pub(super) fn left(&self, name: &str) {
        let left = self.validators.lock().remove(name);
        if let Some((_, gateway)) = left {
            gateway.lose_errands();
        }
    }

    pub(super) fn validators(&self) -> Vec<Services> {
        self.validators.lock().values().map(|(services, _)| services.clone()).collect()
    }

    pub(super) fn is_running(&self) -> bool {
        !self.validators.lock().is_empty()
    }

    /// The state of the running validator with the highest head.
    pub(super) fn state(&self) -> Option<State> {
        let heads = self.validators().into_iter().map(|services| services.ledger.head());
        heads.max_by_key(State::height)
    }

    pub(super) fn stir(&self) {
        self.occasions.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// An eligible, connected runner with the fewest errands, and its validator.
    fn choose(&self, work: &Work, tried: &[Address]) -> Option<(Address, Gateway)> {
        let validators = self.validators.lock().clone();
        let state = self.state()?;
        let out = self.out.lock().clone();
        let scene = Scene {
            height: state.height().next(),
            phase: state.phase(),
            registry: state.registry(),
            active_jobs: &|runner| out.get(runner).copied().unwrap_or(0),
            entitlements: state.entitlements(),
            present: state.present_at(state.height().next()),
            stale: state.connectivity().stale_heartbeat_blocks,
            excluded: tried,
            reported: &[],
        };
        let able = scene.judge(&work.spec);
        let able = able.iter().filter(|verdict| verdict.dropped_by.is_none());
        let spread = |runner: &Address| keccak256(&[&work.task.0, &runner.0]);
        let mut able: Vec<_> = able.map(|verdict| verdict.runner).collect();
        able.sort_by_cached_key(|runner| (out.get(runner).copied().unwrap_or(0), spread(runner)));
        let needed: Vec<_> = needs::of(&work.spec).map(|need| Label::from(&need)).collect();
        let mut linked: BTreeMap<Address, &Gateway> = BTreeMap::new();
        for (_, gateway) in validators.values() {
            for one in gateway.connected() {
                let willing = one.withdrawn.iter().all(|label| !needed.contains(label));
                if willing && one.load.as_ref().is_none_or(|load| load.accepting_new) {
                    linked.entry(one.runner).or_insert(gateway);
                }
            }
        }
        let found = able.into_iter().find_map(|runner| Some((runner, *linked.get(&runner)?)));
        found.map(|(runner, gateway)| (runner, gateway.clone()))
    }

    /// Has the work done. Calls `given` with each runner that gets the work, and once with `None`
    /// if no suitable runner is free.
    pub(super) async fn work(
        &self,
        work: Work,
        given: impl Fn(Option<Address>),
    ) -> Result<Vec<u8>, String> {
        let body = Body::new(to_vec(&*work.spec))
            .map_err(|_| "the work, its inputs included, is too large for a frame".to_owned())?;
        let (mut tried, mut last): (Vec<Address>, Option<ErrandError>) = (Vec::new(), None);
        let (mut late, mut waits) = (false, false);
        let mut occasions = self.occasions.subscribe();
        for turn in 0_u32.. {
            occasions.mark_unchanged();
            let Some((runner, gateway)) = self.choose(&work, &tried) else {
                // Runners that failed to serve before may serve now.
                tried.clear();
                if !std::mem::replace(&mut waits, true) {
                    given(None);
                }
                if timeout_at(work.until, occasions.changed()).await.is_err() {
                    let last = last.map_or_else(String::new, |error| format!(" ({error})"));
                    return Err(format!("no runner that can do it took it in time{last}"));
                }
                continue;
            };
            let sent = self
                .errand(&work, &body, turn, (&runner, gateway.height()))
                .ok_or(ErrandError::NotConnected)
                .and_then(|errand| {
                    let id = errand.errand_id;
                    Ok((id, gateway.send_errand(&runner, errand)?))
                });
            let (errand, report) = match sent {
                Ok(sent) => sent,
                Err(error) => {
                    last = Some(error);
                    // Tried again when something has changed.
                    let _ = timeout_at(work.until, occasions.changed()).await;
                    if Instant::now() >= work.until {
                        return Err("no runner took it in time".to_owned());
                    }
                    continue;
                }
            };
            *self.out.lock().entry(runner).or_default() += 1;
            let _out = OpenErrand { dispatch: self, gateway, runner, errand };
            waits = false;
            given(Some(runner));
            let patience = Duration::from_millis(work.spec.bounds.expected_execution_ms) + GRACE;
            let until = work.until.min(Instant::now() + patience);
            let error = match timeout_at(until, report).await {
                Ok(Ok(Ok(output))) => {
                    let (got, most) = (output.len(), work.spec.bounds.max_return_bytes);
                    return match got <= most as usize {
                        true => Ok(output),
                        false => Err(format!("a result of {got} bytes, at most {most} allowed")),
                    };
                }
                Ok(Ok(Err(error))) => error,
                // The validator has stopped.
                Ok(Err(_)) => ErrandError::Lost,
                Err(_) if late || Instant::now() >= work.until => {
                    return Err(format!("no result after {}", Plain(patience)));
                }
                Err(_) => {
                    late = true;
                    ErrandError::Late
                }
            };
            if !error.is_about_the_runner() {
                return Err(error.to_string());
            }
            tracing::info!(task = %work.task, %runner, %error, "work is given to another runner");
            last = Some(error);
            tried.push(runner);
            if tried.len() >= RUNNERS {
                tried.clear();
                let _ = timeout_at(work.until, occasions.changed()).await;
            }
        }
        Err("no runner took it".to_owned())
    }
}
