//! Blocks, transactions and events.

use crate::{
    api::{
        convert::{self, count},
        error::{ApiError, shown},
        ids,
        route::{Route, one},
        view::{View, time},
    },
    storage::{EventFilter, Page, StoredTransaction},
    types::{
        Block, BlockTransaction, Burned, EVENT_PAGE, EVENT_PAGE_LIMIT, EventPage, EventQuery, Fee,
        Head, Parameters, ProofParameters, PythonParameters, StateSnapshot, Text, Transaction,
        TransactionStatus,
    },
};
use cowboy_engine::{
    chain::{self, EventKind, Scheme, SignedTransaction},
    fees::meter,
    primitives::{Address, Hash, Height},
};

pub(super) fn table() -> Vec<Route> {
    vec![
        one("/v1/chain/head", "The newest finalized and executed block", head),
        one(
            "/v1/chain/parameters",
            "The chain's parameters and limits that a signer has to know",
            parameters,
        ),
        one("/v1/chain/burned", "The wei burned since genesis, by purpose", |view: &View| {
            Ok(burned(view))
        }),
        one(
            "/v1/chain/snapshots",
            "The states that the chain keeps to return to",
            |view: &View| {
                let marks = view.state.marks().iter();
                let shown = |mark: &chain::state::Mark| StateSnapshot {
                    snapshot: mark.number,
                    height: mark.height.get(),
                };
                Ok(marks.map(shown).collect::<Vec<_>>())
            },
        ),
        one("/v1/chain/blocks/{height}", "A finalized block", |view: &View, height: String| {
            block(view, &height)
        }),
        one(
            "/v1/chain/transactions/{hash}",
            "A transaction and its receipt",
            |view: &View, hash: String| transaction(view, &hash),
        ),
        one(
            "/v1/chain/events",
            "A page of events; blocks are never split",
            |view: &View, (), query: EventQuery| events(view, &query),
        ),
    ]
}

pub(super) fn head(view: &View) -> Result<Head, ApiError> {
    let (_, finalized_at) = view.executed(view.head())?;
    let height = view.head().get();
    Ok(Head { height, hash: view.state.head_hash().into(), finalized_at })
}

fn parameters(view: &View) -> Result<Parameters, ApiError> {
    let (state, backend) = (&view.state, &view.backend);
    Ok(Parameters {
        chain_id: crate::types::ChainId(backend.chain_id).into(),
        height: state.height().next().get(),
        genesis: backend.genesis_hash.into(),
        block_time_ms: u64::try_from(backend.block_time.as_millis()).unwrap_or(u64::MAX),
        epoch_blocks: state.params().epoch_blocks,
        cycle_basefee: state.basefee_cycle().into(),
        cell_basefee: state.basefee_cell().into(),
        cycle_limit: meter::MAX_BLOCK_CYCLES,
        cell_limit: meter::MAX_BLOCK_CELLS,
        threshold_rule: state.params().threshold_rule.to_string(),
        selection_seed: Some(state.params().selection_seed.to_string()),
        phase: state.phase().to_string(),
        phase_since: state.migration().since.get(),
        validators: count(state.validators().len()),
        runners: state.registry().order().len(),
        actors: state.params().actors.into(),
        python: state.params().python.map(|python| PythonParameters {
            machine: python.tuple.into(),
            fuel_per_cycle: python.fuel_per_cycle,
            instance: python.instance,
        }),
        proofs: proofs(&state.params().tasks.scheme),
        ahead_ms: state.ahead_ms(),
    })
}

fn proofs(scheme: &Scheme) -> ProofParameters {
    ProofParameters {
        generator: scheme.generator().to_string(),
        verifying_key: match scheme {
            Scheme::Groth16(key) => Some(key.id().into()),
            Scheme::Mock(_) => None,
        },
    }
}

