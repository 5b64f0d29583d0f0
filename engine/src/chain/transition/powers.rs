//! Powers of system deployers that only chains for development have (genesis parameter `powers`):
//! balances, code and stores are set, transactions are made in another account's name, the clock is
//! moved, and the state is marked and returned to.
//!
//! Money is neither made nor lost: a balance is set at the expense of a counterpart. A
//! [mark](crate::chain::state::Mark) is made, and returned to, at the end of the block.

use super::{Run, TransactionFailure, actors, transactions::Author};
use crate::{
    chain::{
        actors::Language,
        event::{
            ActedAs, BalanceSet, StateForgotten, StateMarked, StateReturned, StateSet, TimeAdvanced,
        },
        params::Powers,
        receipt::Receipt,
        state::{Account, Ahead, MarkError},
        transaction::{ActAs, SetBalance, SetCode, SetState},
    },
    job::json::{Json, JsonError},
    primitives::{Address, Height},
    timer::Ids,
};

/// The furthest that the clock can be ahead: 100 years of 365 days, in milliseconds.
pub const MAX_AHEAD_MS: u64 = 100 * 365 * 24 * 3_600_000;

/// Why a power is refused. The text begins with the variant's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PowerError {
    #[error("NoPowers: this chain's genesis allows no powers beyond its rules")]
    NoPowers,
    #[error("SameAccount: {0} cannot pay itself; name another counterpart")]
    SameAccount(Address),
    #[error("UnknownActor: no actor {0}")]
    UnknownActor(Address),
    #[error("KeyTooLong: a key has at most {limit} bytes, this one has {got}")]
    KeyTooLong { got: u64, limit: u64 },
    #[error("KeyNotText: a key of an actor in Starlark is text")]
    KeyNotText,
    #[error("ValueTooLong: a value has at most {limit} bytes, this one has {got}")]
    ValueTooLong { got: u64, limit: u64 },
    #[error("ValueNotJson: a value of an actor in Starlark is JSON: {0}")]
    ValueNotJson(#[from] JsonError),
    #[error("TimeTooFar: the clock can be {MAX_AHEAD_MS} ms ahead, {0} ms are asked for in all")]
    TimeTooFar(u64),
    #[error(transparent)]
    Mark(#[from] MarkError),
}

/// What becomes of the state at a block's end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Marking {
    Make,
    ReturnTo(u64),
    Forget(u64),
}

