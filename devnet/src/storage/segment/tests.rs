//! Blocks in segments are read as recent ones are; damage is found; the oldest are dropped.

use super::*;
use crate::storage::{
    EventFilter, Keep,
    index::ROUTINE,
    tests::{extend, genesis},
};
use cowboy_engine::{chain::State, primitives::codec::to_vec};

/// All that can be asked about a block.
fn answers(store: &ValidatorStore, height: u64) -> String {
    let height = Height::new(height);
    let block = store.block(height).unwrap().unwrap();
    let presence = store.presence(height).unwrap();
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        to_vec(&block),
        store.executed(height).unwrap(),
        store.height_of(&block.hash()).unwrap(),
        presence.map(|stored| (stored.certificate, stored.embedded_at, stored.registry)),
        store.lanes(height, height).unwrap(),
        store.events_at(height).unwrap(),
        store.transaction(&block.transactions[0].hash()).unwrap(),
    )
}

fn events(store: &ValidatorStore, kind: Option<&str>, from: u64, limit: u32) -> Vec<(u64, u32)> {
    let filter = EventFilter { from: Height::new(from), kind, limit };
    let rows = store.events(filter).unwrap().rows;
    rows.iter().map(|event| (event.height.get(), event.position)).collect()
}

fn chain(keep: Keep, blocks: u64) -> (ValidatorStore, State) {
    let mut state = genesis().state().unwrap();
    let store = ValidatorStore::in_memory(state.chain_id()).unwrap().keeping(keep);
    extend(&store, &mut state, blocks);
    (store, state)
}

fn count(store: &ValidatorStore, table: &str) -> u64 {
    let sql = format!("SELECT count(*) FROM {table}");
    store.lock().query_row(&sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_block_in_a_segment_reads_as_it_did_before() {
    let (store, mut state) = chain(Keep::default(), 300);
    let all =
        |store: &ValidatorStore| (1..=299).map(|height| answers(store, height)).collect::<Vec<_>>();
    let listed = |store: &ValidatorStore| {
        [None, Some(ROUTINE), Some("Transferred")].map(|kind| {
            (events(store, kind, 0, 200), events(store, kind, 120, 37), events(store, kind, 290, 9))
        })
    };
    let lanes = |store: &ValidatorStore| store.lanes(Height::new(100), Height::new(290)).unwrap();
    assert_eq!(count(&store, "segment"), 0);
    let before = (all(&store), listed(&store), lanes(&store));
    extend(&store, &mut state, 640);
    assert_eq!(count(&store, "segment"), 3, "blocks 1 to 384 of 940");
    assert_eq!(count(&store, "block"), 940 - 384);
    assert_eq!(count(&store, "archived"), 384);
    assert_eq!((all(&store), listed(&store), lanes(&store)), before);
    assert_eq!(store.height_of(&Hash([9; 32])).unwrap(), None);
    assert_eq!(events(&store, Some(ROUTINE), 380, 1_000).len(), 940 - 380 + 1);
    assert_eq!(store.lanes(Height::new(380), Height::new(390)).unwrap().len(), 11);
}

#[test]
fn a_changed_byte_of_a_segment_is_found() {
    let (store, _) = chain(Keep::default(), 640);
    let body: Vec<u8> =
        store.lock().query_row("SELECT body FROM segment", [], |row| row.get(0)).unwrap();
    assert!(store.block(Height::new(5)).unwrap().is_some());
    for at in (0..body.len()).step_by(body.len() / 50) {
        let mut changed = body.clone();
        changed[at] ^= 0x10;
        store.lock().execute("UPDATE segment SET body = ?", params![changed]).unwrap();
        *store.last_read.lock().unwrap() = None;
        let read = store.block(Height::new(5));
        assert!(matches!(read, Err(StorageError::Corrupt { record: "segment", .. })), "byte {at}");
    }
}

#[test]
fn blocks_beyond_a_number_are_dropped_with_all_about_them() {
    let (store, mut state) = chain(Keep::Blocks(700), 640);
    let gone = store.block(Height::new(100)).unwrap().unwrap();
    let transaction = gone.transactions[0].hash();
    assert_eq!(store.kept_from(), Height::new(1));
    extend(&store, &mut state, 640);
    // 1,280 blocks: those before 580 may go, which are four segments of 128.
    assert_eq!(store.kept_from(), Height::new(4 * 128 + 2));
    assert_eq!(store.block(Height::new(512)).unwrap(), None);
    assert!(store.block(Height::new(513)).unwrap().is_some());
    assert_eq!(store.height_of(&gone.hash()).unwrap(), None);
    assert!(store.transaction(&transaction).unwrap().is_none());
    assert_eq!(events(&store, None, 0, 1), [(514, 0)]);
    let tables = ["tx", "event_kind", "effects"].map(|table| (table, 512));
    for (table, last) in tables.into_iter().chain([("presence", 513), ("lane", 513)]) {
        let sql = format!("SELECT count(*) FROM {table} WHERE height <= {last}");
        let left: u64 = store.lock().query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "{table}");
    }
    let parent = store.block(Height::new(513)).unwrap().unwrap().transactions[0].hash();
    assert!(store.transaction(&parent).unwrap().is_none(), "only the body of 513 is kept");
    assert!(store.events_at(Height::new(513)).unwrap().is_empty());
    assert_eq!(count(&store, "archived"), 256, "blocks 513 to 768");
}

#[test]
fn all_blocks_are_kept() {
    let (store, _) = chain(Keep::All, 1_200);
    assert_eq!(store.kept_from(), Height::new(1));
    assert!(count(&store, "segment") > 0);
    assert_eq!(store.block(Height::new(1)).unwrap().unwrap().header.height, Height::new(1));
}

#[test]
fn a_file_stays_below_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.db");
    let mut state = genesis().state().unwrap();
    let chain_id = state.chain_id();
    let open = || ValidatorStore::open(&path, chain_id).unwrap().keeping(Keep::Bytes(1_500_000));
    let store = open();
    extend(&store, &mut state, 3_000);
    let kept_from = store.kept_from();
    assert!(kept_from > Height::new(1));
    let used = |store: &ValidatorStore| {
        let pragma = |name: &str| -> u64 {
            let sql = format!("PRAGMA {name}");
            store.lock().query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        pragma("page_count") * pragma("page_size")
    };
    let before = used(&store);
    extend(&store, &mut state, 2_000);
    assert!(store.kept_from() > kept_from);
    assert!(used(&store) < before + 200_000, "{before} {}", used(&store));
    let kept_from = store.kept_from();
    drop(store);
    assert_eq!(open().kept_from(), kept_from);
}
