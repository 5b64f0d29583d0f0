//! The transition, driven block by block on a small chain. After every block, money must be
//! conserved and a snapshot must give the same root.

use super::{
    block::{certificates_root, certify, transactions_root},
    genesis::{Endowment, GenesisRunner},
    *,
};
use crate::{
    fees::meter,
    job::{
        document,
        json::Json,
        spec::{
            Bounds, CommandWork, FailureReason, HttpWork, JobSpec, JobStatus, McpWork,
            Verification, Work,
        },
    },
    presence::{Bitmap, canonical},
    primitives::{Address, Hash, Height, SecretKey, Wei},
    pvm::Pvm,
    registry::{Capabilities, JobKind, MIN_STAKE},
    wire::{GoodbyeReason, JobResult},
};
use std::sync::Arc;

mod actors;
mod connectivity;
mod failures;
mod jobs;
mod migration;
mod modes;
mod powers;
mod properties;
mod python;
mod seeds;
mod tasks;
mod testing;
mod timers;
mod transactions;
mod updates;
mod validators;

fn key(name: &str) -> SecretKey {
    SecretKey::derive(b"test", name)
}

fn validators(n: u8) -> Vec<GenesisValidator> {
    (0..n)
        .map(|i| GenesisValidator {
            pubkey: key(&format!("validator-{i}")).public_key(),
            consensus_key: [i + 1; 32],
        })
        .collect()
}

fn capabilities() -> Capabilities {
    Capabilities::of(vec![JobKind::Http, JobKind::Custom], 2)
}

fn genesis(runners: u32) -> Genesis {
    Genesis {
        name: "test".into(),
        timestamp_ms: 1_000,
        params: Params::default(),
        validators: validators(4),
        runners: (0..runners)
            .map(|i| GenesisRunner {
                pubkey: key(&format!("runner-{i}")).public_key(),
                stake: MIN_STAKE,
                capabilities: capabilities(),
                price_per_second: Wei::cby(1),
            })
            .collect(),
        endowments: ["alice", "bob"]
            .map(|name| Endowment { account: key(name).address(), balance: Wei::cby(1_000_000) })
            .to_vec(),
    }
}

fn spec() -> JobSpec {
    JobSpec {
        work: Work::Custom(CommandWork {
            program: "echo".into(),
            args: vec!["hi".into()],
            env: vec![],
            stdin: None,
            delivery: None,
        }),
        bounds: Bounds {
            max_return_bytes: 64,
            expected_execution_ms: 1_000,
            data_format: "text".into(),
            max_memory_mb: 64,
        },
        verification: Verification::none(),
        max_price: Wei::cby(10),
        tip: Wei::cby(1),
        timeout_blocks: 10,
        callback: None,
        required_runner_pool: None,
        tee_required: false,
    }
}

/// A chain with blocks written by a test.
struct Chain {
    state: State,
    supply: Wei,
    /// Whether each block carries its parent's certificate, with all runners present.
    certify: bool,
    /// Runs actors in Python.
    pvm: Option<Box<dyn Pvm>>,
}

impl Chain {
    fn new(genesis: &Genesis) -> Self {
        let state = genesis.state().unwrap();
        Self { supply: state.supply().total(), state, certify: true, pvm: None }
    }

    fn certificate(&self) -> Certificate {
        let head = self.state.head();
        let runners = self.state.order_for_votes_on(head.height).unwrap().len();
        let votes = (0..canonical::quorum(4))
            .map(|validator| Vote {
                validator,
                presence: Bitmap::from_fn(runners, |_| true),
                signature: [0; 64],
            })
            .collect();
        Certificate { block: self.state.head_hash(), round: head.round, votes }
    }

