//! Validators whose votes lie about presence, with real gateways and runners around them.
//!
//! [`feasibility`] gives the guarantees of the rules: a runner that no honest validator sees stays
//! absent while there are fewer liars than it takes to fabricate one, and a runner connected to its
//! whole subset stays present while there are fewer than it takes to hide one. Each seed gives a
//! number of validators, a rule, a kind of lie and the liars. 504 seeds cover every combination;
//! `COWBOYCTL_BYZANTINE_SEEDS` plays fewer or more, the largest numbers of liars first.

use super::*;
use cowboy_devnet::sample::validator_keys;
use cowboy_engine::presence::{ThresholdRule, canonical, feasibility, subset};
use cowboy_simulation::{
    devnet::{Devnet, Plan, runner_key, validator_key},
    liar::{Liar, Lie},
};

/// Length of a run.
const BLOCKS: u64 = 12;
/// From this block on, connections are up and pings have arrived, so every runner that can be
/// present is.
const WARM: u64 = 5;
/// The height at which one runner is killed.
const KILLED_AT: u64 = 7;
/// Its connections end while the next block is voted on; from this block on no validator sees it.
const GONE_AT: u64 = KILLED_AT + 3;

/// Runners `0..FIRST_CUT` never start.
const FIRST_CUT: usize = 2;
/// It is connected only to liars.
const CUT_FROM_HONEST: usize = FIRST_CUT;
/// It is connected to one honest validator of its subset, and to the liars in the subset.
const ONE_HONEST: usize = 3;
/// It is connected to its whole subset, until it is killed.
const KILLED: usize = 4;
/// Later runners are connected to their whole subset all the time.
const RUNNERS: usize = 7;

#[derive(Debug, Clone)]
struct Case {
    seed: u64,
    validators: usize,
    rule: ThresholdRule,
    lie: Lie,
    liars: BTreeSet<usize>,
}

impl Case {
    /// 72 consecutive seeds cover every combination of size, rule and lie; the number of liars
    /// differs between such rows.
    fn of(seed: u64) -> Self {
        let mut rest = seed;
        let mut draw = |of: usize| {
            let drawn = rest as usize % of;
            rest /= of as u64;
            drawn
        };
        let validators = [4, 7, 10][draw(3)];
        let rule = ThresholdRule::ALL[draw(3)];
        let lie = Lie::ALL[draw(Lie::ALL.len())];
        let most = (validators - 1) / 3;
        let count = most - draw(most + 1);
        let mut lots: Vec<_> = (0..validators).collect();
        lots.sort_by_key(|v| keccak256(&[&seed.to_be_bytes(), &v.to_be_bytes()]));
        Self { seed, validators, rule, lie, liars: lots.into_iter().take(count).collect() }
    }

    fn plan(&self) -> Plan {
        let mut plan = Plan::new(self.validators, RUNNERS);
        plan.setup.genesis.params.threshold_rule = self.rule;
        let case = self.clone();
        plan.vote = Box::new(move |validator, gateway| -> Arc<dyn RunnerView> {
            if !case.liars.contains(&validator) {
                return Arc::new(gateway);
            }
            let noise = keccak256(&[&case.seed.to_be_bytes(), &validator.to_be_bytes()]);
            Arc::new(Liar::new(case.lie, noise, gateway))
        });
        plan
    }

    fn subset(&self, runner: usize) -> Vec<usize> {
        let validators: Vec<_> = (0..self.validators).map(validator_key).collect();
        subset::of(&runner_key(runner).public_key(), &validators)
    }

    fn honest_in_subset(&self, runner: usize) -> impl Iterator<Item = usize> {
        self.subset(runner).into_iter().filter(|validator| !self.liars.contains(validator))
    }

    /// The maximum number of honest validators that may see the runner in a block.
    fn seen_by(&self, runner: usize, height: u64) -> u32 {
        let most = match runner {
            ..=CUT_FROM_HONEST => 0,
            ONE_HONEST => 1,
            KILLED if height >= GONE_AT => 0,
            _ => usize::MAX,
        };
        self.honest_in_subset(runner).take(most).count() as u32
    }

    /// The number of liars whose votes may make the runner present: those of its subset, if the
    /// rule counts only these.
    fn liars_about(&self, runner: usize) -> u32 {
        let subset = self.subset(runner);
        let counts = |liar: &&usize| self.rule != ThresholdRule::Subset || subset.contains(*liar);
        self.liars.iter().filter(counts).count() as u32
    }

    /// Whether the liars' votes cannot make the runner present in a block.
    fn is_absent(&self, runner: usize, height: u64) -> bool {
        let (n, liars) = (self.validators as u32, self.liars_about(runner));
        match (self.seen_by(runner, height), self.rule) {
            (0, _) => liars < feasibility::to_fabricate(n, self.rule),
            // The rule requires that many of the whole committee's votes.
            (seen, ThresholdRule::Committee) => seen + liars < canonical::of(n),
            (seen, ThresholdRule::Quorum) => seen + liars < canonical::of(canonical::quorum(n)),
            (_, ThresholdRule::Subset) => false,
        }
    }

