//! Prepared answers of a devnet of four validators and four runners at height 42.

use crate::support::{Answer, Request, time};
use cowboy_devnet::{
    topology::{Name, Overrides, Plan, Topology},
    types::*,
};
use cowboy_engine::{
    actor,
    primitives::{Address, CBY, Hash, Shortfall, Wei},
};
use serde_json::json;

/// The plan of the devnet that the answers describe.
pub fn plan() -> Plan {
    Topology::default().resolve(&Overrides::default(), "", "").unwrap()
}

pub fn address(name: &str) -> AddressText {
    Text(plan().key(&name.parse::<Name>().unwrap()).address())
}

pub fn hash(byte: u8) -> HashText {
    Text(Hash([byte; 32]))
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|index| format!("{prefix}-{index}")).collect()
}

pub fn head() -> Head {
    Head { height: 42, hash: hash(42), finalized_at: Some(time()) }
}

pub fn parameters() -> Parameters {
    Parameters {
        chain_id: Text(ChainId(0x0123_4567_89ab_cdef)),
        height: 43,
        genesis: hash(0),
        block_time_ms: 250,
        epoch_blocks: 64,
        cycle_basefee: Text(Wei::new(1_000)),
        cell_basefee: Text(Wei::new(1_000)),
        cycle_limit: 20_000_000,
        cell_limit: 1_000_000,
        threshold_rule: "committee".to_owned(),
        selection_seed: Some("parent".to_owned()),
        phase: "hot-path".to_owned(),
        phase_since: 0,
        validators: 4,
        runners: 4,
        actors: actor::ActorParams::default().into(),
        proofs: ProofParameters { generator: "groth16".to_owned(), verifying_key: Some(hash(7)) },
        python: None,
        ahead_ms: 0,
    }
}

fn status() -> Status {
    let validator = |name: String| ValidatorStatus {
        address: address(&name),
        index: name.rsplit('-').next().and_then(|index| index.parse().ok()),
        height: 42,
        status: if name == "validator-3" {
            ValidatorState::CatchingUp
        } else {
            ValidatorState::Running
        },
        reason: None,
        name,
    };
    let runner = |name: String| RunnerStatus {
        address: address(&name),
        status: RunnerState::Connected,
        connected_validators: names("validator", 3),
        unmet: None,
        name,
    };
    Status {
        name: "local".to_owned(),
        running: true,
        ready: true,
        chain_id: Some(Text(ChainId(0x0123_4567_89ab_cdef))),
        head: Some(head()),
        kept_from: Some(1),
        validators: names("validator", 4).into_iter().map(validator).collect(),
        runners: names("runner", 4).into_iter().map(runner).collect(),
        faults: Vec::new(),
        supply: None,
        pid: Some(4_242),
        started_at: None,
        died: None,
    }
}

pub fn event(height: u64, index: u32, kind: &str, data: serde_json::Value) -> Event {
    Event {
        height,
        index,
        kind: kind.to_owned(),
        transaction: None,
        timer: None,
        job_id: None,
        timer_id: None,
        data,
    }
}

fn block() -> Block {
    Block {
        height: 42,
        hash: hash(42),
        parent: hash(41),
        proposer: Some("validator-2".to_owned()),
        proposer_address: Some(address("validator-2")),
        view: 43,
        timestamp: time(),
        finalized_at: Some(time()),
        state_root: hash(7),
        executed_height: 41,
        subset_epoch: 0,
        transactions: vec![BlockTransaction {
            hash: hash(9),
            kind: "transfer".to_owned(),
            sender: address("dev-0"),
            status: TransactionStatus::Success,
        }],
        fires: vec![],
        certificate_for: vec![41],
        open: vec![],
        events: vec![
            event(42, 0, "PresenceDerived", json!({"certified": 41, "present": 4, "votes": 3})),
            event(42, 1, "Transferred", json!({"amount": "1500000000"})),
        ],
        cycles_used: 26_000,
        cells_used: 800,
    }
}