pub(super) fn block(view: &View, height: &str) -> Result<Block, ApiError> {
    let height = view.height(height, view.head())?;
    let chain::Block { header, certificates, transactions } = view.block(height)?;
    let (state_root, finalized_at) = view.executed(height)?;
    let (receipts, fires) = (view.store().receipts(height)?, view.store().fires(height)?);
    let certificate_for = certificate_heights(
        view,
        height,
        certificates.iter().map(|certificate| certificate.block),
    )?;
    let proposer = view.proposer(&header);
    Ok(Block {
        height: height.get(),
        hash: header.hash().into(),
        parent: header.parent.into(),
        proposer: proposer.map(|address| view.name(&address)),
        proposer_address: proposer.map(Text),
        view: header.round.view,
        timestamp: time(header.timestamp_ms),
        finalized_at,
        state_root: state_root.into(),
        executed_height: header.executed.height.get(),
        subset_epoch: header.subset_epoch,
        cycles_used: receipts.iter().map(|receipt| receipt.cycles.get()).sum::<u64>()
            + fires.iter().map(|fire| fire.cycles.get()).sum::<u64>(),
        cells_used: receipts.iter().map(|receipt| receipt.cells.get()).sum::<u64>()
            + fires.iter().map(|fire| fire.cells.get()).sum::<u64>(),
        transactions: transactions
            .iter()
            .zip(&receipts)
            .map(|(signed, receipt)| BlockTransaction {
                hash: receipt.transaction.into(),
                kind: signed.transaction.payload.name().to_owned(),
                sender: receipt.sender.into(),
                status: convert::transaction::status(&receipt.status),
            })
            .collect(),
        fires: fires.iter().map(convert::timer::fire).collect(),
        certificate_for,
        open: header.open.iter().map(|open| open.height.get()).collect(),
        events: view.store().events_at(height)?.iter().map(convert::event::event).collect(),
    })
}

/// The heights that the certificates in the block at `height` certify.
pub(in crate::api) fn certificate_heights(
    view: &View,
    height: Height,
    blocks: impl ExactSizeIterator<Item = Hash>,
) -> Result<Vec<u64>, ApiError> {
    let parent = match height.previous() {
        Some(parent) if blocks.len() > 0 => view.block(parent)?.header,
        _ => return Ok(Vec::new()),
    };
    let candidates = parent.candidates(parent.hash());
    let (heights, _) = chain::block::certify(&candidates, blocks).map_err(|error| {
        ApiError::internal(format!("block {height} carries invalid certificates: {error}"))
    })?;
    Ok(heights.into_iter().map(Height::get).collect())
}

pub(super) fn transaction(view: &View, hash: &str) -> Result<Transaction, ApiError> {
    let hash = ids::hash("transaction hash", hash)?;
    if let Some(stored) = view.store().transaction(&hash)? {
        return included(view, hash, stored);
    }
    // A validator's mempool gets transactions from the others a moment later.
    let running = view.backend.running();
    let mut pools = running.iter().map(|one| one.mempool.with(|pool| pool.get(&hash).cloned()));
    let Some(waiting) = pools.find_map(|found| found) else {
        // No mempool has it: a block may have included it in the meantime.
        let now = View::of(view.backend.clone(), None)?;
        let stored = now.store().transaction(&hash)?.ok_or_else(|| {
            let message =
                format!("transaction {hash} is in no block and does not wait in the mempool");
            match now.store().kept_from() {
                first if first > Height::new(1) => ApiError::not_found(message)
                    .hint(format!("blocks before {first} are no longer kept")),
                _ => ApiError::not_found(message),
            }
        })?;
        return included(&now, hash, stored);
    };
    let sender = waiting.sender().map_err(|error| ApiError::internal(error.to_string()))?;
    let status = TransactionStatus::Pending;
    Ok(describe(view, hash, &waiting, sender, status))
}

