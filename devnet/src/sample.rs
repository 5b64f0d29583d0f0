//! The sample chain for tests, benches and simulations: numbered participants, their keys, a
//! genesis document, and requests that any of its nodes accepts.

use crate::{
    consensus::{
        Finalization, certificate,
        scheme::{BitmapSource, Committee, Scheme},
    },
    validator::keys::ValidatorKeys,
};
use commonware_consensus::{
    simplex::types::{Finalize, Proposal},
    types::{Epoch, Round, View},
};
use commonware_cryptography::{Signer as _, ed25519::PrivateKey};
use commonware_parallel::Sequential;
use commonware_utils::non_empty;
use cowboy_engine::{
    chain::{
        Certificate, Endowment, Genesis, GenesisRunner, Header, Params, Payload, SignedTransaction,
        State, Transaction, transaction::Transfer,
    },
    job::spec::{Bounds, CommandWork, JobSpec, Verification, Work},
    presence::Bitmap,
    primitives::{SecretKey, Wei},
    registry::{Capabilities, JobKind, MIN_STAKE},
};
use std::sync::Arc;

const KEY_SEED: &[u8] = b"simulation";

/// The secp256k1 key derived from the name of a participant.
pub fn key(name: &str) -> SecretKey {
    SecretKey::derive(KEY_SEED, name)
}

/// The name `validator-{index}` of a validator.
pub fn validator_name(index: usize) -> String {
    format!("validator-{index}")
}

/// The keys of a validator by number.
pub fn validator_keys(index: usize) -> ValidatorKeys {
    ValidatorKeys::from(key(&validator_name(index)))
}

/// A genesis with `validators` validators, `runners` registered runners, and accounts `account-0`
/// to `account-3` with a million CBY each.
pub fn genesis(validators: usize, runners: usize) -> Genesis {
    let runner = |index| GenesisRunner {
        pubkey: key(&format!("runner-{index}")).public_key(),
        stake: MIN_STAKE,
        capabilities: Capabilities::of(vec![JobKind::Http, JobKind::Custom], 4),
        price_per_second: Wei::cby(1),
    };
    let endowment = |index| Endowment {
        account: key(&format!("account-{index}")).address(),
        balance: Wei::cby(1_000_000),
    };
    Genesis {
        name: "simulation".into(),
        timestamp_ms: 0,
        params: Params::default(),
        validators: (0..validators).map(|index| validator_keys(index).public()).collect(),
        runners: (0..runners).map(runner).collect(),
        endowments: (0..4).map(endowment).collect(),
    }
}

struct Blind;

impl BitmapSource for Blind {
    fn presence(&self, _: &[u8]) -> Bitmap {
        Bitmap::new(0)
    }
}

/// A certificate of a header on the chain `chain_id` by the committee `voters`, signed by the first
/// quorum.
pub fn certificate(chain_id: u64, header: &Header, voters: &[PrivateKey]) -> Certificate {
    let keys: Vec<[u8; 32]> =
        voters.iter().map(|key| key.public_key().as_ref().try_into().expect("32 bytes")).collect();
    let committee = Arc::new(Committee::of_keys(chain_id, &keys).expect("keys differ"));
    let round = Round::new(Epoch::new(header.round.epoch), View::new(header.round.view));
    let parent = View::new(header.round.parent_view);
    let proposal = Proposal::new(round, parent, certificate::digest(header.hash()));
    let scheme = |key: &PrivateKey| Scheme::new(committee.clone(), key.clone(), Arc::new(Blind));
    let vote =
        |key| Finalize::sign(&scheme(key), proposal.clone()).expect("a member of the committee");
    let votes: Vec<_> = voters.iter().take(committee.quorum()).map(vote).collect();
    let all = non_empty![@&votes];
    let finalization = Finalization::from_finalizes(&scheme(&voters[0]), all, &Sequential);
    certificate::from_finalization(&finalization.expect("a quorum"))
}

/// A transfer of one wei from `account-{from}` to `account-{to}` on the chain of `state`.
pub fn transfer(state: &State, from: usize, nonce: u64, to: usize) -> SignedTransaction {
    let to = key(&format!("account-{to}")).address();
    let payload = Payload::Transfer(Transfer { to, amount: Wei::new(1) });
    let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
    Transaction::with_limits(state.chain_id(), nonce, cycle, cell, payload)
        .sign(&key(&format!("account-{from}")))
}

/// A custom job (`echo hi`), which any of these runners can execute.
pub fn spec(timeout_blocks: u64) -> JobSpec {
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
            data_format: "bytes".into(),
            max_memory_mb: 64,
        },
        verification: Verification::none(),
        max_price: Wei::cby(10),
        tip: Wei::cby(1),
        timeout_blocks,
        callback: None,
        required_runner_pool: None,
        tee_required: false,
    }
}