pub fn notice(height: u64) -> String {
    let notice = BlockNotice {
        height,
        hash: hash(height as u8),
        proposer: Some("validator-2".to_owned()),
        view: height,
        finalized_at: Some(time()),
        transactions: 0,
        fires: 0,
        certificate_for: vec![height - 1],
        present: 4,
        registry_len: 4,
        events: vec![event(height, 0, "PresenceDerived", json!({"certified": height - 1}))],
    };
    let json = serde_json::to_string(&notice).unwrap();
    format!("id: {height}\nevent: block\ndata: {json}\n\n")
}

pub fn transaction(hash: HashText, status: TransactionStatus) -> Transaction {
    let failed = status == TransactionStatus::Failed;
    Transaction {
        hash,
        status,
        kind: "transfer".to_owned(),
        sender: address("dev-0"),
        sender_name: Some("dev-0".to_owned()),
        acted_as: None,
        nonce: 3,
        payload: json!({"amount": "1500000000", "to": address("dev-1")}),
        height: (status != TransactionStatus::Pending).then_some(43),
        index: Some(0),
        fee: Some(Fee {
            cycles: 26_000,
            unused: 0,
            cells: 800,
            burned: Text(Wei::new(26_800_000)),
            tip: Text(Wei::new(26_000)),
        }),
        error: failed.then(|| "InsufficientBalance".to_owned()),
        message: failed
            .then(|| Shortfall {
                payer: *address("dev-0"),
                need: Wei::new(2 * CBY + CBY / 2),
                have: Wei::cby(1),
            })
            .map(|short| short.to_string()),
        timer_allowance: None,
        actor: None,
        events: vec![],
    }
}

pub fn account(name: &str) -> Account {
    Account {
        name: Some(name.to_owned()),
        address: address(name),
        balance: Text(Wei::new(1_000_000 * CBY + CBY / 2)),
        nonce: 3,
        next_nonce: 3,
    }
}

fn unmet() -> UnmetPresence {
    UnmetPresence {
        condition: PresenceCondition::TakesNoJobs,
        detail: "it told validator-0 that it takes no jobs: paused, 1 of 4".to_owned(),
    }
}

fn runner(index: usize) -> Runner {
    let name = format!("runner-{index}");
    let key = plan().key(&name.parse::<Name>().unwrap()).public_key();
    let connection = |validator: String| RunnerConnection {
        validator_address: address(&validator),
        connected: true,
        locally_present: index != 3,
        unmet: (index == 3).then_some(PresenceCondition::TakesNoJobs),
        load: Some(ConnectionLoad {
            active_jobs: 1,
            max_concurrent: 4,
            accepting_new: index != 3,
            reason: (index == 3).then(|| "paused".to_owned()),
        }),
        last_ping: (index != 3).then_some(42),
        last_end: None,
        withdrawn: if index == 2 { vec!["custom".to_owned()] } else { Vec::new() },
        validator,
    };
    Runner {
        address: address(&name),
        name,
        pubkey: Text(key),
        index: index as u32,
        stake: Text(Wei::cby(10_000)),
        reputation: 100,
        kinds: vec!["http".to_owned(), "custom".to_owned()],
        models: None,
        mcp_servers: None,
        tee: index == 2,
        price_per_second: Text(Wei::new(CBY / 1_000)),
        active_jobs: 1,
        max_concurrent_jobs: 4,
        status: RunnerHealth::Healthy,
        registered_at: 0,
        last_heartbeat: 0,
        subset: names("validator", 3),
        connections: names("validator", 3).into_iter().map(connection).collect(),
        present: index != 3,
        unmet: (index == 3).then(unmet),
        presence: Some(RunnerPresence {
            standing: match index {
                3 => PresenceStanding::Absent,
                _ => PresenceStanding::Present,
            },
            of: Some(41),
            for_block: 43,
            halted_ms: None,
        }),
        reputation_history: Vec::new(),
    }
}

fn validator(index: usize) -> Validator {
    let name = format!("validator-{index}");
    let key = plan().key(&name.parse::<Name>().unwrap()).public_key();
    Validator {
        address: address(&name),
        name,
        pubkey: Text(key),
        consensus_key: Text(Bytes(vec![index as u8; 32])),
        index: Some(index as u32),
        status: ValidatorState::Running,
        reason: None,
        height: 42,
        quic: Some(format!("127.0.0.1:2100{index}")),
        p2p: Some(format!("127.0.0.1:2000{index}")),
        pid: None,
        version: None,
        subset_of: names("runner", 3),
        connected_runners: names("runner", 3),
    }
}

