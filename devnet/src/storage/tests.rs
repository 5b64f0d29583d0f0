//! The store returns what was stored, across reopening, and refuses blocks out of order.

use super::*;
use cowboy_engine::{
    actor::Budget,
    chain::{
        Certificate, Endowment, Executed, Genesis, GenesisRunner, GenesisValidator, Header, Params,
        Round, SignedTransaction, Transaction, Vote,
        block::{certificates_root, certify, transactions_root},
        event::RunnerUpdated,
        execute,
        transaction::{DeployActor, Excuse, ReportFailure, Transfer, UpdateRunner},
    },
    job::spec::{Job, Reported},
    presence::Bitmap,
    primitives::{Address, SecretKey, Signature, Wei, keccak256},
    registry::{Capabilities, JobKind, MIN_STAKE},
    timer::TimerRequest,
    wire::RejectReason,
};
use std::sync::Arc;

fn key(name: &str) -> SecretKey {
    SecretKey::derive(b"storage", name)
}

pub(crate) fn genesis() -> Genesis {
    Genesis {
        name: "storage".into(),
        timestamp_ms: 0,
        params: Params::default(),
        validators: vec![GenesisValidator {
            pubkey: key("validator").public_key(),
            consensus_key: [1; 32],
        }],
        runners: vec![GenesisRunner {
            pubkey: key("runner").public_key(),
            stake: MIN_STAKE,
            capabilities: Capabilities::of(vec![JobKind::Custom], 1),
            price_per_second: Wei::cby(1),
        }],
        endowments: vec![Endowment { account: key("alice").address(), balance: Wei::cby(100) }],
    }
}

/// A certificate of `state`'s head with an invalid signature.
fn unsigned(state: &State) -> Certificate {
    let vote = Vote { validator: 0, presence: Bitmap::from_fn(1, |_| true), signature: [7; 64] };
    Certificate { block: state.head_hash(), round: state.head().round, votes: vec![vote] }
}

/// The child of `state`'s head with one transfer in it, and with its parent's certificate.
fn child(state: &State) -> Block {
    child_with(state, unsigned)
}

fn child_with(state: &State, certificate: impl Fn(&State) -> Certificate) -> Block {
    let payload = Payload::Transfer(Transfer { to: key("bob").address(), amount: Wei::new(1) });
    let nonce = state.account(&key("alice").address()).nonce;
    let signed: SignedTransaction = Transaction::with_limits(
        state.chain_id(),
        nonce,
        state.basefee_cycle(),
        state.basefee_cell(),
        payload,
    )
    .sign(&key("alice"));
    block_with(state, vec![signed], certificate)
}

/// The child of `state`'s head with these transactions, and with its parent's certificate.
fn block_of(state: &State, transactions: Vec<SignedTransaction>) -> Block {
    block_with(state, transactions, unsigned)
}

fn block_with(
    state: &State,
    transactions: Vec<SignedTransaction>,
    certificate: impl Fn(&State) -> Certificate,
) -> Block {
    let head = state.head();
    let certified = head.height > Height::GENESIS;
    let certificates = Vec::from_iter(certified.then(|| certificate(state)));
    let candidates = head.candidates(state.head_hash());
    let (_, open) = certify(&candidates, certificates.iter().map(|c| c.block)).unwrap();
    let header = Header {
        height: head.height.next(),
        parent: state.head_hash(),
        round: Round { epoch: 0, view: head.height.get() + 1, parent_view: head.height.get() },
        proposer: [1; 32],
        timestamp_ms: head.timestamp_ms + 1,
        subset_epoch: 0,
        transactions_root: transactions_root(&transactions),
        certificates_root: certificates_root(&certificates),
        open,
        executed: Executed { height: head.height, state_root: state.root() },
    };
    Block { header, certificates, transactions }
}

pub(crate) fn extend(store: &ValidatorStore, state: &mut State, blocks: u64) {
    extend_with(store, state, blocks, unsigned, |_| ());
}

/// Stores this many blocks, with certificates from `certificate` and with changed headers.
pub(crate) fn extend_with(
    store: &ValidatorStore,
    state: &mut State,
    blocks: u64,
    certificate: impl Fn(&State) -> Certificate,
    change: impl Fn(&mut Header),
) {
    for _ in 0..blocks {
        let mut block = child_with(state, &certificate);
        change(&mut block.header);
        let execution = execute(state, &block).unwrap();
        store
            .commit(&BlockRecord {
                block: &block,
                parent: state,
                execution: &execution,
                root: execution.state.root(),
                executed_ms: 5,
                proof: None,
            })
            .unwrap();
        *state = execution.state;
    }
}

