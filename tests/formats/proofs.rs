//! Checks proofs from Rust with `verify_proof.py`, which implements `docs/proofs.md` and shares no
//! code with Rust; also with every byte of a proof changed.

use commonware_cryptography::Signer as _;
use cowboy_devnet::{
    consensus::{certificate, scheme::Committee},
    sample,
};
use cowboy_engine::{
    chain::{
        Block, Certificate, Found, GenesisValidator, Header, Payload, Roster, State, StateProof,
        Subject, SubsetEpoch, Transaction, Vote,
        block::{certificates_root, transactions_root},
        execute,
        transaction::{DeployActor, Transfer},
    },
    presence::Bitmap,
    primitives::{Address, Hash, Height, SecretKey, Wei, keccak256},
    timer::TimerRequest,
};
use serde_json::Value;
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/formats/verify_proof.py");
const VALIDATORS: usize = 4;
const ACTOR: &str = "def handle_timer(ctx, payload):\n    return payload\n";

pub(crate) struct Chain {
    pub state: State,
}

fn varint(mut number: u64, to: &mut Vec<u8>) {
    while number >= 128 {
        to.push(number as u8 & 127 | 128);
        number >>= 7;
    }
    to.push(number as u8);
}

impl Chain {
    /// A chain with an actor of `account-0` and some hundred timers; returns the actor, too.
    pub fn new() -> (Self, Address) {
        let state = sample::genesis(VALIDATORS, 3).state().expect("a chain");
        let mut chain = Self { state };
        let deployer = sample::key("account-0");
        chain.send(Payload::DeployActor(DeployActor { source: ACTOR.to_owned() }));
        let actor = Address::of_actor(&deployer.address(), 0);
        chain.send(Payload::Transfer(Transfer { to: actor, amount: Wei::cby(1_000) }));
        for n in 0..120u64 {
            let payload = n.to_be_bytes().repeat(n as usize % 20);
            let height = Height::new(500 + n / 3 * n % 70);
            let request = TimerRequest { actor, height, payload, ..TimerRequest::default() };
            chain.send(Payload::ScheduleTimer(Arc::new(request)));
        }
        (chain, actor)
    }

    pub fn child(&self, transactions: Vec<cowboy_engine::chain::SignedTransaction>) -> Block {
        let head = self.state.head();
        let height = head.height.next();
        let mut round = head.round;
        (round.view, round.parent_view) = (300 + height.get(), round.view);
        let header = Header {
            height,
            parent: self.state.head_hash(),
            round,
            proposer: self.state.committee()[0].consensus_key,
            timestamp_ms: head.timestamp_ms + 500,
            transactions_root: transactions_root(&transactions),
            certificates_root: certificates_root(&[]),
            executed: cowboy_engine::chain::Executed {
                height: head.height,
                state_root: self.state.root(),
            },
            open: head.candidates(self.state.head_hash()).into_iter().rev().take(8).rev().collect(),
            ..head.clone()
        };
        Block { header, certificates: Vec::new(), transactions }
    }

    fn send(&mut self, payload: Payload) {
        let signer: SecretKey = sample::key("account-0");
        let nonce = self.state.account(&signer.address()).nonce;
        let (cycle, cell) = (self.state.basefee_cycle(), self.state.basefee_cell());
        let budget = cowboy_engine::actor::Budget { cycles: 500_000, cells: 20_000 };
        let transaction =
            Transaction::with_limits(self.state.chain_id(), nonce, cycle, cell, payload)
                .buying(budget)
                .sign(&signer);
        let executed = execute(&self.state, &self.child(vec![transaction])).expect("a child");
        assert_eq!(executed.receipts[0].status, cowboy_engine::chain::ReceiptStatus::Success);
        self.state = executed.state;
    }