fn presence(height: u64) -> Presence {
    let all = height == 41;
    let absent = AbsentRunner { name: "runner-3".to_owned(), present_count: 1 };
    Presence {
        height,
        rule: "committee".to_owned(),
        votes: 3,
        threshold: Some(2),
        registry_len: 4,
        bitmap: Text(Bytes(vec![if all { 0x0f } else { 0x07 }])),
        present: names("runner", if all { 4 } else { 3 }),
        absent: if all { vec![] } else { vec![absent] },
        embedded_in: height + 1,
    }
}

fn votes() -> Votes {
    let vote = |index: u32| Vote {
        validator: format!("validator-{index}"),
        index,
        bit_length: 4,
        bytes: Text(Bytes(vec![0x0f])),
        present: names("runner", 4),
    };
    Votes {
        height: 41,
        quorum: 3,
        validators: 4,
        votes: (0..3).map(vote).collect(),
        embedded_in: 42,
    }
}

fn comparison() -> PresenceComparison {
    let draw = |id, height, dropped: &[&str], with: &[&str], without: &str| {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        ComparedDraw {
            height,
            job_id: hash(id),
            phase: "shadow".to_owned(),
            filtered: false,
            presence_of: Some(height - 1),
            dropped: names(dropped),
            with_filter: names(with),
            without_filter: names(&[without]),
            same: with == [without],
        }
    };
    PresenceComparison {
        from: 30,
        to: 42,
        draws: vec![
            draw(1, 35, &[], &["runner-2"], "runner-2"),
            draw(2, 37, &["runner-1"], &["runner-0"], "runner-1"),
            draw(3, 40, &["runner-0", "runner-1", "runner-2", "runner-3"], &[], "runner-3"),
        ],
        compared: 3,
        changed: 2,
        would_have_waited: 1,
        more: false,
    }
}

/// Job 1 is verified, job 2 failed, job 3 waits.
pub fn job(id: u8) -> Job {
    let status = [JobStatus::Verified, JobStatus::Failed, JobStatus::Assigned][usize::from(id) - 1];
    let verified = status == JobStatus::Verified;
    let happened = |height, event: &str| JobEvent {
        height,
        event: event.to_owned(),
        timestamp: time(),
        data: json!({}),
    };
    Job {
        job_id: hash(id),
        name: None,
        kind: "custom".to_owned(),
        submitter: address("dev-0"),
        submitter_name: Some("dev-0".to_owned()),
        status,
        committee: vec!["runner-2".to_owned()],
        committee_addresses: vec![address("runner-2")],
        attempts: 1,
        result: verified.then(|| Text(Bytes(b"hi\n".to_vec()))),
        result_text: verified.then(|| "hi\n".to_owned()),
        runner: verified.then(|| "runner-2".to_owned()),
        max_price: Text(Wei::cby(1)),
        paid: verified.then(|| Text(Wei::new(1_000))),
        submitted_at: 43,
        assigned_at: Some(43),
        deadline: 163,
        final_at: (status != JobStatus::Assigned).then_some(45),
        latency_ms: verified.then_some(500),
        error: (status == JobStatus::Failed).then(|| "no result by its deadline".to_owned()),
        spec: json!({"work": {"program": "sh"}}),
        events: vec![
            happened(43, "JobSubmitted"),
            happened(43, "JobAssigned"),
            happened(45, if verified { "JobVerified" } else { "JobFailed" }),
        ],
        progress: if status == JobStatus::Assigned { vec![progress()] } else { vec![] },
    }
}

fn progress() -> RunnerProgress {
    let detail = Some("page 4".to_owned());
    RunnerProgress { runner: "runner-2".to_owned(), percent: 42, detail, height: 44 }
}