    fn block(&self, transactions: Vec<SignedTransaction>) -> Block {
        let head = self.state.head();
        let certified = self.certify && head.height > Height::GENESIS;
        let certificates = Vec::from_iter(certified.then(|| self.certificate()));
        let candidates = head.candidates(self.state.head_hash());
        let (_, open) = certify(&candidates, certificates.iter().map(|c| c.block)).unwrap();
        let height = head.height.next();
        let header = Header {
            height,
            parent: self.state.head_hash(),
            round: Round { epoch: 0, view: height.get(), parent_view: height.get() - 1 },
            proposer: [1; 32],
            timestamp_ms: head.timestamp_ms + 500,
            subset_epoch: self.state.childs_subset_epoch(),
            transactions_root: transactions_root(&transactions),
            certificates_root: certificates_root(&certificates),
            open,
            executed: Executed { height: head.height, state_root: self.state.root() },
        };
        Block { header, certificates, transactions }
    }

    fn push(&mut self, transactions: Vec<SignedTransaction>) -> Execution {
        let block = self.block(transactions);
        assert_eq!(Block::from_bytes(&block.to_bytes()), Ok(block.clone()));
        let execution = execute_on(self.pvm.as_deref(), &self.state, &block).unwrap();
        self.state = execution.state.clone();
        assert_eq!(self.state.supply().total(), self.supply, "money is conserved");
        let snapshot = State::from_bytes(&self.state.to_bytes()).unwrap();
        assert_eq!(snapshot.root(), self.state.root());
        execution
    }

    fn sign(&self, name: &str, payload: Payload) -> SignedTransaction {
        let nonce = self.state.account(&key(name).address()).nonce;
        self.sign_at(name, nonce, payload)
    }

    fn sign_at(&self, name: &str, nonce: u64, payload: Payload) -> SignedTransaction {
        let (cycle, cell) = (self.state.basefee_cycle(), self.state.basefee_cell());
        Transaction::with_limits(self.state.chain_id(), nonce, cycle, cell, payload)
            .sign(&key(name))
    }

    fn one(&mut self, name: &str, payload: Payload) -> Execution {
        let signed = self.sign(name, payload);
        self.push(vec![signed])
    }

    fn balance(&self, name: &str) -> Wei {
        self.state.account(&key(name).address()).balance
    }

    fn submit(&mut self, spec: JobSpec) -> Hash {
        let nonce = self.state.account(&key("alice").address()).nonce;
        let id = spec.job_id(&key("alice").address(), nonce);
        let execution = self.one("alice", Payload::SubmitJob(Arc::new(spec)));
        assert_eq!(execution.receipts[0].status, ReceiptStatus::Success);
        id
    }

    fn result(&self, job_id: Hash, signer: &str, runner: &Address, result: &[u8]) -> Payload {
        let digest = JobResult::digest(self.state.chain_id(), &job_id, result);
        Payload::SubmitResult(transaction::SubmitResult {
            job_id,
            runner: *runner,
            result: result.to_vec(),
            runner_signature: key(signer).sign(&digest),
        })
    }

    fn committee(&self, job_id: &Hash) -> Vec<Address> {
        self.state.job(job_id).unwrap().status.assignment().unwrap().committee.clone()
    }
}

fn name_of(runner: &Address) -> String {
    (0..8).map(|i| format!("runner-{i}")).find(|n| key(n).address() == *runner).unwrap()
}

fn transfer(to: &str, amount: Wei) -> Payload {
    Payload::Transfer(transaction::Transfer { to: key(to).address(), amount })
}

fn kinds(execution: &Execution) -> Vec<&'static str> {
    execution.events.iter().map(|e| e.kind.name()).collect()
}

#[test]
fn a_transfer_moves_money_and_pays_both_gases() {
    let mut chain = Chain::new(&genesis(1));
    let before = chain.balance("alice");
    let execution = chain.one("alice", transfer("carol", Wei::cby(5)));
    let receipt = &execution.receipts[0];
    assert_eq!(receipt.status, ReceiptStatus::Success);
    assert_eq!(receipt.cycles.get(), 26_000);
    assert_eq!(chain.balance("carol"), Wei::cby(5));
    let fee = receipt.burned.saturating_add(receipt.tip);
    assert_eq!(chain.balance("alice"), before.saturating_sub(Wei::cby(5)).saturating_sub(fee));
    assert_eq!(receipt.burned.get(), u128::from(26_000 + receipt.cells.get()) * 1_000);
    // The tip went to the proposer, validator-0 by its consensus key.
    assert_eq!(chain.balance("validator-0"), receipt.tip);
    assert_eq!(receipt.tip, Wei::new(26_000));
}

