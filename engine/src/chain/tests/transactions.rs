//! Lists of transactions in blocks and messages.

use super::*;
use crate::{
    chain::transaction::{KnownTransactions, NoneKnown, Transfer, list_from_bytes, list_to_bytes},
    primitives::{Signature, codec::DecodeError},
};
use std::cell::Cell;

/// The first transactions of a list, and how often one was asked for and had to be decoded.
#[derive(Default)]
struct Few {
    transactions: Vec<SignedTransaction>,
    found: Cell<usize>,
    decoded: Cell<usize>,
}

impl KnownTransactions for Few {
    fn find(&self, signature: &Signature) -> Option<SignedTransaction> {
        let known = self.transactions.iter().find(|known| known.signature == *signature)?;
        self.found.set(self.found.get() + 1);
        Some(known.clone())
    }

    fn copy_of(&self, transaction: SignedTransaction) -> SignedTransaction {
        self.decoded.set(self.decoded.get() + 1);
        transaction
    }
}

fn transfers(count: u64) -> Vec<SignedTransaction> {
    let transfer = |nonce| {
        let payload = Payload::Transfer(Transfer { to: key("bob").address(), amount: Wei::new(1) });
        Transaction::with_limits(1, nonce, Wei::new(1), Wei::new(1), payload).sign(&key("alice"))
    };
    (0..count).map(transfer).collect()
}

#[test]
fn known_transactions_of_a_list_are_not_decoded() {
    let all = transfers(5);
    let bytes = list_to_bytes(&all);
    let few = Few { transactions: all[..3].to_vec(), ..Few::default() };
    let read = list_from_bytes(&bytes, &few).unwrap();
    assert_eq!(read, all);
    assert_eq!((few.found.get(), few.decoded.get()), (3, 2));
    for (read, known) in read.iter().zip(&few.transactions) {
        assert_eq!(read.bytes().as_ptr(), known.bytes().as_ptr(), "the known copy itself");
    }
    assert_eq!(list_from_bytes(&bytes, &NoneKnown).unwrap(), all);
}

#[test]
fn another_transaction_with_a_known_signature_is_read_as_it_is() {
    let all = transfers(2);
    let mut other = all[0].transaction.clone();
    other.nonce = 7;
    let lie = SignedTransaction::new(other, all[0].signature);
    let few = Few { transactions: all.clone(), ..Few::default() };
    let read = list_from_bytes(&list_to_bytes(&[lie.clone(), all[1].clone()]), &few).unwrap();
    assert_eq!(read, [lie, all[1].clone()]);
    assert_eq!((few.found.get(), few.decoded.get()), (2, 1));
}

#[test]
fn a_list_has_one_form_also_if_its_transactions_are_known() {
    let all = transfers(2);
    let few = Few { transactions: all.clone(), ..Few::default() };
    let bytes = list_to_bytes(&all);
    let longer = [&[0x98, 2], &bytes[1..]].concat();
    assert_eq!(list_from_bytes(&longer, &few), Err(DecodeError::NotDeterministic));
    let trailing = [&bytes[..], &[0]].concat();
    assert_eq!(list_from_bytes(&trailing, &few), Err(DecodeError::NotDeterministic));
    for len in 0..bytes.len() {
        assert!(list_from_bytes(&bytes[..len], &few).is_err(), "{len} bytes");
    }
    let many = [&[0x9b][..], &u64::MAX.to_be_bytes(), &bytes[1..]].concat();
    assert!(list_from_bytes(&many, &few).is_err());
}
