//! Turns a request into a timer: defaults, bounds, the id (timers.md §1, §4).
//!
//! For a request to schedule:
//! 1. Height, payload, handler, payer, gas limit and expiry are checked against their bounds;
//!    absent ones get their defaults.
//! 2. Absent fees are those of the default gas bidding agent at this moment, or of a tier.
//! 3. Under `eip1559` a cap below the lane basefee is refused, a priority that exceeds the rest of
//!    the cap is cut, and a gas limit above the auction-phase cap is reported. Under `gba-auction`
//!    a timer without an agent is refused; one that was scheduled before that policy bids its own
//!    two fees.
//!
//! Nothing is escrowed: a fire is paid for when it happens. A payer other than the actor is the
//! sender of the transaction, and pays only up to the transaction's allowance: the maximum cost of
//! each such timer is deducted from it, and a fire that costs more does not happen.

use super::{
    DEFAULT_CELL_LIMIT, Due, Policy, Tier, TimerConfig, eip1559,
    record::{Timer, TimerError},
};
use crate::{
    actor::effect::{MAX_HANDLER_BYTES, MAX_PAYLOAD_BYTES},
    primitives::{Address, Hash, Height, InCby, Wei},
    record,
};
use sha3::{Digest as _, Keccak256};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
};

/// The last of the system actors' addresses, which begin at 0x01; neither they nor zero pay.
const LAST_SYSTEM_ACTOR: u8 = 0x0f;
/// The maximum of a fee field; the next value means the default bid (see [`super::Due`]).
const MAX_FEE: Wei = Wei::new(u64::MAX as u128 - 1);

record! {
    /// A request for a timer; absent fields get defaults.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct TimerRequest {
        pub actor: Address,
        pub height: Height,
        pub payload: Vec<u8>,
        pub handler: Option<String>,
        /// The payer (default: the actor).
        pub fee_payer: Option<Address>,
        /// Maximum cycles of a fire (default: the maximum).
        pub gas_limit: Option<u64>,
        /// Maximum cells of a fire (default: [`DEFAULT_CELL_LIMIT`]).
        pub cell_limit: Option<u64>,
        /// The last height at which it may fire (default: the maximum).
        pub expires_at: Option<Height>,
        pub max_fee_per_cycle: Option<Wei>,
        pub max_priority_fee_per_cycle: Option<Wei>,
        /// The urgency, used if no priority is given.
        pub tier: Option<Tier>,
        /// The actor that is asked for a bid when the timer is due.
        pub gba: Option<Address>,
        /// Whether the withdrawn parameter `bid` was given.
        pub bid: bool,
    }
}

/// The conditions under which a block's timers are scheduled.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleTerms {
    pub now: Height,
    pub policy: Policy,
    pub config: TimerConfig,
    /// The lane basefee; under policies without one, the cycle basefee.
    pub lane_price: Wei,
    pub basefee_cycle: Wei,
    pub basefee_cell: Wei,
    /// Median tip of the timers that fired in the previous block, in wei per cycle.
    pub p50: Wei,
    pub takes_bid: bool,
}

/// A timer without an id yet, and the notices for its scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The timer, with id zero and number 0.
    pub timer: Timer,
    /// The requested priority, if it was cut.
    pub clamped_from: Option<Wei>,
    /// The auction-phase cap, if the gas limit exceeds it.
    pub exceeds_cap: Option<u64>,
}

impl ScheduleTerms {
    pub fn latest(&self) -> Height {
        self.now.after(self.config.max_ttl_blocks)
    }

    pub fn default_gas_limit(&self) -> u64 {
        match self.policy {
            Policy::Eip1559 => {
                let cap = self.config.max_cycles_per_fire_auction_phase;
                cap.min(self.config.max_cycles_per_fire)
            }
            Policy::Fifo | Policy::GbaAuction => self.config.max_cycles_per_fire,
        }
    }

    fn check_expiry(&self, height: Height, expires_at: Height) -> Result<(), TimerError> {
        let (min, max) = (height, self.latest());
        match (min..=max).contains(&expires_at) {
            true => Ok(()),
            false => Err(TimerError::ExpiryOutOfRange { got: expires_at, min, max }),
        }
    }