impl Run<'_> {
    pub(super) fn set_balance(
        &mut self,
        sender: Address,
        SetBalance { account, balance, counterpart }: SetBalance,
    ) -> Result<(), TransactionFailure> {
        self.check_powers(sender)?;
        if account == counterpart {
            return Err(PowerError::SameAccount(account).into());
        }
        let before = self.state.account(&account).balance;
        let (from, to, amount) = match balance.checked_sub(before) {
            Some(more) => (counterpart, account, more),
            None => (account, counterpart, before.saturating_sub(balance)),
        };
        self.state.debit(from, amount)?;
        self.state.credit(to, amount)?;
        self.emit(BalanceSet { account, before, after: balance, counterpart });
        Ok(())
    }

    pub(super) fn set_code(
        &mut self,
        author: Author,
        set: &SetCode,
        receipt: &mut Receipt,
    ) -> Result<(), TransactionFailure> {
        self.check_powers(author.account)?;
        let place = self.place(receipt.transaction, Some(author.account));
        let ids = Ids::of_transaction(author.nonce, receipt.transaction, author.allowance);
        let at = (&place, &ids);
        let done = actors::set_code(&mut self.state, at, author.account, set, author.budget);
        self.told(done, receipt)
    }

    pub(super) fn set_state(
        &mut self,
        sender: Address,
        SetState { actor, key, value }: &SetState,
    ) -> Result<(), TransactionFailure> {
        self.check_powers(sender)?;
        if self.state.actor(actor).is_none() {
            return Err(PowerError::UnknownActor(*actor).into());
        }
        let limits = self.state.params.actors.limits;
        let (got, limit) = (key.as_bytes().len() as u64, limits.key);
        if got > limit {
            return Err(PowerError::KeyTooLong { got, limit }.into());
        }
        let (got, limit) = (value.as_ref().map_or(0, Vec::len) as u64, limits.value);
        if got > limit {
            return Err(PowerError::ValueTooLong { got, limit }.into());
        }
        if self.state.language(actor) == Language::Starlark {
            key.as_text().ok_or(PowerError::KeyNotText)?;
            if let Some(value) = value {
                Json::parse(value).map_err(PowerError::from)?;
            }
        }
        let place = (*actor, key.clone());
        match value {
            Some(value) => self.state.storage.insert(place, value.clone()),
            None => self.state.storage.remove(&place),
        };
        let bytes = value.as_ref().map(|value| value.len() as u64);
        self.emit(StateSet { actor: *actor, key: key.to_string(), bytes });
        Ok(())
    }

    /// Executes a payload as the account's own next transaction would, except for its fee.
    pub(super) fn act_as(
        &mut self,
        author: Author,
        ActAs { account, payload }: &ActAs,
        receipt: &mut Receipt,
    ) -> Result<(), TransactionFailure> {
        receipt.acted_as = Some(*account);
        self.check_powers(author.account)?;
        let acting = self.state.account(account);
        let nonce = acting.nonce;
        let after = Account { nonce: nonce.saturating_add(1), ..acting };
        self.state.accounts.insert(*account, after);
        self.emit(ActedAs { account: *account, by: author.account });
        self.apply(&payload.0, Author { account: *account, nonce, ..author }, receipt)
    }

    pub(super) fn advance_time(
        &mut self,
        sender: Address,
        ms: u64,
    ) -> Result<(), TransactionFailure> {
        self.check_powers(sender)?;
        let total = self.state.ahead_ms().saturating_add(ms);
        if total > MAX_AHEAD_MS {
            return Err(PowerError::TimeTooFar(total).into());
        }
        let (since, before) = (self.height(), self.parent.ahead_ms());
        self.state.ahead = Some(Ahead { ms: total, since, before });
        self.emit(TimeAdvanced { ms, total });
        Ok(())
    }

    pub(super) fn mark_state(&mut self, sender: Address) -> Result<(), TransactionFailure> {
        self.check_powers(sender)?;
        let mark = self.state.next_mark().map_err(PowerError::from)?;
        self.will(Marking::Make)?;
        self.emit(StateMarked { mark });
        Ok(())
    }

    pub(super) fn return_to_mark(
        &mut self,
        sender: Address,
        mark: u64,
    ) -> Result<(), TransactionFailure> {
        self.check_powers(sender)?;
        let height = self.marked(mark)?;
        self.will(Marking::ReturnTo(mark))?;
        self.emit(StateReturned { mark, height });
        Ok(())
    }

    pub(super) fn forget_mark(
        &mut self,
        sender: Address,
        mark: u64,
    ) -> Result<(), TransactionFailure> {
        self.check_powers(sender)?;
        self.marked(mark)?;
        self.will(Marking::Forget(mark))?;
        self.emit(StateForgotten { mark });
        Ok(())
    }

    /// The block that a mark is of.
    fn marked(&self, mark: u64) -> Result<Height, PowerError> {
        let known = self.state.marks().iter().find(|known| known.number == mark);
        Ok(known.ok_or(MarkError::Unknown(mark))?.height)
    }

    fn will(&mut self, marking: Marking) -> Result<(), PowerError> {
        if self.marking.is_some() {
            return Err(MarkError::Taken.into());
        }
        self.marking = Some(marking);
        Ok(())
    }

    /// Marks the block's state, or returns to a mark.
    pub(super) fn finish_marking(&mut self) {
        match self.marking {
            Some(Marking::Make) => self.state.mark(),
            Some(Marking::ReturnTo(mark)) => {
                assert!(self.state.return_to(mark), "a mark stays for the rest of the block");
            }
            Some(Marking::Forget(mark)) => self.state.forget(mark),
            None => {}
        }
    }

    fn check_powers(&self, sender: Address) -> Result<(), TransactionFailure> {
        match self.parent.params.powers {
            Powers::Allowed => self.check_system(sender),
            Powers::Refused => Err(PowerError::NoPowers.into()),
        }
    }
}