fn included(view: &View, hash: Hash, stored: StoredTransaction) -> Result<Transaction, ApiError> {
    let StoredTransaction { height, position, receipt } = stored;
    let block = view.block(height)?;
    let signed = block.transactions.get(position as usize).ok_or_else(|| {
        ApiError::internal(format!("block {height} has no transaction {position}"))
    })?;
    let status = convert::transaction::status(&receipt.status);
    let mut transaction = describe(view, hash, signed, receipt.sender, status);
    transaction.height = Some(height.get());
    transaction.index = Some(position);
    transaction.fee = (status != TransactionStatus::Skipped).then(|| Fee {
        cycles: receipt.cycles.get(),
        unused: receipt.unused.get(),
        cells: receipt.cells.get(),
        burned: receipt.burned.into(),
        tip: receipt.tip.into(),
    });
    (transaction.error, transaction.message) =
        receipt.status.error().map(convert::transaction::failure).unzip();
    transaction.message = transaction.message.map(|message| view.with_payer(message));
    transaction.acted_as = receipt.acted_as.map(Text);
    transaction.actor = receipt.actor.as_ref().map(convert::actor::receipt);
    let events = view.store().events_at(height)?;
    let caused = events.iter().filter(|stored| stored.event.transaction == Some(hash));
    transaction.events = caused.map(convert::event::event).collect();
    Ok(transaction)
}

fn describe(
    view: &View,
    hash: Hash,
    signed: &SignedTransaction,
    sender: Address,
    status: TransactionStatus,
) -> Transaction {
    Transaction {
        hash: hash.into(),
        status,
        kind: signed.transaction.payload.name().to_owned(),
        sender: sender.into(),
        sender_name: view.backend.names.get(&sender),
        acted_as: None,
        nonce: signed.transaction.nonce,
        timer_allowance: signed.transaction.timer_allowance.map(Text),
        payload: convert::transaction::payload(signed, &sender, |actor| view.state.language(actor)),
        height: None,
        index: None,
        fee: None,
        error: None,
        message: None,
        actor: None,
        events: Vec::new(),
    }
}

fn events(view: &View, query: &EventQuery) -> Result<EventPage, ApiError> {
    let kind = query.kind.as_deref();
    if let Some(kind) = kind.filter(|kind| !EventKind::NAMES.contains(kind)) {
        let kind = shown(kind);
        return Err(ApiError::bad_request(format!("kind: no event is called `{kind}`"))
            .hint(format!("expected one of {}", EventKind::NAMES.join(", "))));
    }
    let limit = query.limit.unwrap_or(EVENT_PAGE).clamp(1, EVENT_PAGE_LIMIT);
    let from = match query.from {
        Some(from) => {
            view.kept(Height::new(from))?;
            Height::new(from)
        }
        None => Height::GENESIS,
    };
    let filter = EventFilter { from, kind, limit: count(limit) };
    let Page { rows: mut events, more } = view.store().events(filter)?;
    let mut next = None;
    if let Some(last) = events.last().filter(|_| more).map(|last| last.height) {
        // The last block may be incomplete, so it opens the next page, unless it is the only one on
        // this page.
        let whole = events.partition_point(|event| event.height < last);
        next = Some(if whole > 0 {
            events.truncate(whole);
            last
        } else {
            events = view.store().events_at(last)?;
            events.retain(|stored| kind.is_none_or(|kind| stored.event.kind.name() == kind));
            last.next()
        });
    }
    Ok(EventPage {
        events: events.iter().map(convert::event::event).collect(),
        next: next.filter(|next| *next <= view.head()).map(Height::get),
    })
}

fn burned(view: &View) -> Burned {
    let (state, burned) = (&view.state, view.state.burned());
    Burned {
        height: state.height().get(),
        total: burned.total().into(),
        transactions: burned.transactions.into(),
        timers: burned.fires.into(),
        questions: burned.questions.into(),
        callbacks: burned.callbacks.into(),
        penalties: burned.penalties.into(),
        lane_basefee: state.lane().burned.into(),
    }
}
