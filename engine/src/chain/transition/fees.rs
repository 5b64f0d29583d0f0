//! Transaction fees (spec chain.md, "Fees").
//!
//! Before a transaction runs, the price of its maximum usage is set aside, at the sender and in the
//! block. Afterwards it pays for its usage, even if it failed, and the rest is returned. A call or
//! deployment keeps room in its block for all the cycles that it bought, so it pays for at least a
//! governed share of them.

use super::Run;
use crate::{
    chain::{
        admission::{self, AdmissionError},
        receipt::Receipt,
        transaction::SignedTransaction,
    },
    primitives::{Cells, Cycles, Wei},
};

pub(super) struct Reserved {
    cycles: Cycles,
    cells: Cells,
    fee: Wei,
    prices: GasPrices,
}

/// Wei per unit of each gas.
struct GasPrices {
    /// Burned, per cycle and per cell.
    basefee: (Wei, Wei),
    /// Paid to the proposer, per cycle and per cell.
    tip: (Wei, Wei),
}

impl GasPrices {
    /// Price of the given usage: burned and tip. `None` on overflow.
    fn of(&self, cycles: Cycles, cells: Cells) -> Option<(Wei, Wei)> {
        let total = |(cycle, cell): (Wei, Wei)| {
            let cycles = cycle.checked_mul(u128::from(cycles.get()))?;
            cycles.checked_add(cell.checked_mul(u128::from(cells.get()))?)
        };
        total(self.basefee).zip(total(self.tip))
    }
}

impl Run<'_> {
    /// Sets the fee aside and increments the nonce, or returns why the transaction is skipped.
    pub(super) fn reserve(
        &mut self,
        signed: &SignedTransaction,
        receipt: &mut Receipt,
    ) -> Result<Reserved, AdmissionError> {
        admission::chain(signed, self.state.chain_id)?;
        receipt.sender = signed.sender()?;
        let mut account = self.state.account(&receipt.sender);
        admission::nonce(signed, &account)?;
        admission::limits(signed)?;
        let (cycles, cells) = signed.reserve();
        admission::room((self.cycles, self.cells), (cycles, cells))?;
        let tip = admission::tips(signed, &self.state)?;
        let basefee = (self.state.basefee_cycle, self.state.basefee_cell);
        let prices = GasPrices { basefee, tip };
        let fee = prices
            .of(cycles, cells)
            .and_then(|(burned, tip)| burned.checked_add(tip))
            .ok_or(AdmissionError::FeeOverflow)?;
        account.balance = admission::rest(receipt.sender, &account, fee)?;
        account.nonce = account.nonce.saturating_add(1);
        self.state.accounts.insert(receipt.sender, account);
        Ok(Reserved { cycles, cells, fee, prices })
    }

    /// Charges the usage, capped at what was set aside, and returns the rest.
    pub(super) fn pay(
        &mut self,
        reserved: &Reserved,
        cycles: Cycles,
        cells: Cells,
        receipt: &mut Receipt,
    ) {
        let (used, cells) = (cycles.min(reserved.cycles), cells.min(reserved.cells));
        let share = u128::from(self.terms.config.least_share_of_bought_cycles);
        let least = u128::from(reserved.cycles.get()) * share / 1_000;
        let least = Cycles::new(u64::try_from(least).unwrap_or(u64::MAX)).min(reserved.cycles);
        let cycles = used.max(least);
        let price = reserved.prices.of(cycles, cells);
        let (burned, tip) = price.expect("at most what was set aside, which has a price");
        let rest = reserved.fee.saturating_sub(burned).saturating_sub(tip);
        self.state.credit(receipt.sender, rest).expect("what was set aside fits again");
        self.state.burned.transactions = self.state.burned.transactions.saturating_add(burned);
        self.tips = self.tips.saturating_add(tip);
        self.cycles = self.cycles.saturating_add(cycles);
        self.cells = self.cells.saturating_add(cells);
        (receipt.cycles, receipt.cells) = (cycles, cells);
        receipt.unused = Cycles::new(cycles.get() - used.get());
        (receipt.burned, receipt.tip) = (burned, tip);
    }
}
