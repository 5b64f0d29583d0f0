//! Answers about accounts in this block, by the accounts' numbers.

use super::LaneAccounts;
use crate::{primitives::Wei, timer::auction::Standing};

/// Answers, each valid only in its block.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The number of the current block, so that a new block invalidates all answers at once.
    block: u32,
    accounts: Vec<Answers>,
    /// The actors with due timers, in order of first occurrence (`gba-auction`).
    entrants: Vec<Entrant>,
    /// The index of each entrant, by its number.
    places: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    balance: Wei,
    weight: u64,
    /// The block of each answer; 0: never asked.
    balance_in: u32,
    weight_in: u32,
}
const _: () = assert!(size_of::<Answers>() == 32, "two to a cache line");

#[derive(Clone, Copy, Debug)]
pub(super) struct Entrant {
    pub(super) number: u32,
    /// The rest of its slice, in cycles.
    pub(super) slice: u64,
    pub(super) standing: Standing,
}

impl Table {
    pub(super) fn start(&mut self) {
        self.entrants.clear();
        self.block = self.block.wrapping_add(1);
        if self.block == 0 {
            self.accounts.clear();
            self.block = 1;
        }
    }

    #[inline]
    pub(super) fn balance(&mut self, number: u32, accounts: &mut impl LaneAccounts) -> Wei {
        let block = self.block;
        let known = self.at(number);
        if known.balance_in != block {
            known.balance_in = block;
            known.balance = accounts.balance(number);
        }
        known.balance
    }

    #[inline]
    pub(super) fn weight(&mut self, number: u32, accounts: &mut impl LaneAccounts) -> u64 {
        let block = self.block;
        let known = self.at(number);
        if known.weight_in != block {
            known.weight_in = block;
            known.weight = accounts.weight(number);
        }
        known.weight
    }

    #[inline]
    pub(super) fn known_weight(&self, number: u32) -> u64 {
        self.accounts.get(number as usize).map_or(0, |known| known.weight)
    }

    #[inline]
    pub(super) fn enter(&mut self, number: u32, accounts: &mut impl LaneAccounts) -> &mut Entrant {
        if self.at(number).weight_in != self.block {
            self.weight(number, accounts);
            self.places.resize(self.accounts.len(), 0);
            self.places[number as usize] = self.entrants.len() as u32;
            self.entrants.push(Entrant { number, slice: 0, standing: Standing::default() });
        }
        &mut self.entrants[self.places[number as usize] as usize]
    }

    /// Assigns each entrant its slice: floor(lane × its weight / the sum of weights). Returns the
    /// largest.
    pub(super) fn apportion(&mut self, lane: u64) -> u64 {
        let weight = |entrant: &Entrant| self.accounts[entrant.number as usize].weight;
        let all: u128 = self.entrants.iter().map(|entrant| u128::from(weight(entrant))).sum();
        let mut largest = 0;
        for entrant in &mut self.entrants {
            let share = (u128::from(lane) * u128::from(weight(entrant))).checked_div(all);
            entrant.slice = share.unwrap_or(0) as u64;
            largest = largest.max(entrant.slice);
        }
        largest
    }

    /// The actors with due timers, in order of first occurrence.
    pub(super) fn entrants(&self) -> &[Entrant] {
        &self.entrants
    }

    /// The entrant with this number, which must have entered in this block.
    #[inline]
    pub(super) fn entrant(&self, number: u32) -> Option<&Entrant> {
        self.entrants.get(*self.places.get(number as usize)? as usize)
    }

    pub(super) fn entrant_mut(&mut self, number: u32) -> Option<&mut Entrant> {
        self.entrants.get_mut(*self.places.get(number as usize)? as usize)
    }

    #[inline]
    fn at(&mut self, number: u32) -> &mut Answers {
        let number = number as usize;
        if number >= self.accounts.len() {
            self.accounts.resize(number + 1, Answers::default());
        }
        &mut self.accounts[number]
    }
}