#[test]
fn a_failing_transaction_changes_nothing_but_fee_and_nonce() {
    let mut chain = Chain::new(&genesis(1));
    let execution = chain.one("alice", transfer("carol", Wei::cby(2_000_000)));
    let receipt = &execution.receipts[0];
    let error = receipt.status.error().unwrap();
    assert!(error.starts_with("InsufficientBalance: "), "{error}");
    assert_eq!(receipt.status.name(), "failed");
    assert_eq!(chain.balance("carol"), Wei::ZERO);
    assert_eq!(chain.state.account(&key("alice").address()).nonce, 1);
    assert_eq!(kinds(&execution), ["PresenceUnavailable"]);
}

#[test]
fn what_cannot_stand_is_skipped_without_a_trace() {
    let chain = Chain::new(&genesis(1));
    let good = chain.sign("alice", transfer("bob", Wei::new(1)));
    let resigned = |change: &dyn Fn(&mut Transaction)| {
        let mut tx = good.transaction.clone();
        change(&mut tx);
        tx.sign(&key("alice"))
    };
    let check = |signed: SignedTransaction, error: &str| {
        let mut chain = Chain::new(&genesis(1));
        let execution = chain.push(vec![signed]);
        let status = &execution.receipts[0].status;
        assert_eq!(status.name(), "skipped");
        assert!(status.error().unwrap().starts_with(error), "{status:?}");
        assert_eq!(chain.balance("alice"), Wei::cby(1_000_000));
        assert_eq!(chain.state.account(&key("alice").address()).nonce, 0);
    };
    check(resigned(&|tx| tx.nonce = 1), "WrongNonce: 1 where 0 is next");
    check(resigned(&|tx| tx.chain_id += 1), "WrongChain");
    check(resigned(&|tx| tx.fees.max_fee_per_cycle = Wei::new(999)), "FeeBelowBasefee: a cycle");
    check(resigned(&|tx| tx.fees.max_fee_per_cell = Wei::new(999)), "FeeBelowBasefee: a cell");
    check(resigned(&|tx| tx.cycle_limit = crate::primitives::Cycles::new(25_999)), "LimitTooLow");
    check(chain.sign("nobody", transfer("bob", Wei::new(1))), "InsufficientBalance: ");
    let mut signature = good.signature;
    signature.0[64] = 3;
    check(SignedTransaction::new(good.transaction.clone(), signature), "BadSignature");
}

#[test]
fn a_transaction_that_becomes_stale_within_a_block_is_skipped() {
    let mut chain = Chain::new(&genesis(1));
    let first = chain.sign("alice", transfer("bob", Wei::new(1)));
    let second = chain.sign("alice", transfer("bob", Wei::new(2)));
    let third = chain.sign_at("alice", 1, transfer("bob", Wei::new(3)));
    let execution = chain.push(vec![first, second, third]);
    let names: Vec<_> = execution.receipts.iter().map(|r| r.status.name()).collect();
    assert_eq!(names, ["success", "skipped", "success"]);
}

#[test]
fn basefees_follow_use() {
    let mut chain = Chain::new(&genesis(1));
    chain.push(vec![]);
    assert_eq!(chain.state.basefee_cycle(), Wei::new(875));
    assert_eq!(chain.state.basefee_cell(), Wei::new(875));
}

