//! What a transaction pays (spec chain.md, "Fees").
//!
//! Before it runs, the price of the most it may use is set aside, with its sender and in the block.
//! Once it has run it pays for what it used, also where it failed, and the rest goes back. A call
//! or deployment keeps room in its block for all the cycles that it bought: it pays for a governed
//! share of them at least.

use super::Run;
use crate::{
    chain::{receipt::Receipt, transaction::SignedTransaction},
    fees::meter,
    primitives::{Cells, Cycles, Shortfall, Wei},
};

/// What was set aside for a transaction.
pub(super) struct Reserved {
    cycles: Cycles,
    cells: Cells,
    fee: Wei,
    prices: Prices,
}

/// Wei per unit of each gas.
struct Prices {
    /// To be burned, per cycle and per cell.
    basefee: (Wei, Wei),
    /// To the proposer, per cycle and per cell.
    tip: (Wei, Wei),
}

impl Prices {
    /// What so much costs: burned and tip. `None` beyond the range.
    fn of(&self, cycles: Cycles, cells: Cells) -> Option<(Wei, Wei)> {
        let total = |(cycle, cell): (Wei, Wei)| {
            let cycles = cycle.checked_mul(u128::from(cycles.get()))?;
            cycles.checked_add(cell.checked_mul(u128::from(cells.get()))?)
        };
        total(self.basefee).zip(total(self.tip))
    }
}

impl Run<'_> {
    /// Sets the fee aside and counts the nonce, or says why the transaction is skipped.
    pub(super) fn reserve(
        &mut self,
        signed: &SignedTransaction,
        receipt: &mut Receipt,
    ) -> Result<Reserved, String> {
        let tx = &signed.transaction;
        if tx.chain_id != self.state.chain_id {
            return Err(format!(
                "WrongChain: for chain {:#x}, this is {:#x}",
                tx.chain_id, self.state.chain_id
            ));
        }
        receipt.sender = signed.sender().map_err(|error| error.to_string())?;
        let mut account = self.state.account(&receipt.sender);
        if tx.nonce != account.nonce {
            return Err(format!("WrongNonce: {} where {} is next", tx.nonce, account.nonce));
        }
        let (cycles, cells) = signed.least();
        if cycles > tx.cycle_limit || cells > tx.cell_limit {
            return Err(format!(
                "LimitTooLow: {cycles} cycles and {cells} cells are used, {} and {} bought",
                tx.cycle_limit, tx.cell_limit
            ));
        }
        let (cycles, cells) = signed.reserve();
        if self.cycles.saturating_add(cycles).get() > meter::MAX_BLOCK_CYCLES
            || self.cells.saturating_add(cells).get() > meter::MAX_BLOCK_CELLS
        {
            return Err("BlockFull: the block's cycles or cells are used up".into());
        }
        let (cycle, cell) = (self.state.basefee_cycle, self.state.basefee_cell);
        let fees = &tx.fees;
        let cycle_tip = tip(cycle, fees.max_fee_per_cycle, fees.max_priority_per_cycle)
            .ok_or_else(|| fee_too_low("cycle", cycle, fees.max_fee_per_cycle))?;
        let cell_tip = tip(cell, fees.max_fee_per_cell, fees.max_priority_per_cell)
            .ok_or_else(|| fee_too_low("cell", cell, fees.max_fee_per_cell))?;
        let prices = Prices { basefee: (cycle, cell), tip: (cycle_tip, cell_tip) };
        let fee = prices
            .of(cycles, cells)
            .and_then(|(burned, tip)| burned.checked_add(tip))
            .ok_or("FeeOverflow: the fee is beyond 2^128 wei")?;
        let short = Shortfall { payer: receipt.sender, need: fee, have: account.balance };
        let balance = account.balance.checked_sub(fee);
        account.balance = balance.ok_or_else(|| short.to_string())?;
        account.nonce = account.nonce.saturating_add(1);
        self.state.accounts.insert(receipt.sender, account);
        Ok(Reserved { cycles, cells, fee, prices })
    }

    /// Pays for what was used, at most what was set aside, and gives the rest back.
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
        let (burned, tip) = price.expect("no more than was set aside, which has a price");
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

/// What the proposer gets per unit; `None` where the cap does not cover the basefee.
const fn tip(basefee: Wei, max_fee: Wei, max_priority: Wei) -> Option<Wei> {
    match max_fee.checked_sub(basefee) {
        Some(room) if room.get() < max_priority.get() => Some(room),
        Some(_) => Some(max_priority),
        None => None,
    }
}

fn fee_too_low(gas: &str, basefee: Wei, cap: Wei) -> String {
    format!("FeeBelowBasefee: a {gas} costs {basefee} wei, {cap} are offered")
}
