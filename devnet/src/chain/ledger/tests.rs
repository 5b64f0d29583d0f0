//! Blocks entering both ways, and starts from a store.

use super::*;
use crate::chain::fixture;
use cowboy_engine::chain::{
    Executed, Header, Round,
    block::{certificates_root, transactions_root},
};
use futures::FutureExt as _;

struct World {
    genesis: Genesis,
    store: Arc<ValidatorStore>,
}

impl World {
    fn new() -> Self {
        let genesis = fixture::genesis();
        let store = Arc::new(ValidatorStore::in_memory(genesis.chain_id()).expect("SQLite opens"));
        Self { genesis, store }
    }

    fn open(&self) -> Ledger {
        Ledger::open(&self.genesis, self.store.clone()).expect("the store is sound")
    }
}

/// An empty child of `parent` at `timestamp_ms` that names `executed`.
fn child(parent: &State, timestamp_ms: u64, executed: Executed) -> Arc<Block> {
    let height = parent.height().next();
    let header = Header {
        height,
        parent: parent.head_hash(),
        round: Round { epoch: 0, view: height.get(), parent_view: height.get() - 1 },
        proposer: [0; 32],
        timestamp_ms,
        subset_epoch: 0,
        transactions_root: transactions_root(&[]),
        certificates_root: certificates_root(&[]),
        open: Vec::new(),
        executed,
    };
    Arc::new(Block { header, certificates: Vec::new(), transactions: Vec::new() })
}

fn next(ledger: &Ledger) -> Arc<Block> {
    let newest = ledger.newest().state.clone();
    child(&newest, newest.head().timestamp_ms + 1, newest.head().executed)
}

#[test]
fn a_block_is_executed_once_through_either_door() {
    let world = World::new();
    let ledger = world.open();
    let mut subscriber = ledger.subscribe();
    let first = next(&ledger);
    ledger.execute(&first, 5).expect("it extends genesis");
    ledger.execute(&first, 6).expect("it was executed");
    assert_eq!(ledger.newest().state.height(), Height::new(1));
    assert_eq!(ledger.head().height(), Height::GENESIS, "not stored yet");
    assert!(subscriber.try_recv().is_err());

    let committed = ledger.commit(&first, 7).expect("it is the next").expect("it is new");
    assert_eq!((committed.hash, committed.executed_ms), (first.hash(), 5));
    assert_eq!(subscriber.try_recv().expect("it is stored").hash, first.hash());
    assert_eq!(ledger.head().height(), Height::new(1));
    assert!(ledger.commit(&first, 8).expect("delivered again").is_none());
    assert!(subscriber.try_recv().is_err());
}

#[test]
fn waiting_ends_with_the_block() {
    let world = World::new();
    let ledger = world.open();
    let mut second = ledger.wait_executed(Height::new(2));
    ledger.execute(&next(&ledger), 1).expect("it extends the chain");
    assert!((&mut second).now_or_never().is_none());
    assert!(ledger.wait_executed(Height::new(1)).now_or_never().is_some());
    ledger.execute(&next(&ledger), 2).expect("it extends the chain");
    assert_eq!(second.now_or_never(), Some(Ok(())));
}

#[test]
fn another_block_at_an_executed_height_is_a_conflict() {
    let world = World::new();
    let ledger = world.open();
    let genesis = ledger.head();
    let executed = genesis.head().executed;
    ledger.commit(&child(&genesis, 1, executed), 1).expect("it extends genesis");
    let other = child(&genesis, 2, executed);
    assert!(matches!(ledger.commit(&other, 2), Err(LedgerError::Conflict { .. })));
    let orphan = child(&ledger.at(Height::new(1)).expect("recent").state, 9, executed);
    let mut orphan = Block::clone(&orphan);
    orphan.header.height = Height::new(3);
    assert!(matches!(ledger.commit(&Arc::new(orphan), 2), Err(LedgerError::Execution(_))));
}

#[test]
fn execution_stays_near_what_is_stored() {
    let world = World::new();
    let ledger = world.open();
    for _ in 0..MAX_AHEAD {
        ledger.execute(&next(&ledger), 1).expect("within bounds");
    }
    let beyond = ledger.execute(&next(&ledger), 1);
    assert!(matches!(beyond, Err(LedgerError::TooFarAhead { .. })));
}

#[test]
fn another_root_raises_an_alarm() {
    let world = World::new();
    let ledger = world.open();
    let genesis = ledger.head();
    let truth = genesis.head().executed;
    assert_eq!(ledger.agrees(&child(&genesis, 1, truth)), Some(true));
    assert_eq!(ledger.alarm(), None);
    let unknown = Executed { height: Height::new(9), ..truth };
    assert_eq!(ledger.agrees(&child(&genesis, 1, unknown)), None);
    let lie = Executed { state_root: Hash([7; 32]), ..truth };
    let liar = child(&genesis, 1, lie);
    assert_eq!(ledger.agrees(&liar), Some(false));
    let alarm = ledger.alarm().expect("raised");
    assert_eq!(
        (alarm.block, alarm.theirs, alarm.ours),
        (liar.hash(), lie.state_root, truth.state_root)
    );
}

#[test]
fn a_start_finds_the_chain_wherever_the_last_run_ended() {
    let world = World::new();
    let mut roots = Vec::new();
    // Past the snapshot at 256, with a block executed ahead of each end.
    for end in [3, 255, 256, 257, 300] {
        let ledger = world.open();
        assert_eq!(ledger.head().height().get() as usize, roots.len());
        assert_eq!(ledger.newest().root, roots.last().copied().unwrap_or(ledger.newest().root));
        while ledger.head().height().get() < end {
            let committed = ledger.commit(&next(&ledger), 1).expect("it extends the chain");
            roots.push(committed.expect("it is new").root);
        }
        ledger.execute(&next(&ledger), 1).expect("it extends the chain");
    }
    let ledger = world.open();
    for height in 257..=300u64 {
        let rooted = ledger.at(Height::new(height)).expect("executed again");
        assert_eq!(rooted.root, roots[height as usize - 1]);
    }
    ledger.snapshot().expect("the store takes it");
    let ledger = world.open();
    assert_eq!(ledger.newest().root, roots[299]);
    assert!(ledger.at(Height::new(299)).is_none(), "nothing was executed again");
}
