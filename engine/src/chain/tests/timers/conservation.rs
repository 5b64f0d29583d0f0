//! Blocks of random timers: payers' losses are burned or paid to proposers, to the wei.

use super::*;
use crate::chain::Burned;
use std::collections::BTreeMap;

/// The accounts of a chain that executes random blocks, computed independently.
struct Ledger {
    balances: BTreeMap<Address, Wei>,
    burned: Burned,
    lane: Wei,
}

impl Ledger {
    fn of(state: &State) -> Self {
        let balances = state.accounts().map(|(address, account)| (*address, account.balance));
        let burned = state.burned();
        assert_eq!(burned.total(), state.supply().burned);
        Self { balances: balances.collect(), burned, lane: state.lane().burned }
    }

    fn take(&mut self, from: Address, amount: Wei) {
        let balance = self.balances.entry(from).or_default();
        *balance = balance.checked_sub(amount).expect("an account pays what it has");
    }

    fn give(&mut self, to: Address, amount: Wei) {
        let balance = self.balances.entry(to).or_default();
        *balance = balance.saturating_add(amount);
    }

    /// Books only what receipts, fires and events say.
    fn book(&mut self, execution: &Execution, proposer: Address) {
        // Credits come first because the order is unknown; every account has enough here.
        let mut tips = Wei::ZERO;
        for event in &execution.events {
            if let EventKind::Transferred(moved) = &event.kind {
                self.give(moved.to, moved.amount);
            }
        }
        for event in &execution.events {
            if let EventKind::Transferred(moved) = &event.kind {
                self.take(moved.from, moved.amount);
            }
        }
        for receipt in &execution.receipts {
            self.take(receipt.sender, receipt.burned.saturating_add(receipt.tip));
            let burned = &mut self.burned.transactions;
            *burned = burned.saturating_add(receipt.burned);
            tips = tips.saturating_add(receipt.tip);
        }
        for event in &execution.events {
            if let EventKind::AgentsAsked(asked) = &event.kind {
                self.take(asked.actor, asked.paid);
                let lane = execution.lane.basefee.saturating_mul(asked.cycles.into());
                self.burned.questions = self.burned.questions.saturating_add(asked.paid);
                self.lane = self.lane.saturating_add(lane);
            }
        }
        for Fire { fee_payer, charged, .. } in &execution.fires {
            let paid = charged
                .burned_cycle
                .saturating_add(charged.burned_lane)
                .saturating_add(charged.cells)
                .saturating_add(charged.tip);
            assert_eq!(paid, charged.total());
            self.take(*fee_payer, paid);
            self.burned.fires = self.burned.fires.saturating_add(charged.burned());
            self.lane = self.lane.saturating_add(charged.burned_lane);
            tips = tips.saturating_add(charged.tip);
        }
        self.give(proposer, tips);
    }
}

