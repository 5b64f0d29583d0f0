//! Separate runners and their trust in validators: an API that names false validators, and a chain
//! whose validators are all replaced.

use crate::{
    liar::{Liar, Lie},
    runners::{Foreground, key_file, run_job, until_present},
    support::{Home, Outcome, list, wait_until},
    timers::{number, text},
};
use cowboy_devnet::{
    sample::{self, certificate, validator_keys},
    types::{Bytes, ChainIdText, PolledJob, PolledJobs, Text, Wanted},
};
use cowboy_engine::{
    chain::{Evidence, Executed, Genesis, Header, PARTS, ProvedEntry, StateProof, Subject},
    job::spec::{Assignment, CommandWork, Job, JobStatus, Work},
    primitives::{Address, Hash, Height, codec::to_vec, keccak256, merkle::Map},
};
use rustix::process::Signal;
use serde_json::Value;
use std::{
    fs,
    net::{SocketAddr, UdpSocket},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Indices of the liar's validators.
const LIARS: std::ops::Range<usize> = 10..14;
/// The index of the jobs among the parts of the state root.
const JOBS: usize = 3;

/// A false chain with the id `chain_id`, signed by the liar's validators.
struct Forgery {
    chain_id: u64,
    genesis: Genesis,
}

impl Forgery {
    fn new(chain_id: u64) -> Self {
        let validators = LIARS.map(|index| validator_keys(index).public()).collect();
        Self { chain_id, genesis: Genesis { validators, ..sample::genesis(1, 1) } }
    }

    fn header(&self, state_root: Hash) -> Header {
        let mut header = self.genesis.state().unwrap().head().clone();
        header.height = Height::new(1);
        (header.round.view, header.round.parent_view) = (1, 0);
        header.executed = Executed { height: Height::GENESIS, state_root };
        header
    }

    fn certificate(&self, header: &Header) -> cowboy_engine::chain::Certificate {
        let voters: Vec<_> = LIARS.map(|index| validator_keys(index).consensus).collect();
        certificate(self.chain_id, header, &voters)
    }

    /// A proof that they are the chain's validators.
    fn validators(&self) -> Vec<u8> {
        let state = self.genesis.state().unwrap();
        let header = self.header(state.root());
        let certificate = self.certificate(&header);
        let proof = StateProof::new(&state, Subject::Validators, header, certificate);
        proof.unwrap().to_bytes().unwrap()
    }

    /// A job for `runner` that makes the file `marker`, with a proof that the chain has it.
    fn job(&self, runner: Address, marker: &Path) -> PolledJob {
        let mut spec = sample::spec(10_000);
        (spec.bounds.expected_execution_ms, spec.bounds.max_memory_mb) = (60_000, 512);
        spec.work = Work::Custom(CommandWork {
            program: "touch".into(),
            args: vec![marker.to_str().unwrap().into()],
            env: vec![],
            stdin: None,
            delivery: None,
        });
        let (submitter, nonce) = (Address([7; 20]), 0);
        let job_id = spec.job_id(&submitter, nonce);
        let encoded = to_vec(&spec);
        let mut job = Job::new(Arc::new(spec), (submitter, nonce), Height::new(1));
        job.status = JobStatus::Assigned(Assignment {
            height: Height::new(1),
            timestamp_ms: 0,
            seed: Hash::ZERO,
            candidates_root: Hash::ZERO,
            committee: vec![runner],
        });
        let jobs: Map<Hash, Job> = [(job_id, job.clone())].into_iter().collect();
        let mut parts = [Hash::ZERO; PARTS];
        parts[JOBS] = jobs.root();
        let header =
            self.header(keccak256(&[b"cowboy-state/v2", &parts.map(|part| part.0).concat()]));
        let certificate = self.certificate(&header);
        let entry = ProvedEntry::Present(to_vec(&job), jobs.prove(&job_id).unwrap());
        let evidence = Evidence::Entry { entry, order: None };
        let proof =
            StateProof { subject: Subject::Job(job_id), header, certificate, parts, evidence };
        PolledJob {
            job_id: Text(job_id),
            spec: Text(Bytes(encoded)),
            assigned_at: 1,
            deadline_block: job.deadline().get(),
            wants: Wanted::Result,
            proof: Some(Text(Bytes(proof.to_bytes().unwrap()))),
        }
    }
}

/// The chain id of a started devnet.
fn id(up: &Value) -> u64 {
    text(&up["chain_id"]).parse::<ChainIdText>().unwrap().0.0
}

/// A devnet's validators with the liar's keys, all at `address`.
fn renamed(truth: &Value, address: SocketAddr) -> Value {
    let mut validators = truth.clone();
    for (index, validator) in LIARS.zip(validators.as_array_mut().unwrap()) {
        let own = validator_keys(index).public();
        let hex = |bytes: &[u8]| Text(Bytes(bytes.to_vec())).to_string();
        validator["pubkey"] = hex(own.pubkey.as_bytes()).into();
        validator["address"] = own.pubkey.address().to_string().into();
        validator["consensus_key"] = hex(&own.consensus_key).into();
        validator["quic"] = address.to_string().into();
    }
    validators
}

#[test]
fn an_api_that_names_validators_of_its_own_is_not_believed() {
    let home = Home::new();
    let up = home.up(&["--runners", "0", "--wait", "4"]);
    let (_, key) = key_file(&home, "own.key");
    home.json(&["runner", "register", "--key-file", &key, "--kinds", "custom"]);
    let runner = text(&home.json(&["runner", "ls"])[0]["address"]).parse::<Text<Address>>();
    let outside = tempfile::tempdir().unwrap();
    let marker = outside.path().join("marker");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let dialled = || socket.recv(&mut [0; 2_048]).is_ok();

    let forgery = Forgery::new(id(&up));
    let truth = home.json(&["validator", "ls"]);
    let validators = renamed(&truth, socket.local_addr().unwrap());
    let proof = Text(Bytes(forgery.validators())).to_string();
    let jobs = PolledJobs {
        height: 2,
        phase: "shadow".to_owned(),
        jobs: vec![forgery.job(runner.unwrap().0, &marker)],
        more: false,
    };
    let jobs = serde_json::to_value(jobs).unwrap();
    let polls = Arc::new(AtomicU64::new(0));
    let lie = || -> Lie {
        let (validators, proof, jobs) = (validators.clone(), proof.clone(), jobs.clone());
        let polls = polls.clone();
        Box::new(move |path, status, document| match path.split('?').next().unwrap() {
            "/v1/validators" => *document = validators.clone(),
            "/v1/chain/parameters" => document["phase"] = "shadow".into(),
            "/v1/chain/proofs/validators" => document["proof"] = proof.clone().into(),
            path if path.starts_with("/runner/") && path.ends_with("/jobs") => {
                polls.fetch_add(1, Ordering::Relaxed);
                (*status, *document) = (200, jobs.clone());
            }
            _ => {}
        })
    };
    let liar = Liar::new(&home);

    // The runner trusts genesis, from the topology in the folder.
    liar.say(lie());
    let start = ["runner", "start", "--key-file", &key];
    let honest = Foreground::of(liar.command(&home, &start));
    wait_until("it has been told of the job", || polls.load(Ordering::Relaxed) >= 8);
    assert!(!marker.exists(), "it has done what the liar's validators say");
    assert!(!dialled(), "it has dialled a validator of the liar's");
    drop(honest);

    // The runner trusts named validators.
    let mut named: Vec<&str> = start.to_vec();
    named.extend(["--rpc-url", liar.url(), "--chain-id", text(&up["chain_id"])]);
    for validator in list(&truth) {
        named.extend(["--validator", text(&validator["consensus_key"])]);
    }
    let refused = liar.run(&home, &named, lie());
    assert_eq!(refused.code, 7, "{refused:?}");
    assert!(refused.stderr.contains("does not prove who validates"), "{refused:?}");
    assert!(!marker.exists() && !dialled());

    // The runner trusts only the API and believes it, which shows that the lie is effective.
    let by_url = [&start[..], &["--rpc-url", liar.url(), "--name", "gullible"]].concat();
    let gullible = Foreground::of(liar.command(&home, &by_url));
    wait_until("it does what the liar says", || marker.exists() && dialled());
    drop(gullible);
    // It does not accept another chain's validators afterwards.
    liar.say(Box::new(|path, _, document| {
        if path.starts_with("/v1/chain/blocks/1") {
            document["hash"] = format!("0x{}", "77".repeat(32)).into();
        }
    }));
    let refused = Outcome::of(&by_url, &mut liar.command(&home, &by_url));
    assert_eq!(refused.code, 8, "{refused:?}");
    assert!(refused.stderr.contains("validators of another chain"), "{refused:?}");
}

#[test]
fn a_runner_whose_api_begins_to_lie_keeps_to_whom_it_knew() {
    let home = Home::new();
    let up = home.up(&["--runners", "0", "--wait", "4"]);
    let (_, key) = key_file(&home, "own.key");
    home.json(&["runner", "register", "--key-file", &key, "--kinds", "custom"]);
    let runner = text(&home.json(&["runner", "ls"])[0]["address"]).to_owned();
    let liar = Liar::new(&home);
    let mut own = Foreground::of(liar.command(&home, &["runner", "start", "--key-file", &key]));
    until_present(&home, &runner);
    let forgery = Forgery::new(id(&up));
    let (proof, told) =
        (Text(Bytes(forgery.validators())).to_string(), Arc::new(AtomicU64::new(0)));
    let counted = told.clone();
    liar.say(Box::new(move |path, _, document| {
        if path.starts_with("/v1/chain/proofs/validators") {
            counted.fetch_add(1, Ordering::Relaxed);
            document["proof"] = proof.clone().into();
        }
    }));
    wait_until("it has been lied to often", || told.load(Ordering::Relaxed) >= 12);
    run_job(&home, "all the same");
    own.signal(Signal::TERM);
    let ended = own.ended();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(ended.stderr.matches("who validates now is not proved").count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("the runner knows other validators"), "{ended:?}");
}

#[test]
fn a_runner_of_its_own_follows_while_every_validator_is_replaced() {
    let home = Home::new();
    let file = home.path("turn.yaml");
    fs::write(&file, "name: turn\nvalidators: 4\nrunners: 0\nchain:\n  epoch_blocks: 8\n").unwrap();
    home.up(&["-f", file.to_str().unwrap(), "--wait", "2"]);
    let (_, key) = key_file(&home, "own.key");
    home.json(&["runner", "register", "--key-file", &key, "--kinds", "custom"]);
    let start = ["runner", "start", "--key-file", &key, "--detach"];
    home.json(&start);
    until_present(&home, "own");
    for n in 0..4 {
        let joined = home.json(&["validator", "add", &format!("fresh-{n}")]);
        // Waits for the first block that it votes on.
        home.wait_height(number(&joined["from"]) + 1);
        home.json(&["validator", "remove", &format!("validator-{n}")]);
    }
    // The last old validator has left with its epoch, and its subsets no longer count.
    home.json(&["chain", "wait", "+48"]);
    until_present(&home, "own");
    run_job(&home, "all others");
    let log =
        |name: &str| fs::read_to_string(home.path(&format!("turn/processes/{name}/log"))).unwrap();
    let said = log("own");
    assert!(!said.contains("is not proved") && !said.contains("from genesis"), "{said}");

    // It remembers the validators that it trusted last.
    home.json(&["runner", "stop", "own"]);
    home.json(&start);
    until_present(&home, "own");
    run_job(&home, "again");
    let said = log("own");
    assert!(!said.contains("from genesis"), "{said}");
    home.json(&["runner", "stop", "own"]);

    // A runner that knows only genesis: none of those validators is left to vouch for the others.
    home.json(&[&start[..], &["--name", "later"]].concat());
    until_present(&home, "later");
    run_job(&home, "from genesis");
    let said = log("later");
    assert!(said.contains("verifying the chain from genesis"), "{said}");
    home.json(&["runner", "stop", "later"]);
}
