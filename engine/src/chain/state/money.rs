//! Balances, and how all money is distributed.

use super::{Account, State};
use crate::{
    primitives::{Address, Shortfall, Wei},
    record,
};

/// How all money is distributed. The five parts always add up to the genesis supply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supply {
    pub balances: Wei,
    /// Held for jobs without a result, and for tasks that have not ended.
    pub escrow: Wei,
    pub stakes: Wei,
    /// Locked as bonds for commitments to task outputs.
    pub bonds: Wei,
    /// Basefees and penalties.
    pub burned: Wei,
}

impl Supply {
    pub const fn total(&self) -> Wei {
        self.balances
            .saturating_add(self.escrow)
            .saturating_add(self.stakes)
            .saturating_add(self.bonds)
            .saturating_add(self.burned)
    }
}

/// Total burned since genesis, in wei, by cause. The parts add up to [`Supply::burned`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Burned {
    /// Basefees of transactions, for cycles and cells.
    pub transactions: Wei,
    /// Basefees of timer fires, for cycles and cells, including the lane's.
    pub fires: Wei,
    /// Paid by timer owners for questions to their agents.
    pub questions: Wei,
    pub callbacks: Wei,
    /// Slashed from stakes, balances and bonds.
    pub penalties: Wei,
}
record!(Burned { transactions, fires, questions, callbacks, penalties });

impl State {
    /// The price of usage at the basefees of the next block; saturates.
    pub(in crate::chain) fn price(&self, cycles: u64, cells: u64) -> Wei {
        let cells = self.basefee_cell.saturating_mul(u128::from(cells));
        self.basefee_cycle.saturating_mul(u128::from(cycles)).saturating_add(cells)
    }
}

impl Burned {
    pub const fn total(&self) -> Wei {
        self.transactions
            .saturating_add(self.fires)
            .saturating_add(self.questions)
            .saturating_add(self.callbacks)
            .saturating_add(self.penalties)
    }
}

/// Why money cannot be moved. The text begins with the variant's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    #[error("{0}")]
    InsufficientBalance(Shortfall),
    #[error("BalanceOverflow: the receiver would hold more than 2^128 wei")]
    BalanceOverflow,
}

impl State {
    /// The distribution of all money, recomputed.
    pub fn supply(&self) -> Supply {
        let sum =
            |amounts: &mut dyn Iterator<Item = Wei>| amounts.fold(Wei::ZERO, Wei::saturating_add);
        let jobs = self.open_jobs().map(|(_, job)| job.spec.escrow());
        let commitments = self.tasks().filter_map(|(_, task)| task.commitment.as_ref());
        Supply {
            balances: sum(&mut self.accounts.iter().map(|(_, a)| a.balance)),
            escrow: sum(&mut jobs.chain(self.tasks.open.iter().map(|(_, reward)| *reward))),
            stakes: sum(&mut self.registry.iter().map(|(_, runner)| runner.stake)),
            bonds: sum(&mut commitments.map(|commitment| commitment.bond)),
            burned: self.burned.total(),
        }
    }

    pub const fn burned(&self) -> Burned {
        self.burned
    }

    /// Takes money from an account. A zero amount creates no account.
    pub(in crate::chain) fn debit(&mut self, from: Address, amount: Wei) -> Result<(), MoneyError> {
        if amount.is_zero() {
            return Ok(());
        }
        let account = self.account(&from);
        let short = Shortfall { payer: from, need: amount, have: account.balance };
        let balance = account.balance.checked_sub(amount);
        let balance = balance.ok_or(MoneyError::InsufficientBalance(short))?;
        self.accounts.insert(from, Account { balance, ..account });
        Ok(())
    }

    /// Adds money to an account. A zero amount creates no account.
    pub(in crate::chain) fn credit(&mut self, to: Address, amount: Wei) -> Result<(), MoneyError> {
        if amount.is_zero() {
            return Ok(());
        }
        let account = self.account(&to);
        let balance = account.balance.checked_add(amount).ok_or(MoneyError::BalanceOverflow)?;
        self.accounts.insert(to, Account { balance, ..account });
        Ok(())
    }
}