#[test]
fn what_is_stored_is_read_also_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.db");
    let mut state = genesis().state().unwrap();
    let chain_id = state.chain_id();
    {
        let store = ValidatorStore::open(&path, chain_id).unwrap();
        assert_eq!(store.head().unwrap(), None);
        extend(&store, &mut state, 3);
    }
    let store = ValidatorStore::open(&path, chain_id).unwrap();
    assert_eq!(store.head().unwrap(), Some((Height::new(3), state.head_hash())));
    let block = store.block(Height::new(2)).unwrap().unwrap();
    assert_eq!(block.hash(), state.head().parent);
    assert_eq!(store.height_of(&block.hash()).unwrap(), Some(Height::new(2)));
    let id = block.transactions[0].hash();
    let stored = store.transaction(&id).unwrap().unwrap();
    assert_eq!((stored.height, stored.position), (Height::new(2), 0));
    assert_eq!(stored.receipt.status, ReceiptStatus::Success);
    assert_eq!(store.receipts(Height::new(2)).unwrap(), [stored.receipt]);
    let presence = store.presence(Height::new(2)).unwrap().unwrap();
    assert_eq!(presence.embedded_at, Height::new(3));
    assert_eq!(presence.certificate().unwrap().block, block.hash());
    assert_eq!(presence.bitmap().unwrap().count_ones(), 1);
    assert_eq!(presence.registry.as_slice(), [key("runner").address()]);
    assert!(store.presence(Height::new(3)).unwrap().is_none());
    let filter = EventFilter { from: Height::new(2), kind: Some("Transferred"), limit: 10 };
    let events = store.events(filter).unwrap().rows;
    assert_eq!(events.iter().map(|e| e.height.get()).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(store.events_at(Height::new(1)).unwrap().len(), 2);
}

#[test]
fn a_block_waits_for_another_programs_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.db");
    let store = ValidatorStore::open(&path, 1).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; DELETE FROM snapshot").unwrap();
    // The other program ends its write when the store has to wait for it.
    let ends = move |_| other.execute_batch("COMMIT").is_ok();
    store.lock().busy_handler(Some(ends)).unwrap();
    let state = genesis().state().unwrap();
    let block = child(&state);
    let execution = execute(&state, &block).unwrap();
    let record = BlockRecord {
        block: &block,
        parent: &state,
        execution: &execution,
        root: execution.state.root(),
        executed_ms: 5,
        proof: None,
    };
    store.commit(&record).unwrap();
    assert_eq!(store.head().unwrap().unwrap().0, Height::new(1));
}

#[test]
fn a_block_is_stored_once_and_in_order() {
    let store = ValidatorStore::in_memory(1).unwrap();
    let mut state = genesis().state().unwrap();
    let first = child(&state);
    let execution = execute(&state, &first).unwrap();
    let record = BlockRecord {
        block: &first,
        parent: &state,
        execution: &execution,
        root: execution.state.root(),
        executed_ms: 5,
        proof: None,
    };
    store.commit(&record).unwrap();
    store.commit(&record).unwrap();
    state = execution.state;
    let second = execute(&state, &child(&state)).unwrap();
    let third = child(&second.state);
    let execution = execute(&second.state, &third).unwrap();
    let gap = store.commit(&BlockRecord {
        block: &third,
        parent: &second.state,
        execution: &execution,
        root: execution.state.root(),
        executed_ms: 5,
        proof: None,
    });
    assert!(matches!(gap, Err(StorageError::Gap { got, .. }) if got == Height::new(3)));
}

#[test]
fn a_repeated_transaction_is_shown_where_it_took_effect() {
    let store = ValidatorStore::in_memory(1).unwrap();
    let mut state = genesis().state().unwrap();
    extend(&store, &mut state, 1);
    let done = store.block(Height::new(1)).unwrap().unwrap().transactions.remove(0);
    let early = {
        let payload = Payload::Transfer(Transfer { to: key("bob").address(), amount: Wei::new(1) });
        let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
        Transaction::with_limits(state.chain_id(), 9, cycle, cell, payload).sign(&key("alice"))
    };
    for _ in 0..2 {
        let block = block_of(&state, vec![done.clone(), early.clone()]);
        let execution = execute(&state, &block).unwrap();
        let record = BlockRecord {
            block: &block,
            parent: &state,
            execution: &execution,
            root: execution.state.root(),
            executed_ms: 5,
            proof: None,
        };
        store.commit(&record).unwrap();
        state = execution.state;
    }
    let place = |transaction: &SignedTransaction| {
        let stored = store.transaction(&transaction.hash()).unwrap().unwrap();
        (stored.height.get(), stored.position, stored.receipt.status.name())
    };
    assert_eq!(place(&done), (1, 0, "success"));
    assert_eq!(place(&early), (3, 1, "skipped"));
}