    /// Checks a request and makes the timer. `sender` is the account whose transaction asks; a fire
    /// has none.
    pub fn admit(
        &self,
        request: TimerRequest,
        sender: Option<Address>,
    ) -> Result<Admitted, TimerError> {
        let TimerRequest {
            actor, height, payload, handler, fee_payer, gas_limit, expires_at, ..
        } = request;
        if request.bid && !self.takes_bid {
            return Err(TimerError::TimerArgDeprecated);
        }
        if self.policy == Policy::GbaAuction && request.gba.is_none() {
            return Err(TimerError::GbaRequired);
        }
        if height <= self.now {
            return Err(TimerError::HeightNotInFuture { got: height, now: self.now.next() });
        }
        let (got, limit) = (payload.len(), MAX_PAYLOAD_BYTES);
        if got > limit {
            return Err(TimerError::PayloadTooLarge { got, limit });
        }
        let (got, limit) = (handler.as_ref().map_or(0, String::len), MAX_HANDLER_BYTES);
        if got > limit {
            return Err(TimerError::HandlerNameTooLong { got, limit });
        }
        let fee_payer = fee_payer.unwrap_or(actor);
        let known = fee_payer == actor || sender == Some(fee_payer);
        if !known || is_system(&fee_payer) {
            return Err(TimerError::InvalidFeePayer(fee_payer));
        }
        let limit = self.config.max_cycles_per_fire;
        let gas_limit = gas_limit.unwrap_or_else(|| self.default_gas_limit());
        if gas_limit > limit {
            return Err(TimerError::GasLimitTooHigh { got: gas_limit, limit });
        }
        let limit = self.config.cell_cap();
        let cell_limit = request.cell_limit.unwrap_or_else(|| limit.min(DEFAULT_CELL_LIMIT));
        if cell_limit > limit {
            return Err(TimerError::CellLimitTooHigh { got: cell_limit, limit });
        }
        // A height beyond every lifetime is reported as such.
        let expires_at = expires_at.unwrap_or_else(|| self.latest().max(height));
        self.check_expiry(height, expires_at)?;

        // A timer does not choose the price of a cell.
        let default = eip1559::default_bid(self.lane_price, Wei::ZERO, self.p50);
        let max_fee = request.max_fee_per_cycle.unwrap_or(default.max_fee_per_cycle);
        let stated = request.max_priority_fee_per_cycle.unwrap_or_else(|| match request.tier {
            Some(tier) => {
                let multipliers = &self.config.priority_tier_multipliers;
                let floor = Wei::new(self.config.priority_tier_floor.into());
                eip1559::tier_priority(self.p50.max(floor), tier, multipliers)
            }
            None => default.max_priority_fee_per_cycle,
        });
        let (mut priority, mut exceeds_cap) = (stated, None);
        if self.policy == Policy::Eip1559 {
            let room = max_fee.checked_sub(self.lane_price).ok_or(
                TimerError::TimerRejectedBelowBasefee { got: max_fee, basefee: self.lane_price },
            )?;
            priority = stated.min(room);
            let cap = self.config.max_cycles_per_fire_auction_phase;
            exceeds_cap = (gas_limit > cap).then_some(cap);
        }
        let mut timer = Timer {
            id: Hash::ZERO,
            seq: 0,
            actor,
            height,
            payload,
            handler,
            fee_payer,
            gas_limit,
            cell_limit: cell_limit.next_multiple_of(Due::CELLS),
            promised: None,
            expires_at,
            max_fee_per_cycle: max_fee.min(MAX_FEE),
            max_priority_fee_per_cycle: priority.min(MAX_FEE),
            scheduled_at: self.now,
            gba: request.gba,
            bid: None,
        };
        timer.promised = (fee_payer != actor).then(|| self.worst_cost(&timer));
        Ok(Admitted { timer, clamped_from: (priority != stated).then_some(stated), exceeds_cap })
    }