#[test]
fn presence_is_known_from_block_two_on_and_ages() {
    let mut chain = Chain::new(&genesis(3));
    let execution = chain.push(vec![]);
    assert_eq!(kinds(&execution), ["PresenceUnavailable"]);
    let execution = chain.push(vec![]);
    assert_eq!(kinds(&execution), ["PresenceDerived"]);
    assert_eq!(execution.derived[0].height, Height::new(1));
    assert_eq!(chain.state.present_at(Height::new(2)).unwrap().len(), 3);
    chain.certify = false;
    for height in 3..=5 {
        assert_eq!(kinds(&chain.push(vec![])), [""; 0], "block {height}");
    }
    // 6 − 1 − 1 = 4 > presence_timeout_blocks.
    assert_eq!(kinds(&chain.push(vec![])), ["PresenceUnavailable"]);
    // The parent's certificate makes presence known again.
    chain.certify = true;
    assert_eq!(kinds(&chain.push(vec![])), ["PresenceDerived"]);
}

#[test]
fn a_runner_registered_since_is_absent_and_a_gap_closes() {
    let mut chain = Chain::new(&genesis(2));
    chain.push(vec![]);
    chain.one("bob", {
        Payload::RegisterRunner(transaction::RegisterRunner {
            pubkey: key("bob").public_key(),
            stake: MIN_STAKE,
            capabilities: capabilities(),
            price_per_second: Wei::cby(1),
        })
    });
    let bob = key("bob").address();
    assert_eq!(chain.state.registry().order().index(&bob), Some(2));
    assert!(!chain.state.present_at(Height::new(3)).unwrap().contains(&bob));
    // Votes on the block that registered bob are indexed without him; votes on its child with him.
    chain.push(vec![]);
    assert!(!chain.state.present_at(Height::new(3)).unwrap().contains(&bob));
    chain.push(vec![]);
    assert!(chain.state.present_at(Height::new(4)).unwrap().contains(&bob));
    let execution = chain.one("bob", Payload::DeregisterRunner);
    assert_eq!(execution.receipts[0].status, ReceiptStatus::Success);
    assert_eq!(chain.state.registry().order().len(), 2);
    let again = chain.one("bob", Payload::RunnerHeartbeat);
    assert!(again.receipts[0].status.error().unwrap().starts_with("UnknownRunner"));
}

#[test]
fn a_job_is_drawn_paid_and_remembered() {
    let mut chain = Chain::new(&genesis(4));
    chain.push(vec![]);
    let job_id = chain.submit(spec());
    let committee = chain.committee(&job_id);
    assert_eq!(committee.len(), 1);
    let runner = committee[0];
    assert_eq!(chain.state.registry().get(&runner).unwrap().active_jobs, 1);
    assert_eq!(chain.state.supply().escrow, Wei::cby(11));
    let name = name_of(&runner);
    let before = chain.state.account(&runner).balance;
    let payload = chain.result(job_id, &name, &runner, b"hi\n");
    let execution = chain.one("bob", payload.clone());
    assert_eq!(execution.receipts[0].status, ReceiptStatus::Success);
    // Half a second at 1 CBY a second, and the tip.
    let paid = Wei::new(1_500_000_000);
    assert_eq!(chain.state.account(&runner).balance, before.saturating_add(paid));
    let job = chain.state.job(&job_id).unwrap();
    assert!(
        matches!(&job.status, JobStatus::Verified(_, o) if o.paid == paid && o.runner == runner)
    );
    assert_eq!(chain.state.open_jobs().count(), 0);
    assert_eq!(chain.state.registry().get(&runner).unwrap().active_jobs, 0);
    let (_, kind, record) = chain.state.mru().next().unwrap();
    assert_eq!((kind, record.runner), (JobKind::Custom, runner));
    // One result per (job, runner).
    let again = chain.one("bob", payload);
    assert!(again.receipts[0].status.error().unwrap().starts_with("JobNotAssigned"));
}