fn summary(id: u8) -> JobSummary {
    let job = job(id);
    JobSummary {
        job_id: job.job_id,
        name: None,
        kind: job.kind,
        submitter: job.submitter,
        submitter_name: job.submitter_name,
        status: job.status,
        committee: job.committee,
        submitted_at: job.submitted_at,
        final_at: job.final_at,
    }
}

fn dispatch(
    validator: &str,
    outcome: &str,
    answered_ms: Option<u64>,
    done_ms: Option<u64>,
) -> JobDispatch {
    let (validator, outcome) = (validator.to_owned(), outcome.to_owned());
    let runner = "runner-2".to_owned();
    let started_ms = done_ms.map(|done| done / 2);
    JobDispatch { validator, runner, assigned_at: 43, outcome, answered_ms, started_ms, done_ms }
}

fn explanation() -> Explanation {
    let under = |rule: &str| {
        let all = rule == "quorum" || rule == "subset";
        UnderRule {
            rule: rule.to_owned(),
            in_force: rule == "committee",
            present: names("runner", if all { 4 } else { 3 }),
            committee: names("runner", 4)[if all { 3..4 } else { 2..3 }].to_vec(),
            same: !all,
        }
    };
    let candidate = |index: usize| {
        let name = format!("runner-{index}");
        let dropped = index == 3;
        Candidate {
            address: address(&name),
            runner: name,
            filter: dropped.then(|| "presence".to_owned()),
            reason: dropped.then(|| "1 of 3 votes, 2 are needed".to_owned()),
            weight: (!dropped).then_some(2),
            first_weight: (!dropped).then_some(if index == 1 { 8 } else { 2 }),
            stake: Some(Text(Wei::cby(20_000))),
        }
    };
    Explanation {
        job_id: hash(1),
        height: 43,
        attempt: 1,
        wanted: 1,
        passed: 3,
        status: JobStatus::Verified,
        deadline: 93,
        candidates: (0..4).map(candidate).collect(),
        block_hash: hash(42),
        seed_source: Some(SeedSource {
            rule: "certificate".to_owned(),
            certificate_of: Some(41),
            digest: Some(hash(8)),
        }),
        seed: hash(5),
        phase: Some("hot-path".to_owned()),
        presence: Some(PresenceRead {
            height: 42,
            age: 0,
            block_hash: Some(hash(42)),
            votes: Some(3),
            embedded_in: Some(43),
            rule: "committee".to_owned(),
        }),
        mru: Some("runner-1".to_owned()),
        mru_record: Some(MruRead {
            runner: "runner-1".to_owned(),
            runner_address: address("runner-1"),
            set_at: 40,
            age: 3,
            ttl_blocks: 256,
            multiplier: 4,
            applied: true,
        }),
        draws: vec![Draw {
            draw: 0,
            r: 11,
            total: 12,
            picked: "runner-2".to_owned(),
            picked_address: address("runner-2"),
        }],
        candidates_root: Some(hash(6)),
        withdrawn: vec![Withdrawal {
            runner: "runner-1".to_owned(),
            labels: vec!["custom".to_owned()],
        }],
        under_other_rules: ["committee", "quorum", "subset", "shadow"].map(under).into(),
    }
}

fn mru() -> MruRecord {
    MruRecord {
        submitter: address("dev-0"),
        submitter_name: Some("dev-0".to_owned()),
        kind: "custom".to_owned(),
        runner: "runner-2".to_owned(),
        runner_address: address("runner-2"),
        set_at: 45,
        expires_at: 301,
        live: true,
    }
}

fn pool() -> Pool {
    let member = |runner: &str, valid_until, live| PoolMember {
        runner: runner.to_owned(),
        address: address(runner),
        valid_until,
        live,
    };
    Pool {
        pool: "gpu".to_owned(),
        owner: address("dev-0"),
        owner_name: Some("dev-0".to_owned()),
        members: vec![
            member("runner-0", None, true),
            member("runner-1", Some(90), true),
            member("runner-2", Some(41), false),
        ],
    }
}

