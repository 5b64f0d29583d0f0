//! What was asked about accounts in this block, by their numbers.

use super::Accounts;
use crate::{primitives::Wei, timer::auction::Standing};

/// Answers, each valid in the block in which it was given.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Counts blocks, so that a new one forgets all answers without touching them.
    block: u32,
    accounts: Vec<Answers>,
    /// The actors with due timers, in the order in which they were met (`gba-auction`).
    entrants: Vec<Entrant>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    balance: Wei,
    weight: u64,
    /// The block of each answer; 0: never asked.
    balance_in: u32,
    weight_in: u32,
    /// The actor's place among the entrants, where it was asked for its weight under
    /// `gba-auction`.
    entrant: u32,
}

/// An actor that competes for slices of the lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entrant {
    pub(super) number: u32,
    /// Cycles of its slice that are left.
    pub(super) slice: u64,
    pub(super) standing: Standing,
}

impl Table {
    /// A new block: nothing was asked.
    pub(super) fn start(&mut self) {
        self.entrants.clear();
        self.block = self.block.wrapping_add(1);
        if self.block == 0 {
            self.accounts.clear();
            self.block = 1;
        }
    }

    pub(super) fn balance(&mut self, number: u32, accounts: &mut impl Accounts) -> Wei {
        let block = self.block;
        let known = self.at(number);
        if known.balance_in != block {
            known.balance_in = block;
            known.balance = accounts.balance(number);
        }
        known.balance
    }

    pub(super) fn weight(&mut self, number: u32, accounts: &mut impl Accounts) -> u64 {
        let block = self.block;
        let known = self.at(number);
        if known.weight_in != block {
            known.weight_in = block;
            known.weight = accounts.weight(number);
        }
        known.weight
    }

    /// The weight of an actor that was asked already.
    pub(super) fn known_weight(&self, number: u32) -> u64 {
        self.accounts.get(number as usize).map_or(0, |known| known.weight)
    }

    /// An actor has a due timer (`gba-auction`).
    pub(super) fn enter(&mut self, number: u32, accounts: &mut impl Accounts) -> &mut Entrant {
        if self.at(number).weight_in != self.block {
            self.weight(number, accounts);
            self.at(number).entrant = self.entrants.len() as u32;
            self.entrants.push(Entrant { number, slice: 0, standing: Standing::default() });
        }
        let place = self.at(number).entrant as usize;
        &mut self.entrants[place]
    }

    /// Gives each entrant its slice: floor(lane × its weight / all their weights).
    pub(super) fn apportion(&mut self, lane: u64) {
        let weight = |entrant: &Entrant| self.accounts[entrant.number as usize].weight;
        let all: u128 = self.entrants.iter().map(|entrant| u128::from(weight(entrant))).sum();
        for entrant in &mut self.entrants {
            let share = (u128::from(lane) * u128::from(weight(entrant))).checked_div(all);
            entrant.slice = share.unwrap_or(0) as u64;
        }
    }

    /// The actors with due timers, in the order in which they were met.
    pub(super) fn entrants(&self) -> &[Entrant] {
        &self.entrants
    }

    /// An actor that entered in this block.
    pub(super) fn entrant(&self, number: u32) -> Option<&Entrant> {
        self.entrants.get(self.accounts.get(number as usize)?.entrant as usize)
    }

    /// See [`entrant`](Self::entrant).
    pub(super) fn entrant_mut(&mut self, number: u32) -> Option<&mut Entrant> {
        self.entrants.get_mut(self.accounts.get(number as usize)?.entrant as usize)
    }

    fn at(&mut self, number: u32) -> &mut Answers {
        let number = number as usize;
        if number >= self.accounts.len() {
            self.accounts.resize(number + 1, Answers::default());
        }
        &mut self.accounts[number]
    }
}