    /// Maximum cost of the timer's fire as long as neither basefee more than doubles.
    pub fn worst_cost(&self, timer: &Timer) -> Wei {
        let twice = self.basefee_cycle.saturating_mul(2);
        let cycle = match self.policy {
            Policy::Eip1559 => twice.saturating_add(timer.max_fee_per_cycle),
            Policy::Fifo => twice,
            Policy::GbaAuction => twice.max(timer.max_fee_per_cycle),
        };
        timer.max_cost(cycle, self.basefee_cell.saturating_mul(2))
    }

    /// Moves a timer's expiry, never to an earlier height.
    pub fn extend(&self, timer: &mut Timer, expires_at: Height) -> Result<(), TimerError> {
        self.check_expiry(timer.expires_at, expires_at)?;
        timer.expires_at = expires_at;
        Ok(())
    }
}

fn is_system(address: &Address) -> bool {
    let (last, rest) = address.0.split_last().expect("an address has 20 bytes");
    *last <= LAST_SYSTEM_ACTOR && rest.iter().all(|byte| *byte == 0)
}

/// Assigns the ids of the timers that one transaction or one fire schedules, and tracks the
/// sender's allowance for them.
///
/// The nonce in the id is the transaction's. A second timer with the same inputs gets a counter in
/// the nonce's upper 16 bits, from 1. If the id is taken by a timer of another transaction (of
/// another sender with the same nonce, or of an earlier fire), the counter jumps to a value derived
/// from the transaction's hash, so that long runs of equal timers are not walked.
#[derive(Debug)]
pub struct Ids {
    nonce: u64,
    hash: Hash,
    /// The next counter, by the id with counter 0.
    next: RefCell<BTreeMap<Hash, u64>>,
    allowance: Cell<Wei>,
}

/// Number of bits in a nonce below the counter.
const NONCE_BITS: u32 = 48;
/// The bit that marks the nonce of a fire, which is the block's height with this bit set, because a
/// fire has no nonce of its own.
const FIRE: u64 = 1 << (NONCE_BITS - 1);
const COUNTERS: u64 = 1 << (u64::BITS - NONCE_BITS);

impl Ids {
    pub fn of_transaction(nonce: u64, hash: Hash, allowance: Wei) -> Self {
        Self { nonce, hash, next: RefCell::default(), allowance: Cell::new(allowance) }
    }

    pub fn of_fire(height: Height, timer: Hash) -> Self {
        Self::of_transaction(height.get() | FIRE, timer, Wei::ZERO)
    }

    /// Deducts a timer's maximum cost for the sender from the allowance.
    pub fn promise(&self, timer: &Timer) -> Result<(), TimerError> {
        let Some(cost) = timer.promised else { return Ok(()) };
        let left = self.allowance.get();
        let rest = left.checked_sub(cost).ok_or(TimerError::PayerNotWilling {
            payer: timer.fee_payer,
            cost: InCby(cost),
            left: InCby(left),
        })?;
        self.allowance.set(rest);
        Ok(())
    }

    pub fn next(
        &self,
        actor: &Address,
        height: Height,
        payload: &[u8],
        taken: impl Fn(&Hash) -> bool,
    ) -> Option<Hash> {
        // The payload, which may be long, is hashed only once.
        let inputs = Keccak256::new()
            .chain_update(actor.0)
            .chain_update(height.to_be_bytes())
            .chain_update(payload);
        let id = |counter: u64| {
            let nonce = self.nonce | counter << NONCE_BITS;
            Hash(inputs.clone().chain_update(nonce.to_be_bytes()).finalize().into())
        };
        let mut next = self.next.borrow_mut();
        let plain = id(0);
        let next = next.entry(plain).or_insert(0);
        let [first, second, ..] = self.hash.0;
        let mut jumped = false;
        while *next < COUNTERS {
            let got = if *next == 0 { plain } else { id(*next) };
            *next += 1;
            if !taken(&got) {
                return Some(got);
            }
            if !jumped {
                jumped = true;
                *next = (*next).max(u64::from(u16::from_be_bytes([first, second])));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