/// The API of the devnet, for read requests only.
pub fn answer(request: &Request) -> Answer {
    let job_path = |id: u8, rest: &str| format!("GET /v1/jobs/{}{rest}", hash(id));
    let line = request.line.as_str();
    let dev_0 = address("dev-0");
    let named = |name: &str| format!("GET /v1/accounts/{name}");
    match line {
        "GET /v1/status" | "GET /v1/status?node=validator-2" => Answer::json(&status()),
        "GET /v1/chain/head" => Answer::json(&head()),
        "GET /v1/chain/parameters" => Answer::json(&parameters()),
        "GET /v1/chain/blocks/42" | "GET /v1/chain/blocks/latest" => Answer::json(&block()),
        "GET /v1/chain/events?from=0" => Answer::json(&EventPage {
            events: vec![event(1, 0, "PresenceUnavailable", json!({}))],
            next: Some(2),
        }),
        "GET /v1/chain/events?from=2" => {
            Answer::json(&EventPage { events: block().events, next: None })
        }
        "GET /v1/events" => Answer::Stream((43..48).map(notice).collect()),
        "GET /v1/accounts" => Answer::json(&[account("faucet"), account("dev-0")]),
        _ if line == named("dev-0") || line == named(&dev_0.to_string()) => {
            Answer::json(&account("dev-0"))
        }
        "GET /v1/accounts/dev-1" => Answer::json(&account("dev-1")),
        "GET /v1/runners" => Answer::json(&(0..4).map(runner).collect::<Vec<_>>()),
        "GET /v1/runners/runner-3" => Answer::json(&runner(3)),
        "GET /v1/validators" => Answer::json(&(0..4).map(validator).collect::<Vec<_>>()),
        "GET /v1/validators/validator-2" => Answer::json(&validator(2)),
        "POST /v1/validators/validator-2/stop" => Answer::json(&Validator {
            status: ValidatorState::Stopped,
            quic: None,
            p2p: None,
            pid: None,
            version: None,
            connected_runners: vec![],
            ..validator(2)
        }),
        "POST /v1/validators/validator-2/resync" => {
            Answer::json(&Validator { status: ValidatorState::Starting, ..validator(2) })
        }
        "POST /v1/validators/validator-2/start" => {
            Answer::error(ErrorCode::Conflict, None, "validator-2 is running")
        }
        "GET /v1/jobs" | "GET /v1/jobs?limit=100" => {
            Answer::json(&[summary(3), summary(2), summary(1)])
        }
        "GET /v1/jobs?limit=5&status=Verified" => Answer::json(&[summary(1)]),
        _ if line == job_path(1, "") => Answer::json(&job(1)),
        _ if line == job_path(2, "") => Answer::json(&job(2)),
        _ if line == job_path(3, "") => Answer::json(&job(3)),
        "GET /v1/jobs/latest" => Answer::json(&job(1)),
        _ if line == job_path(1, "/result") => Answer::json(&JobResult {
            job_id: hash(1),
            runner: "runner-2".to_owned(),
            runner_address: address("runner-2"),
            result: Text(Bytes(b"hi\n\xff".to_vec())),
            result_text: None,
            final_at: 45,
        }),
        _ if line == job_path(1, "/dispatches") => Answer::json(&[
            dispatch("validator-0", "done", Some(4), Some(31)),
            dispatch("validator-1", "duplicate", Some(5), None),
            dispatch("validator-2", "waiting", None, None),
        ]),
        _ if line == job_path(1, "/explain") => Answer::json(&explanation()),
        "GET /v1/presence/latest" | "GET /v1/presence/41" => Answer::json(&presence(41)),
        "GET /v1/presence/40" => Answer::json(&presence(40)),
        "GET /v1/presence/41/votes" => Answer::json(&votes()),
        "GET /v1/presence/compare?from=30&to=42" => Answer::json(&comparison()),
        "GET /v1/mru" => Answer::json(&[mru()]),
        "GET /v1/pools" => Answer::json(&[pool()]),
        "GET /v1/pools/gpu" => Answer::json(&pool()),
        "GET /v1/mru/dev-0/custom" => Answer::json(&mru()),
        _ => Answer::error(ErrorCode::NotFound, None, &format!("no answer to {line}")),
    }
}

/// The account that has to sign submitted transactions.
pub fn sender() -> Address {
    *address("dev-0")
}
