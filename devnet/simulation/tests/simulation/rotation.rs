//! Runners stay present while validators join and leave.
//!
//! In each rotation one validator joins, or one leaves, or both at once, from the first block of a
//! consensus epoch on. One out of seven or eight is more than a tenth, so each rotation draws new
//! subsets and runners reconnect. The tests measure coverage, the share of the registered runners
//! in a block's P: before a rotation, in its overlap and after. `--no-capture` prints a row for
//! each rotation.
//!
//! Each of these replaces at most one of a runner's four validators, and a certificate leaves out
//! two votes: it always has a vote by a validator that the runner has been connected to for long.
//! So coverage may not dip at all under `subset`, however late runners connect.

use super::{
    committee::{EPOCH, add, governor, reach, remove},
    *,
};
use commonware_runtime::Supervisor as _;
use cowboy_devnet::sample::validator_name;
use cowboy_engine::{
    chain::Endowment,
    presence::{Connectivity, ThresholdRule, canonical, subset},
    primitives::Wei,
};
use cowboy_simulation::devnet::{Devnet, Plan};
use std::{fmt, ops::Range};

/// The initial number of validators.
const VALIDATORS: usize = 7;
const RUNNERS: usize = 20;
/// Number of blocks before a rotation that serve as the baseline.
const BEFORE: u64 = EPOCH;

/// A series of rotations.
struct Series {
    rule: ThresholdRule,
    mode: Mode,
    rotations: u64,
    /// Consensus epochs from the start of one rotation to the next.
    epochs: u64,
    /// Whether a validator stops as soon as it has left the committee.
    stops: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// One validator joins, then one leaves, and so on.
    Turns,
    /// One validator joins as another leaves.
    Swaps,
}

/// The validators that join and leave.
#[derive(Clone, Copy)]
struct Change {
    joins: Option<usize>,
    leaves: Option<usize>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joins = self.joins.map(|index| format!("{} joins", validator_name(index)));
        let leaves = self.leaves.map(|index| format!("{} leaves", validator_name(index)));
        let texts: Vec<_> = joins.into_iter().chain(leaves).collect();
        f.pad(&texts.join(", "))
    }
}

/// Coverage over some blocks, in percent.
#[derive(Debug, Clone, Copy)]
struct Coverage {
    least: f64,
    mean: f64,
    /// Number of blocks whose P is known.
    blocks: usize,
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.blocks == 0 {
            return f.pad("-");
        }
        f.pad(&format!("{:.0} ({:.1})", self.least, self.mean))
    }
}

struct Row {
    change: Change,
    height: u64,
    validators: usize,
    before: Coverage,
    overlap: Coverage,
    after: Coverage,
}

impl Series {
    /// Number of validators that join, one after the other.
    const fn joining(&self) -> usize {
        match self.mode {
            Mode::Turns => self.rotations.div_ceil(2) as usize,
            Mode::Swaps => self.rotations as usize,
        }
    }

    fn change(&self, rotation: u64) -> Change {
        let joins = self.mode == Mode::Swaps || rotation.is_multiple_of(2);
        let leaves = self.mode == Mode::Swaps || !joins;
        let turn = if self.mode == Mode::Swaps { rotation } else { rotation / 2 } as usize;
        Change { joins: joins.then_some(VALIDATORS + turn), leaves: leaves.then_some(turn) }
    }

    /// The first block of a rotation's committee.
    const fn height(&self, rotation: u64) -> u64 {
        EPOCH * (2 + rotation * self.epochs)
    }

    /// Plays the series, prints it and returns the results.
    async fn run(&self, context: deterministic::Context) -> Vec<Row> {
        let mut plan = Plan::new(VALIDATORS, RUNNERS);
        plan.setup.followers = self.joining();
        let params = &mut plan.setup.genesis.params;
        params.epoch_blocks = EPOCH;
        params.threshold_rule = self.rule;
        params.system_deployers = vec![governor().address()];
        let payers = (VALIDATORS..VALIDATORS + plan.setup.followers).map(validator_name);
        let endow =
            |name: String| Endowment { account: key(&name).address(), balance: Wei::cby(1) };
        plan.setup.genesis.endowments.extend(payers.map(endow));
        let mut devnet = Devnet::launch(context.child("devnet"), plan).await.expect("a devnet");
        for runner in 0..RUNNERS {
            devnet.start_runner(runner);
        }
        let cluster = &mut devnet.cluster;
        for rotation in 0..self.rotations {
            let height = self.height(rotation);
            reach(cluster, height - EPOCH / 2).await;
            let change = self.change(rotation);
            change.joins.into_iter().for_each(|index| add(cluster, index));
            change.leaves.into_iter().for_each(|index| remove(cluster, index));
            if let Some(index) = change.leaves.filter(|_| self.stops) {
                reach(cluster, height).await;
                cluster.stop(index).await;
            }
        }
        // Waits for the last rotation's overlap, and for the same time again.
        let end = self.height(self.rotations - 1) + Connectivity::DEFAULT.overlap_blocks + EPOCH;
        reach(cluster, end + 1).await;
        settle(cluster).await;
        self.votes(cluster, end);
        let rows: Vec<_> = (0..self.rotations).map(|r| self.row(cluster, r, end)).collect();
        self.print(&rows);
        rows
    }

    fn row(&self, cluster: &Cluster, rotation: u64, end: u64) -> Row {
        let height = self.height(rotation);
        let next = if rotation + 1 < self.rotations { self.height(rotation + 1) } else { end };
        let overlap = (height + Connectivity::DEFAULT.overlap_blocks).min(next);
        let state = cluster.running().next().expect("a validator runs").services().ledger.head();
        Row {
            change: self.change(rotation),
            height,
            validators: state.validators_in(height / EPOCH).len(),
            before: self.coverage(cluster, height - BEFORE..height),
            overlap: self.coverage(cluster, height..overlap),
            after: self.coverage(cluster, overlap..next),
        }
    }