#[test]
fn only_the_drawn_runner_s_own_result_counts() {
    let mut chain = Chain::new(&genesis(4));
    chain.push(vec![]);
    let job_id = chain.submit(spec());
    let runner = chain.committee(&job_id)[0];
    let name = name_of(&runner);
    let other = (0..4).map(|i| format!("runner-{i}")).find(|n| *n != name).unwrap();
    let mut check = |payload: Payload, error: &str| {
        let execution = chain.one("bob", payload);
        let status = &execution.receipts[0].status;
        assert!(status.error().unwrap().starts_with(error), "{status:?}");
    };
    let unsigned = Chain::new(&genesis(4));
    check(unsigned.result(job_id, &other, &runner, b"x"), "BadResultSignature");
    check(unsigned.result(job_id, &other, &key(&other).address(), b"x"), "NotInCommittee");
    check(unsigned.result(job_id, &name, &runner, &[0; 65]), "ResultTooLarge");
    check(unsigned.result(Hash::ZERO, &name, &runner, b"x"), "UnknownJob");
}

#[test]
fn without_a_candidate_a_job_waits_and_fails_at_its_deadline() {
    let mut chain = Chain::new(&genesis(2));
    chain.certify = false;
    let balance = chain.balance("alice");
    let job_id = chain.submit(spec());
    let fee = balance.saturating_sub(chain.balance("alice")).saturating_sub(Wei::cby(11));
    for _ in 0..9 {
        let execution = chain.push(vec![]);
        assert!(kinds(&execution).contains(&"JobWaiting"));
        assert_eq!(execution.draws[0].verdicts[0].dropped_by.unwrap().name(), "presence");
    }
    let execution = chain.push(vec![]);
    assert!(kinds(&execution).contains(&"JobFailed"));
    let JobStatus::Failed(failure) = &chain.state.job(&job_id).unwrap().status else {
        panic!("no runner could do it")
    };
    assert_eq!((failure.reason, &failure.assignment), (FailureReason::NoCandidates, &None));
    assert_eq!(chain.balance("alice"), balance.saturating_sub(fee));
}

