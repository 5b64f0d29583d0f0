//! The other decoders of untrusted bytes: connections' certificates, votes, blocks, transactions.

use crate::play;
use bytes::Bytes;
use commonware_codec::{Decode as _, DecodeExt as _, Encode as _};
use cowboy_devnet::{
    consensus::vote::{VoteSignature, Votes},
    sample::{key, transfer},
    transport::tls::{self, Identity},
};
use cowboy_engine::{
    chain::{Block, Certificate, Executed, Header, SignedTransaction, StateProof, Subject, Vote},
    presence::Bitmap,
    primitives::{
        Address, Height, SecretKey,
        codec::{from_slice, to_vec},
    },
};
use cowboy_simulation::Setup;
use std::time::Duration;

/// A certificate with an invalid extension binds no key; any other binds the key that signed it.
#[test]
fn certificates_of_connections_bind_the_key_that_signed_them_or_none() {
    let secrets = ["one", "two"].map(|name| SecretKey::derive(b"hostile", name));
    let known = secrets.each_ref().map(SecretKey::public_key);
    let certificate = |secret| Identity::new(secret).expect("an identity").der().to_vec();
    let corpus = secrets.each_ref().map(certificate);
    for (certificate, key) in corpus.iter().zip(&known) {
        assert_eq!(tls::bound_key(certificate).as_ref(), Ok(key));
    }
    play(|random| {
        let bytes = if random.one_in(50) { random.bytes(300) } else { random.mutated(&corpus) };
        if let Ok(bound) = tls::bound_key(&bytes) {
            assert!(known.contains(&bound), "a key that signed nothing: {bound}");
        }
    });
}

fn votes() -> Vec<Vote> {
    let vote = |validator: u32| Vote {
        validator,
        presence: Bitmap::from_fn(validator * 9, |bit| bit % 3 == 0),
        signature: [validator as u8; 64],
    };
    (0..5).map(vote).collect()
}

#[test]
fn votes_are_read_in_their_one_form_or_refused() {
    let votes = votes();
    let signatures = votes.iter().map(|vote| {
        let Vote { presence, signature, .. } = vote.clone();
        VoteSignature { presence, signature }.encode().to_vec()
    });
    let signatures: Vec<Vec<u8>> = signatures.collect();
    let certificates: Vec<Vec<u8>> =
        (1..=5).map(|count| Votes(votes[..count].to_vec()).encode().to_vec()).collect();
    play(|random| {
        let bytes = random.mutated(&signatures);
        if let Ok(vote) = VoteSignature::decode(Bytes::from(bytes.clone())) {
            assert_eq!(vote.encode().to_vec(), bytes);
        }
        let bytes = random.mutated(&certificates);
        if let Ok(votes) = Votes::decode_cfg(Bytes::from(bytes.clone()), &7) {
            assert_eq!(votes.encode().to_vec(), bytes);
            assert!(votes.0.len() <= 7);
        }
    });
}

#[test]
fn blocks_and_transactions_are_read_in_their_one_form_or_refused() {
    let setup = Setup::new(4, 2, Duration::ZERO);
    let state = setup.genesis.state().expect("a chain");
    let transactions: Vec<_> = (0..3).map(|nonce| transfer(&state, 0, nonce, 1)).collect();
    let header = state.head().clone();
    let block = Block { header, certificates: Vec::new(), transactions };
    let transactions: Vec<_> = block.transactions.iter().map(to_vec).collect();
    let blocks = [to_vec(&block), to_vec(&Block { transactions: Vec::new(), ..block })];
    play(|random| {
        let bytes = random.mutated(&transactions);
        if let Ok(transaction) = from_slice::<SignedTransaction>(&bytes) {
            assert_eq!(to_vec(&transaction), bytes);
            // The signature of a changed transaction recovers to another sender.
            if let Ok(sender) = transaction.sender()
                && sender == key("account-0").address()
            {
                assert!(transactions.contains(&bytes), "a forged transaction");
            }
        }
        let bytes = random.mutated(&blocks);
        if let Ok(block) = from_slice::<Block>(&bytes) {
            assert_eq!(to_vec(&block), bytes);
        }
    });
}

/// A changed proof is invalid, or proves another subject, or has other votes, which are checked
/// elsewhere.
#[test]
fn proofs_of_states_are_read_in_their_one_form_or_refused() {
    let setup = Setup::new(4, 2, Duration::ZERO);
    let state = setup.genesis.state().expect("a chain");
    let executed = Executed { height: Height::GENESIS, state_root: state.root() };
    let header = Header { height: Height::new(1), executed, ..state.head().clone() };
    let (block, round) = (header.hash(), header.round);
    let certificate = Certificate { block, round, votes: votes() };
    let account = key("account-0").address();
    let subjects = [
        Subject::Account(account),
        Subject::Account(Address([7; 20])),
        Subject::Runner(key("runner-0").address()),
        Subject::Stored(account, "key".into()),
        Subject::Presence,
        Subject::Timers { from: Height::new(1), to: Height::new(9) },
        Subject::Validators,
    ];
    let proofs = subjects.map(|subject| {
        StateProof::new(&state, subject, header.clone(), certificate.clone()).expect("it is small")
    });
    let corpus = proofs.each_ref().map(|proof| proof.to_bytes().expect("it is small"));
    play(|random| {
        let bytes = if random.one_in(50) { random.bytes(300) } else { random.mutated(&corpus) };
        let Ok(proof) = StateProof::from_bytes(&bytes) else { return };
        assert_eq!(proof.to_bytes().as_ref(), Ok(&bytes));
        let Ok(statement) = proof.check() else { return };
        assert_eq!(statement.state_root, state.root());
        let same = proofs.iter().find(|known| known.subject == proof.subject);
        if let Some(known) = same {
            assert_eq!(statement.found, known.check().expect("it holds").found);
        }
    });
}