    /// Checks that no vote has the bit of a runner whose subset lacked the voter at that block, not
    /// even in the first block after an overlap, when the runner is still connected.
    fn votes(&self, cluster: &Cluster, end: u64) {
        let state = cluster.running().next().expect("a validator runs").services().ledger.head();
        let store = cluster.store(VALIDATORS + self.joining() - 1);
        let mut bits = 0;
        for height in (1..=end).map(Height::new) {
            let Some(presence) = store.presence(height).expect("it answers") else { continue };
            let epochs = state.subset_epochs_at(height);
            let may: Vec<Vec<_>> = presence
                .registry
                .as_slice()
                .iter()
                .map(|runner| &state.registry().get(runner).expect("registered").pubkey)
                .map(|runner| epochs.iter().flat_map(|epoch| epoch.subset_of(runner)).collect())
                .collect();
            let committee = state.committee_in(state.epoch_at(height));
            for vote in presence.certificate().expect("a certificate").votes {
                let voter = committee[vote.validator as usize];
                for runner in vote.presence.ones() {
                    let name = voter.pubkey.address();
                    assert!(
                        may[runner as usize].contains(&voter),
                        "{name} about {runner} at {height}"
                    );
                    bits += 1;
                }
            }
        }
        assert!(bits > 0, "no votes for any runner");
    }

    /// Coverage in these blocks, from the store of the last validator to join, which follows from
    /// the start.
    fn coverage(&self, cluster: &Cluster, heights: Range<u64>) -> Coverage {
        let store = cluster.store(VALIDATORS + self.joining() - 1);
        let of_block = |height| {
            let presence = store.presence(Height::new(height)).expect("it answers")?;
            let bitmap = presence.bitmap().expect("a bitmap");
            Some(100.0 * f64::from(bitmap.count_ones()) / f64::from(bitmap.len()))
        };
        let all: Vec<f64> = heights.filter_map(of_block).collect();
        Coverage {
            least: all.iter().copied().fold(100.0, f64::min),
            mean: all.iter().sum::<f64>() / all.len().max(1) as f64,
            blocks: all.len(),
        }
    }

    #[expect(clippy::print_stdout, reason = "the figures that the test is for")]
    fn print(&self, rows: &[Row]) {
        let every = EPOCH * self.epochs;
        println!("coverage under `{}`, a rotation in {every} blocks: least (mean), %", self.rule);
        let [before, overlap, after] = ["before", "overlap", "after"];
        println!("{:>6} {:>4} {before:>12} {overlap:>12} {after:>12}", "height", "n");
        for row in rows {
            let Row { change, height, validators, before, overlap, after } = row;
            println!(
                "{height:>6} {validators:>4} {before:>12} {overlap:>12} {after:>12}  {change}"
            );
        }
    }
}

/// Under `subset` no rotation hides a runner, neither in its overlap nor after.
fn no_dip(rows: &[Row]) {
    for row in rows {
        let dips = |part: Coverage| part.least < row.before.least;
        assert!(row.before.blocks > 0 && row.overlap.blocks > 0, "no certificates");
        assert!(!dips(row.overlap), "{}: a dip in the overlap", row.change);
        assert!(!dips(row.after), "{}: a dip after the overlap", row.change);
    }
    assert!(rows[0].before.least >= 100.0, "not everybody is there to begin with");
}

#[test]
fn nobody_is_hidden_where_each_rotation_has_its_overlap() {
    run(1, async |context| {
        let (rule, mode) = (ThresholdRule::Subset, Mode::Turns);
        let series = Series { rule, mode, rotations: 7, epochs: 5, stops: false };
        no_dip(&series.run(context).await);
    });
}

#[test]
fn nobody_is_hidden_until_none_of_the_first_seven_is_left() {
    run(2, async |context| {
        let (rule, mode) = (ThresholdRule::Subset, Mode::Turns);
        let series = Series { rule, mode, rotations: 14, epochs: 1, stops: false };
        no_dip(&series.run(context).await);
    });
}

#[test]
fn nobody_is_hidden_as_one_validator_takes_anothers_place() {
    for (seed, epochs, stops) in [(3, 1, false), (4, 2, true)] {
        run(seed, async |context| {
            let (rule, mode) = (ThresholdRule::Subset, Mode::Swaps);
            let series = Series { rule, mode, rotations: 7, epochs, stops };
            no_dip(&series.run(context).await);
        });
    }
}

/// Under `committee` with seven validators, chance hides runners. Rotations must not make that
/// worse than the rule itself.
#[test]
fn chance_hides_no_more_than_the_rule_says() {
    run(11, async |context| {
        let (rule, mode) = (ThresholdRule::Committee, Mode::Turns);
        let series = Series { rule, mode, rotations: 7, epochs: 5, stops: false };
        let rows = series.run(context).await;
        for row in &rows {
            let n = row.validators as u32;
            let k = subset::size(row.validators) as u32;
            let (visible, all) = canonical::visibility(n, k, canonical::of(n)).expect("small");
            let expected = 100.0 * visible as f64 / all as f64;
            println!("{:>6} {n:>4} expected {expected:.1} %", row.height);
            // There are few certificates, and twenty runners in one are not twenty independent
            // draws.
            for part in [row.overlap, row.after].iter().filter(|part| part.blocks > 0) {
                let tolerance = 60.0 / (part.blocks as f64).sqrt();
                let low = expected - tolerance;
                assert!(part.mean >= low, "{}: {part}, expected {expected:.1}", row.change);
            }
        }
    });
}