#[test]
fn a_snapshot_carries_a_restart() {
    let store = ValidatorStore::in_memory(1).unwrap();
    let mut state = genesis().state().unwrap();
    assert!(store.load_snapshot().unwrap().is_none());
    extend(&store, &mut state, SNAPSHOT_BLOCKS + 3);
    let snapshot = store.load_snapshot().unwrap().unwrap();
    assert_eq!(snapshot.height(), Height::new(SNAPSHOT_BLOCKS));
    let mut again = snapshot;
    while again.height() < state.height() {
        let block = store.block(again.height().next()).unwrap().unwrap();
        again = execute(&again, &block).unwrap().state;
    }
    assert_eq!(again.root(), state.root());
    store.snapshot(&state).unwrap();
    assert_eq!(store.load_snapshot().unwrap().unwrap().height(), state.height());
}

#[test]
fn another_chain_or_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.db");
    drop(ValidatorStore::open(&path, 0x0102_0304_0506_0708).unwrap());
    assert!(matches!(
        ValidatorStore::open(&path, 2),
        Err(StorageError::Chain { got: 0x0102_0304_0506_0708, expected: 2 })
    ));
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    assert!(matches!(
        ValidatorStore::open(&path, 2),
        Err(StorageError::Format { got: 99, expected: schema::FORMAT })
    ));
}

/// Fires, fails and reschedules itself.
const CLOCK: &str = r#"
def handle_timer(ctx, payload):
    pvm_host.log("at", ctx.height)
    pvm_host.emit("tick", payload)
    if payload == "fail":
        fail("as told")
    pvm_host.schedule_timer(ctx.height + 2, payload)
"#;

/// Every row of every table that executing blocks fills, except the time of execution.
fn rows(store: &ValidatorStore) -> Vec<String> {
    let connection = store.lock();
    let mut all = Vec::new();
    for (table, key) in [
        ("effects", "height"),
        ("tx", "prefix"),
        ("event_kind", "kind, height"),
        ("event_timer", "timer_id, height"),
        ("timer", "prefix"),
        ("timer_ended", "of, status, height"),
        ("actor_log", "actor, height, line"),
        ("lane", "height"),
    ] {
        let mut statement =
            connection.prepare(&format!("SELECT * FROM {table} ORDER BY {key}")).unwrap();
        let columns = statement.column_count();
        let found = statement.query_map([], |row| {
            let cells = (0..columns).map(|i| format!("{:?}", row.get_ref(i).unwrap()));
            Ok(format!("{table}: {}", cells.collect::<Vec<_>>().join(" ")))
        });
        let before = all.len();
        all.extend(found.unwrap().map(Result::unwrap));
        assert!(all.len() > before, "{table} is empty");
    }
    all
}