    /// Whether the liars' votes cannot make the runner absent in a block.
    fn is_present(&self, runner: usize, height: u64) -> bool {
        let connected = runner > KILLED || (runner == KILLED && height <= KILLED_AT);
        let liars = self.subset(runner).iter().filter(|v| self.liars.contains(v)).count() as u32;
        let n = self.validators as u32;
        height >= WARM && connected && liars < feasibility::to_hide(n, self.rule)
    }

    async fn run(&self, context: deterministic::Context) -> Seen {
        let mut devnet = Devnet::launch(context, self.plan()).await.expect("a devnet");
        for runner in FIRST_CUT..RUNNERS {
            let heard = match runner {
                CUT_FROM_HONEST => 0,
                ONE_HONEST => 1,
                _ => usize::MAX,
            };
            for validator in self.honest_in_subset(runner).skip(heard) {
                devnet.cut_runner(runner, validator);
            }
            devnet.start_runner(runner);
        }
        assert!(devnet.cluster.reach(KILLED_AT, MINUTE).await, "stuck: {self:?}");
        devnet.runners.remove(&KILLED).expect("it runs").kill().await;
        assert!(devnet.cluster.reach(BLOCKS + 1, MINUTE).await, "stuck: {self:?}");
        let mut seen = Seen::default();
        for validator in (0..self.validators).filter(|v| !self.liars.contains(v)) {
            self.check(&devnet.cluster, validator, &mut seen);
        }
        settle(&devnet.cluster).await;
        seen
    }

    /// Checks every P of an honest validator against the rule's guarantees.
    fn check(&self, cluster: &Cluster, validator: usize, seen: &mut Seen) {
        let state = cluster.validator(validator).expect("it runs").services().ledger.head();
        let liars: Vec<_> =
            self.liars.iter().map(|liar| validator_keys(*liar).public().consensus_key).collect();
        let committee = state.committee();
        let is_liar = |vote: u32| liars.contains(&committee[vote as usize].consensus_key);
        let store = cluster.store(validator);
        for height in 1..=BLOCKS {
            let Some(presence) = store.presence(Height::new(height)).expect("it answers") else {
                continue;
            };
            let bitmap = presence.bitmap().expect("a bitmap");
            seen.blocks += 1;
            let votes = presence.certificate().expect("a certificate").votes;
            let order = presence.registry.as_slice();
            seen.lies += votes.iter().filter(|vote| is_liar(vote.validator)).count();
            for runner in 0..RUNNERS {
                let address = runner_key(runner).address();
                let index = order.iter().position(|one| *one == address).expect("registered");
                let present = bitmap.get(index as u32);
                let at = || format!("runner {runner} at {height}, validator {validator}: {self:?}");
                if self.is_absent(runner, height) {
                    seen.absent += 1;
                    assert!(!present, "fabricated: {}", at());
                }
                if self.is_present(runner, height) {
                    seen.present += 1;
                    assert!(present, "hidden: {}", at());
                }
            }
        }
    }
}

/// Counts of what was checked.
#[derive(Debug, Default)]
struct Seen {
    /// Number of blocks whose P was checked.
    blocks: usize,
    /// Number of liars' votes in their certificates.
    lies: usize,
    /// Number of times that a runner had to be absent in a block.
    absent: usize,
    /// Number of times that a runner had to be present in a block.
    present: usize,
}

fn play(seeds: impl Iterator<Item = u64>) {
    let mut all = Seen::default();
    for seed in seeds {
        let case = Case::of(seed);
        let seen = run(seed, async |context| case.run(context).await);
        let expected = BLOCKS as usize * (case.validators - case.liars.len());
        assert!(seen.blocks * 10 >= expected * 9, "few certificates: {seen:?}, {case:?}");
        all.blocks += seen.blocks;
        all.lies += seen.lies;
        all.absent += seen.absent;
        all.present += seen.present;
    }
    assert!(all.lies > 0 && all.absent > 0 && all.present > 0, "nothing was checked: {all:?}");
}

/// Ten tests with a tenth of the seeds each, so that they run in parallel.
macro_rules! tenths {
    ($($name:ident: $tenth:literal),*) => {$(
        #[test]
        fn $name() {
            let seeds = seeds("COWBOYCTL_BYZANTINE_SEEDS", 504);
            play($tenth * seeds / 10..($tenth + 1) * seeds / 10);
        }
    )*};
}

tenths! {
    liars_0: 0, liars_1: 1, liars_2: 2, liars_3: 3, liars_4: 4, liars_5: 5, liars_6: 6,
    liars_7: 7, liars_8: 8, liars_9: 9
}