    /// A header's certificate with three votes, signed as the document says.
    pub fn certificate(&self, header: &Header) -> Certificate {
        let mut keys: Vec<_> = (0..VALIDATORS).map(sample::validator_keys).collect();
        keys.sort_by_key(|keys| keys.public().consensus_key);
        let (block, round) = (header.hash(), header.round);
        let namespace =
            [b"cowboy/".as_slice(), &self.state.chain_id().to_be_bytes(), b"_FINALIZE"].concat();
        let vote = |number: usize| {
            let presence = Bitmap::from_fn(3, |runner| runner as usize != number);
            let mut message = Vec::new();
            for part in [round.epoch, round.view, round.parent_view] {
                varint(part, &mut message);
            }
            message.extend_from_slice(&block.0);
            message.extend_from_slice(&presence.len().to_be_bytes());
            message.extend_from_slice(presence.as_bytes());
            let signature = keys[number].consensus.sign(&namespace, &message);
            let signature = signature.as_ref().try_into().expect("64 bytes");
            Vote { validator: number as u32, presence, signature }
        };
        Certificate { block, round, votes: [0, 2, 3].map(vote).to_vec() }
    }

    fn prove(&self, subject: Subject) -> Vec<u8> {
        let header = self.child(vec![]).header;
        let certificate = self.certificate(&header);
        let proof = StateProof::new(&self.state, subject, header, certificate);
        proof.and_then(|proof| proof.to_bytes()).expect("it is small")
    }

    /// A transfer that is valid in the next block.
    pub fn transfer(&self) -> cowboy_engine::chain::SignedTransaction {
        let nonce = self.state.account(&sample::key("account-1").address()).nonce;
        sample::transfer(&self.state, 1, nonce, 2)
    }

    pub fn keys(&self) -> Vec<[u8; 32]> {
        self.state.committee().iter().map(|validator| validator.consensus_key).collect()
    }

    fn committee(&self) -> Committee {
        Committee::of_keys(self.state.chain_id(), &self.keys()).expect("four keys")
    }
}

/// Decodes a proof; `None` if anything in it is invalid.
fn verified(bytes: &[u8], committee: &Committee) -> Option<StateProof> {
    let proof = StateProof::from_bytes(bytes).ok()?;
    proof.check().ok()?;
    certificate::verify(committee, &proof.certificate).ok()?;
    Some(proof)
}

fn subjects(chain: &Chain, actor: Address) -> Vec<Subject> {
    let timer = chain.state.timers().iter().nth(40).expect("there are more").id;
    let heights = |from, to| Subject::Timers { from: Height::new(from), to: Height::new(to) };
    vec![
        Subject::Account(sample::key("account-1").address()),
        Subject::Account(Address([7; 20])),
        Subject::Actor(actor),
        Subject::Stored(actor, "clé".into()),
        Subject::Job(Hash([7; 32])),
        Subject::Runner(sample::key("runner-1").address()),
        Subject::Runner(Address([7; 20])),
        Subject::Task(Hash([7; 32])),
        Subject::Presence,
        Subject::Timer(timer),
        Subject::Timer(keccak256(&[b"no timer"])),
        heights(500, 520),
        heights(540, 540),
        heights(1, 2),
        Subject::Validators,
        heights(0, u64::MAX),
    ]
}

/// Asserts that the script's answer has the proved validators.
fn same_roster(said: &Value, roster: &Roster) {
    let hex = |bytes: &[u8]| Value::from(format!("0x{}", hex::encode(bytes)));
    let keys =
        |all: &[GenesisValidator]| -> Value { all.iter().map(|v| hex(&v.consensus_key)).collect() };
    assert_eq!(said["epoch"], roster.epoch);
    assert_eq!(said["committee"], keys(&roster.committee));
    assert_eq!(said["next"], keys(&roster.next));
    assert_eq!(said["next_decided"], roster.next_decided);
    let subset = |epoch: &SubsetEpoch| {
        let validators = epoch.validators.iter().map(|v| hex(v.pubkey.as_bytes()));
        serde_json::json!({
            "number": epoch.number,
            "validators": validators.collect::<Value>(),
        })
    };
    assert_eq!(said["subset_epochs"], roster.subsets.iter().map(subset).collect::<Value>());
}

/// The script's verdict on a file: exit code and output.
fn checked(file: &Path, chain: &Chain) -> (i32, String) {
    script(SCRIPT, file, chain, &[])
}

