//! The load of a scenario: transfers, jobs, timers.

use crate::{devnet::Devnet, script::Load};
use cowboy_devnet::sample::{key, spec};
use cowboy_engine::{
    actor::Budget,
    chain::{
        Payload, State,
        transaction::{CallActor, DeployActor, Transfer},
    },
    primitives::{Address, Hash, Wei},
};

/// Number of accounts that submit in turn.
const ACCOUNTS: usize = 4;
/// A job's timeout in blocks, unless the scenario sets one.
const JOB_TIMEOUT: u64 = 60;
/// Number of blocks at the end without new jobs, because those would not end in time.
const LAST_JOBS: u64 = 40;
/// Number of timers that one call schedules.
const BATCH: usize = 100;
/// Blocks after which a request without effect is repeated: its transaction was lost with the
/// validator that had it.
const PATIENCE: u64 = 12;

/// Timers that schedule their successors. Each has its own price cap, so that the lane's price
/// settles.
const BEAT: &str = r#"
def again(ctx, number):
    height = ctx.height + 1 + number % 3
    fee = 2000 + 250 * (number % 40)
    pvm_host.schedule_timer(height, str(number), gas_limit = 8000, max_fee_per_cycle = fee)

def handle_timer(ctx, payload):
    pvm_host.set_state("beats", pvm_host.get_state("beats", 0) + 1)
    again(ctx, int(payload))

def begin(ctx, payload):
    for number in range(int(payload)):
        again(ctx, number)
"#;

/// Submits the load of a scenario.
pub struct Requests {
    load: Load,
    blocks: u64,
    jobs: Vec<Hash>,
    timers: Timers,
}

enum Timers {
    Wanted,
    /// The deployment was sent at this height.
    Sent(Address, u64),
    /// The actor is deployed; more timers were requested at this height.
    Beating(Address, u64),
}

impl Requests {
    pub const fn new(load: Load, blocks: u64) -> Self {
        Self { load, blocks, jobs: Vec::new(), timers: Timers::Wanted }
    }

    pub fn jobs(&self) -> &[Hash] {
        &self.jobs
    }

    pub fn at(&mut self, devnet: &Devnet, height: u64) {
        let from = usize::try_from(height).unwrap_or(0) % ACCOUNTS;
        let to = key(&format!("account-{}", (from + 1) % ACCOUNTS)).address();
        for _ in 0..self.load.transfers {
            devnet.send(from, Payload::Transfer(Transfer { to, amount: Wei::new(7) }));
        }
        if height + LAST_JOBS < self.blocks {
            let timeout = self.load.job_timeout.unwrap_or(JOB_TIMEOUT);
            for _ in 0..self.load.jobs {
                self.jobs.extend(devnet.submit(from, spec(timeout)));
            }
        }
        if self.load.timers > 0
            && let Some(state) = devnet.cluster.running().next().map(|v| v.services().ledger.head())
        {
            self.beat(devnet, &state, height);
        }
    }

    fn beat(&mut self, devnet: &Devnet, state: &State, height: u64) {
        let deployer = key("account-0").address();
        self.timers = match self.timers {
            Timers::Sent(actor, _) if state.actor(&actor).is_some() => {
                let payload = Payload::Transfer(Transfer { to: actor, amount: Wei::cby(100_000) });
                devnet.send(1, payload);
                Timers::Beating(actor, 0)
            }
            Timers::Sent(actor, since) if height < since + PATIENCE => Timers::Sent(actor, since),
            Timers::Wanted | Timers::Sent(..) => {
                let payload = Payload::DeployActor(DeployActor { source: BEAT.to_owned() });
                let budget = Budget { cycles: 1_000_000, cells: 100_000 };
                match devnet.send_buying(0, payload, Some(budget)) {
                    Some(nonce) => Timers::Sent(Address::of_actor(&deployer, nonce), height),
                    None => Timers::Wanted,
                }
            }
            Timers::Beating(actor, since) => {
                let missing = self.load.timers.saturating_sub(state.timers().len());
                if missing < self.load.timers.div_ceil(8) || height < since + PATIENCE {
                    Timers::Beating(actor, since)
                } else {
                    for begun in (0..missing).step_by(BATCH) {
                        let payload = BATCH.min(missing - begun).to_string().into_bytes();
                        let (handler, value) = ("begin".to_owned(), Wei::ZERO);
                        let call = CallActor { actor, handler, payload, value };
                        let budget = Budget { cycles: 500_000, cells: 50_000 };
                        devnet.send_buying(0, Payload::CallActor(call), Some(budget));
                    }
                    Timers::Beating(actor, height)
                }
            }
        };
    }
}