#[test]
fn executing_again_stores_the_same_rows_also_of_timers() {
    let mut state = genesis().state().unwrap();
    let (once, again) =
        (ValidatorStore::in_memory(1).unwrap(), ValidatorStore::in_memory(1).unwrap());
    let alice = key("alice").address();
    let clock = Address::of_actor(&alice, 0);
    let budget = Budget { cycles: 200_000, cells: 20_000 };
    let schedule = |payload: &str, ahead: u64, gba| {
        Payload::ScheduleTimer(Arc::new(TimerRequest {
            actor: clock,
            height: Height::new(4 + ahead),
            payload: payload.as_bytes().to_vec(),
            gba,
            ..TimerRequest::default()
        }))
    };
    let scripts = [
        vec![Payload::DeployActor(DeployActor { source: CLOCK.to_owned() })],
        vec![Payload::Transfer(Transfer { to: clock, amount: Wei::cby(50) })],
        vec![
            schedule("x", 1, None),
            schedule("fail", 2, None),
            schedule("", 2, None),
            schedule("asked", 9, Some(clock)),
            schedule("y", 900, None),
            Payload::ScheduleTimer(Arc::new(TimerRequest {
                actor: clock,
                height: Height::new(800),
                fee_payer: Some(alice),
                ..TimerRequest::default()
            })),
        ],
        vec![],
    ];
    for number in 0..20 {
        let nonce = state.account(&alice).nonce;
        let script = scripts.get(number).cloned().unwrap_or_default();
        let signed = script.into_iter().zip(nonce..).map(|(payload, nonce)| {
            let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
            Transaction::with_limits(state.chain_id(), nonce, cycle, cell, payload)
                .buying(budget)
                .allowing(Wei::cby(2))
                .sign(&key("alice"))
        });
        let block = block_of(&state, signed.collect());
        let execution = execute(&state, &block).unwrap();
        assert!(execution.receipts.iter().all(|receipt| receipt.status == ReceiptStatus::Success));
        let commit = |store: &ValidatorStore, parent: &State, execution: &Execution| {
            store
                .commit(&BlockRecord {
                    block: &block,
                    parent,
                    execution,
                    root: execution.state.root(),
                    executed_ms: 5,
                    proof: None,
                })
                .unwrap();
        };
        commit(&once, &state, &execution);
        // As after a restart, only a snapshot's contents are at hand.
        let parent = State::from_bytes(&state.to_bytes()).unwrap();
        commit(&again, &parent, &execute(&parent, &block).unwrap());
        state = execution.state;
    }
    assert_eq!(rows(&once), rows(&again));

    let ended = once.timers_from(&Hash::ZERO, 1_000).unwrap();
    assert!(ended.is_sorted_by_key(|stored| stored.timer.id));
    for stored in &ended {
        let (height, _) = stored.ended.unwrap();
        let (timer, id) = (&stored.timer, stored.timer.id);
        assert!(state.timer(&id).is_none());
        assert_eq!(once.timer(&id).unwrap().as_ref(), Some(stored));
        assert_eq!(once.timers_from(&id, 1).unwrap(), std::slice::from_ref(stored));
        let (lived, last) = ([timer.scheduled_at, height], |events: Vec<StoredEvent>| {
            events.last().map(|stored| stored.height)
        });
        let events = once.events_of_timer(&id, &lived, 1_000).unwrap();
        assert_eq!(events[0].event.kind.name(), "TimerScheduled");
        assert_eq!(last(events), Some(height));
        assert_eq!(last(once.events_of_timer(&id, &lived, 1).unwrap()), Some(height));
    }
    let of = |payer| TimerFilter { actor: None, payer: Some(payer), limit: 1_000 };
    let listed =
        |payer, end, up_to| once.ended_timers(of(payer), end, Height::new(up_to)).unwrap().len();
    assert_eq!(listed(clock, TimerEnd::Failed, 20), 1);
    assert_eq!(listed(clock, TimerEnd::Failed, 4), 0);
    assert_eq!(listed(alice, TimerEnd::Failed, 20), 0);
    assert_eq!(listed(clock, TimerEnd::Fired, 20), ended.len() - 1);
    let few = TimerFilter { limit: 2, ..of(clock) };
    let latest = once.ended_timers(few, TimerEnd::Fired, Height::new(20)).unwrap();
    assert!(latest.len() == 2 && latest[0].ended >= latest[1].ended, "{latest:?}");
    let fires: usize = (1..=20).map(|h| once.fires(Height::new(h)).unwrap().len()).sum();
    assert_eq!(fires, ended.len());
    let failed = ended.iter().filter(|s| matches!(s.ended, Some((_, TimerEnd::Failed)))).count();
    assert_eq!(failed, 1);
    let lanes = once.lanes(Height::new(5), Height::new(6)).unwrap();
    assert_eq!(lanes.iter().map(|lane| lane.report.fired).collect::<Vec<_>>(), [1, 2]);
}

/// Snapshots and blocks hold records of the engine. A changed record makes older stores unreadable,
/// and only a changed format tells users why.
#[test]
fn stored_records_change_with_the_format() {
    let mut job = Job::new(Arc::new(crate::sample::spec(4)), (Address([7; 20]), 9), Height::new(3));
    let reason = "at_capacity".to_owned();
    job.attempt.reported.push(Reported { runner: Address([7; 20]), reason });
    let update = Payload::UpdateRunner(UpdateRunner {
        capabilities: Capabilities::of(vec![JobKind::Http], 1),
        price_per_second: Wei::new(1),
        stake: Some(Wei::cby(10_000)),
    });
    let updated = EventKind::from(RunnerUpdated { runner: Address([7; 20]), stake: Wei::cby(1) });
    let report = ReportFailure {
        job_id: Hash([1; 32]),
        runner: Address([7; 20]),
        said: Excuse::Rejected(RejectReason::AtCapacity),
        runner_signature: Signature([2; 65]),
    };
    let state = crate::sample::genesis(4, 3).state().unwrap();
    let records = keccak256(&[
        &to_vec(&job),
        &to_vec(&report),
        &to_vec(&state),
        &to_vec(&update),
        &to_vec(&updated),
    ])
    .to_string();
    let hash = "0x06985914b6699b544e0ac54acdc0723a2ce07728f66fd3e1ac6cc5b98fbee25f";
    assert_eq!((schema::FORMAT, records.as_str()), (13, hash));
}