/// Runs a script on a file of this chain with `more` arguments; returns exit code and output.
pub(crate) fn script(script: &str, file: &Path, chain: &Chain, more: &[&str]) -> (i32, String) {
    let keys = chain.keys().into_iter().map(|key| format!("0x{}", hex::encode(key)));
    let output = Command::new("python3")
        .args(["-B", script])
        .arg(file)
        .arg(format!("{:#018x}", chain.state.chain_id()))
        .args(more)
        .args(keys)
        .stdin(Stdio::null())
        .output()
        .expect("python3 runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.is_empty(), "{error}");
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_second_implementation_says_the_same() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("there is no python3: nothing is compared");
        return;
    }
    let (chain, actor) = Chain::new();
    let committee = chain.committee();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("proof");
    for subject in subjects(&chain, actor) {
        let bytes = chain.prove(subject.clone());
        let proof = verified(&bytes, &committee).unwrap_or_else(|| panic!("{subject}"));
        fs::write(&file, &bytes).expect("written");
        let (code, line) = checked(&file, &chain);
        assert_eq!(code, 0, "{subject}: {line}");
        let said: Value = serde_json::from_str(&line).expect("a line of JSON");
        let statement = proof.check().expect("it holds");
        assert_eq!(said["state_root"], statement.state_root.to_string(), "{subject}");
        assert_eq!(said["height"], statement.height.get());
        match statement.found {
            Found::Nothing => assert_eq!(said["present"], false, "{subject}"),
            Found::Value(value) => {
                assert_eq!(said["value"], format!("0x{}", hex::encode(value)), "{subject}");
            }
            Found::Timers(timers) => {
                let expected: Value = timers
                    .iter()
                    .map(|(height, id)| serde_json::json!([height.get(), id.to_string()]))
                    .collect();
                assert_eq!(said["timers"], expected, "{subject}");
            }
            Found::Validators(roster) => same_roster(&said, &roster),
        }
        // Changes one byte in each quarter of the file.
        for part in 0..4 {
            let mut forged = bytes.clone();
            let at = bytes.len() * part / 4 + part;
            forged[at] ^= 0x10;
            fs::write(&file, &forged).expect("written");
            let (code, line) = checked(&file, &chain);
            let ours = verified(&forged, &committee);
            // A changed proof of absence may hold for another absent key, which both name.
            let expected = if ours.is_some() { 0 } else { 7 };
            assert_eq!(code, expected, "{subject}: byte {at}: {line}");
            assert!(ours.is_none_or(|ours| ours.subject != subject), "{subject}: byte {at}");
        }
    }
}

#[test]
fn no_changed_byte_proves_the_same() {
    let (chain, actor) = Chain::new();
    let committee = chain.committee();
    for subject in subjects(&chain, actor).into_iter().take(15) {
        let bytes = chain.prove(subject.clone());
        assert!(verified(&bytes, &committee).is_some());
        for at in 0..bytes.len() {
            let mut forged = bytes.clone();
            forged[at] ^= 1 << (at % 8);
            let holds = verified(&forged, &committee);
            assert!(holds.is_none_or(|other| other.subject != subject), "{subject}: byte {at}");
        }
    }
}

#[test]
fn votes_of_others_or_too_few_prove_nothing() {
    let (chain, _) = Chain::new();
    let header = chain.child(vec![]).header;
    let certificate = chain.certificate(&header);
    let proof = StateProof::new(&chain.state, Subject::Presence, header, certificate);
    let proof = proof.expect("it is small");
    let check = |proof: &StateProof, committee: &Committee, expected: bool| {
        let bytes = proof.to_bytes().expect("it is small");
        assert_eq!(verified(&bytes, committee).is_some(), expected);
    };
    check(&proof, &chain.committee(), true);
    let mut fewer = proof.clone();
    fewer.certificate.votes.pop();
    check(&fewer, &chain.committee(), false);
    let mut other = chain.keys();
    other[0] = sample::validator_keys(9).public().consensus_key;
    let other = Committee::of_keys(chain.state.chain_id(), &other).expect("keys");
    check(&proof, &other, false);
    let elsewhere = Committee::of_keys(chain.state.chain_id() + 1, &chain.keys()).expect("keys");
    check(&proof, &elsewhere, false);
    let refused = |keys: &[[u8; 32]], why: &str| {
        let error = Committee::of_keys(1, keys).expect_err("these are not a committee");
        assert!(error.to_string().contains(why), "{error}");
    };
    refused(&[chain.keys()[0]; 2], "the same consensus key");
    // No point of the curve has this coordinate.
    refused(&[[2; 32]], "0x0202");
}