#[test]
fn a_runner_that_names_models_and_servers_is_drawn_for_these_alone() {
    let mut genesis = genesis(2);
    let kinds = vec![JobKind::Llm, JobKind::Mcp];
    for runner in &mut genesis.runners {
        runner.capabilities = Capabilities::of(kinds.clone(), 8);
    }
    // The other one takes any.
    let names = ["small", "embedder"].map(str::to_owned).to_vec();
    genesis.runners[0].capabilities.models = Some(names);
    genesis.runners[0].capabilities.mcp_servers = Some(vec!["files".to_owned()]);
    let mut chain = Chain::new(&genesis);
    chain.push(vec![]);
    let mut dropped = |document: &str| {
        let spec = document::read(Json::parse(document.as_bytes()).unwrap()).unwrap();
        let execution = chain.one("alice", Payload::SubmitJob(Arc::new(spec)));
        let of = |name| {
            let mut verdicts = execution.draws[0].verdicts.iter();
            verdicts.find(|verdict| verdict.runner == key(name).address()).unwrap()
        };
        assert_eq!(of("runner-1").dropped_by, None);
        let named = of("runner-0");
        named.dropped_by.map(|filter| format!("{filter}: {}", named.reason))
    };
    let llm = |more: &str| {
        let messages = r#"[{"role": "user", "content": "hi"}]"#;
        format!(r#"{{"kind": "llm", "work": {{"messages": {messages}, {more}}}}}"#)
    };
    assert_eq!(dropped(&llm(r#""model": "small", "embedding_model": "embedder""#)), None);
    let expected = "capability: not registered for model `large`";
    assert_eq!(dropped(&llm(r#""model": "large""#)).as_deref(), Some(expected));
    let expected = "capability: not registered for embedding model `other`";
    let other = llm(r#""model": "small", "embedding_model": "other""#);
    assert_eq!(dropped(&other).as_deref(), Some(expected));
    let mcp =
        |server| format!(r#"{{"kind": "mcp", "work": {{"server": "{server}", "tool": "t"}}}}"#);
    assert_eq!(dropped(&mcp("files")), None);
    let expected = "capability: not registered for MCP server `search`";
    assert_eq!(dropped(&mcp("search")).as_deref(), Some(expected));
}

#[test]
fn draws_within_one_block_count_against_capacity() {
    let mut chain = Chain::new(&genesis(1));
    chain.push(vec![]);
    let jobs: Vec<_> = (0..3)
        .map(|nonce| chain.sign_at("alice", nonce, Payload::SubmitJob(Arc::new(spec()))))
        .collect();
    let execution = chain.push(jobs);
    assert_eq!(execution.draws.len(), 3);
    let waiting: Vec<_> =
        execution.draws.iter().filter(|d| d.selection.committee.is_empty()).collect();
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].verdicts[0].dropped_by.unwrap().name(), "concurrency");
}

#[test]
fn a_spec_that_cannot_stand_is_refused_by_field() {
    let check = |change: &dyn Fn(&mut JobSpec), field: &str| {
        let mut spec = spec();
        change(&mut spec);
        let error = spec.check().unwrap_err();
        assert_eq!(error.field, field);
    };
    check(&|s| s.bounds.max_return_bytes = 0, "bounds.max_return_bytes");
    check(&|s| s.bounds.expected_execution_ms = 0, "bounds.expected_execution_ms");
    check(&|s| s.bounds.max_memory_mb = 0, "bounds.max_memory_mb");
    check(&|s| s.bounds.data_format = "xml".into(), "bounds.data_format");
    check(&|s| s.max_price = Wei::ZERO, "max_price");
    check(&|s| s.tip = Wei::new(u128::MAX), "tip");
    check(&|s| s.timeout_blocks = 0, "timeout_blocks");
    check(&|s| s.verification.runners = 0, "verification.runners");
    check(&|s| s.verification.runners = 3, "verification.runners");
    let http = |pointer: &str| {
        let (method, url) = ("GET".into(), "http://a/".into());
        let (headers, pointer) = (vec![], Some(pointer.into()));
        Work::Http(HttpWork { method, url, headers, body: None, pointer })
    };
    check(&|s| s.work = http("price"), "work.pointer");
    check(&|s| s.work = http("/a~2"), "work.pointer");
    for arguments in ["", "{", "[]", r#"{"a": 1, "a": 2}"#] {
        let (server, tool, arguments) = ("s".into(), "t".into(), String::from(arguments));
        let work = Work::Mcp(McpWork { server, tool, arguments });
        check(&|s| s.work = work.clone(), "work.arguments");
    }
}

#[test]
fn admission_reads_the_registry_and_the_subset() {
    let chain = Chain::new(&genesis(1));
    let runner = key("runner-0").public_key();
    let subset = chain.state.subset_of(&runner);
    assert_eq!(subset.len(), 3);
    for validator in chain.state.validators() {
        let admitted = chain.state.admit(&runner, &validator.pubkey);
        match subset.contains(&validator) {
            true => assert_eq!(admitted, Ok(runner.address())),
            false => assert_eq!(admitted, Err(GoodbyeReason::NotInSubset)),
        }
    }
    let stranger = key("stranger").public_key();
    let refused = chain.state.admit(&stranger, &chain.state.validators()[0].pubkey);
    assert_eq!(refused, Err(GoodbyeReason::UnknownRunner));
}

#[test]
fn a_block_of_another_parent_is_refused() {
    let mut chain = Chain::new(&genesis(1));
    let block = chain.block(vec![]);
    chain.push(vec![]);
    assert!(matches!(execute(&chain.state, &block), Err(ExecutionError::NotAChild { .. })));
}

#[test]
fn the_chain_id_depends_on_every_part_of_the_document() {
    let id = genesis(1).chain_id();
    assert_eq!(genesis(1).chain_id(), id);
    assert_ne!(genesis(2).chain_id(), id);
    assert_ne!(Genesis { name: "other".into(), ..genesis(1) }.chain_id(), id);
}