/// A small pseudorandom generator, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Blocks of random timers: payers' losses are burned or paid to proposers, to the wei. A chain
/// restored from its snapshot continues with the same roots.
fn conserved(policy: Policy, blocks: u64) {
    let mut chain = with(|params| {
        params.timers.policy = policy;
        params.timers.config.lane_timer_cycles = 24_000;
        params.timers.config.max_timers_per_actor = 200;
    });
    let clocks: Vec<_> = (0..4).map(|_| chain.clock()).collect();
    let agents: Vec<_> = (0..2).map(|_| chain.deploy(AGENT)).collect();
    let call = calling(agents[1], "fail_from_now", "", Wei::ZERO);
    let signed = metered(&chain, "alice", call, BUDGET);
    chain.push(vec![signed]);
    for clock in &clocks {
        chain.call(*clock, "bid_by", &agents[0].to_string());
    }
    let proposer = key("validator-0").address();
    let payloads = ["", "fail", "spin", "drain", "again 2", "again 7", "cancel me"];
    let mut random = Random(u64::from(policy as u8) + 7);
    let (mut fired, mut failed, mut lost, mut broken, mut poor) = (0, 0, 0, 0, 0);
    let mut restarted: Option<State> = None;
    for _ in 0..blocks {
        let mut transactions = Vec::new();
        let nonce = chain.state.account(&key("alice").address()).nonce;
        for n in 0..random.below(3) {
            let actor = clocks[random.below(4) as usize];
            let at = chain.here() + 2 + random.below(12);
            let payload = payloads[random.below(payloads.len() as u64) as usize];
            let mut request = request(actor, at, payload);
            request.gas_limit = Some(4_000 + random.below(30_000));
            request.max_fee_per_cycle = Some(Wei::new(u128::from(1_500 + random.below(4_000))));
            request.max_priority_fee_per_cycle = Some(Wei::new(u128::from(random.below(50))));
            request.expires_at = Some(Height::new(at + random.below(6)));
            request.gba = match random.below(6) {
                0 => Some(agents[0]),
                1 => Some(agents[1]),
                _ if policy == Policy::GbaAuction => Some(agents[0]),
                _ => None,
            };
            if random.below(4) == 0 {
                request.fee_payer = Some(key("alice").address());
            }
            let payload = Payload::ScheduleTimer(Arc::new(request));
            let signed = chain.sign_at("alice", nonce + n, payload);
            let allowing = signed.transaction.clone().allowing(Wei::cby(1_000_000));
            transactions.push(allowing.sign(&key("alice")));
        }
        if random.below(5) == 0 {
            let to = clocks[random.below(4) as usize];
            let amount = Wei::new(1_000_000_000 * (1 + u128::from(random.below(2_000))));
            let payload = Payload::Transfer(transaction::Transfer { to, amount });
            transactions.push(chain.sign("bob", payload));
        }
        let block = chain.block(transactions);
        let mut ledger = Ledger::of(&chain.state);
        let execution = execute(&chain.state, &block).unwrap();
        ledger.book(&execution, proposer);
        let after = Ledger::of(&execution.state);
        ledger.balances.retain(|_, balance| !balance.is_zero());
        let mut balances = after.balances;
        balances.retain(|_, balance| !balance.is_zero());
        assert_eq!(ledger.balances, balances, "block {}", block.header.height);
        assert_eq!((ledger.burned, ledger.lane), (after.burned, after.lane));
        assert_eq!(execution.state.supply().total(), chain.supply);
        if let Some(state) = restarted.take() {
            let again = execute(&state, &block).unwrap();
            assert_eq!(again.state.root(), execution.state.root(), "a restart changes nothing");
            assert_eq!(again.fires, execution.fires);
            assert_eq!((again.events, again.lane), (execution.events.clone(), execution.lane));
            restarted = Some(again.state);
        }
        if random.below(40) == 0 {
            restarted = Some(State::from_bytes(&execution.state.to_bytes()).unwrap());
        }
        fired += execution.fires.len();
        failed += execution.fires.iter().filter(|fire| fire.status.error().is_some()).count();
        for kind in kinds(&execution) {
            lost += usize::from(kind == "TimerExpired");
            broken += usize::from(kind == "GbaFailed");
            poor += usize::from(kind == "TimerCancelledInsufficientFunds");
        }
        chain.state = execution.state;
    }
    let enough = usize::try_from(blocks / 100).unwrap();
    assert!(fired > 10 * enough && failed > enough && lost > enough, "{fired} {failed} {lost}");
    match policy {
        Policy::Fifo => assert!(poor > 0, "no payer ran out"),
        Policy::Eip1559 => assert!(broken > enough && poor > 0, "{broken} {poor}"),
        Policy::GbaAuction => assert!(broken > enough && poor == 0, "{broken} {poor}"),
    }
}

/// Number of blocks per policy; `COWBOYCTL_CONSERVATION_BLOCKS` overrides it.
fn blocks() -> u64 {
    std::env::var("COWBOYCTL_CONSERVATION_BLOCKS").map_or(10_000, |n| n.parse().unwrap())
}

#[test]
fn money_is_conserved_under_eip1559() {
    conserved(Policy::Eip1559, blocks());
}

#[test]
fn money_is_conserved_under_fifo() {
    conserved(Policy::Fifo, blocks());
}

#[test]
fn money_is_conserved_under_gba_auction() {
    conserved(Policy::GbaAuction, blocks());
}
