//! Accounts as small numbers, which replace addresses in entries.

use crate::primitives::Address;
use std::collections::BTreeMap;

/// Number of accounts that are found without the tree, by the first 16 bits of their addresses.
/// Addresses that are chosen to collide fall back to the tree, not to a list.
const RECENT: usize = 1 << 16;

/// The accounts that entries name. A number is reused when no entry names its account.
pub(super) struct Accounts {
    numbers: BTreeMap<Address, u32>,
    named: Vec<Named>,
    free: Vec<u32>,
    /// The numbers of the accounts looked up last; `named` decides whether they are valid.
    recent: Box<[u32]>,
}

struct Named {
    address: Address,
    /// Number of entries that name the account.
    entries: u32,
}

impl Accounts {
    pub(super) fn new() -> Self {
        let (numbers, named, free) = (BTreeMap::new(), Vec::new(), Vec::new());
        let recent = vec![0; RECENT].into();
        Self { numbers, named, free, recent }
    }

    /// The number of an account, which one more entry names.
    #[inline]
    pub(super) fn hold(&mut self, address: &Address) -> u32 {
        let number = self.recent[recent(address)];
        match self.named.get_mut(number as usize) {
            Some(named) if named.address == *address && named.entries > 0 => {
                named.entries += 1;
                number
            }
            _ => self.find(address),
        }
    }

    /// Like [`Accounts::hold`], for an account that is not in its slot of `recent`.
    #[inline(never)]
    fn find(&mut self, address: &Address) -> u32 {
        let number = match self.numbers.get(address) {
            Some(&number) => {
                self.named[number as usize].entries += 1;
                number
            }
            None => {
                let named = Named { address: *address, entries: 1 };
                let number = match self.free.pop() {
                    Some(number) => {
                        self.named[number as usize] = named;
                        number
                    }
                    None => {
                        self.named.push(named);
                        self.named.len() as u32 - 1
                    }
                };
                self.numbers.insert(*address, number);
                number
            }
        };
        self.recent[recent(address)] = number;
        number
    }

    /// One entry fewer names the account.
    pub(super) fn release(&mut self, number: u32) {
        let Named { address, entries } = &mut self.named[number as usize];
        *entries -= 1;
        if *entries == 0 {
            self.numbers.remove(address);
            self.free.push(number);
        }
    }

    pub(super) fn address(&self, number: u32) -> Address {
        self.named[number as usize].address
    }

    /// One more than the highest number ever assigned.
    pub(super) fn bound(&self) -> u32 {
        self.named.len() as u32
    }
}

fn recent(address: &Address) -> usize {
    let [high, low, ..] = address.0;
    usize::from(u16::from_be_bytes([high, low]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_dense_and_used_again() {
        let mut accounts = Accounts::new();
        let address = |n: u8| Address([n; 20]);
        assert_eq!([1, 2, 1, 3].map(|n| accounts.hold(&address(n))), [0, 1, 0, 2]);
        accounts.release(0);
        assert_eq!(accounts.address(0), address(1), "another entry names it");
        accounts.release(0);
        accounts.release(1);
        assert_eq!([2, 4, 3, 5].map(|n| accounts.hold(&address(n))), [1, 0, 2, 3]);
        assert_eq!((accounts.address(0), accounts.bound()), (address(4), 4));
    }
}
