//! The queue and its calendar against a sorted map from height to timers, and against a rebuilt
//! queue and calendar.

use super::*;
use crate::{
    primitives::{
        Hash, Wei,
        codec::{from_slice, to_vec},
        keccak256,
    },
    timer::{Bid, Timer},
};

/// Random numbers, determined by the seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }
}

fn address(n: u64) -> Address {
    let Hash(bytes) = keccak256(&[b"account", &n.to_be_bytes()]);
    Address(*bytes.first_chunk().expect("20 of 32 bytes"))
}

/// The calendar's due timers with their accounts' addresses instead of numbers.
fn described(calendar: &Calendar) -> Vec<(Due, Address, Address)> {
    let live = calendar.due().iter().filter(|entry| entry.is_live());
    live.map(|entry| {
        let accounts = [entry.actor, entry.payer].map(|number| calendar.address(number));
        (Due { actor: 0, payer: 0, ..*entry }, accounts[0], accounts[1])
    })
    .collect()
}

/// A chain with only timers, and a model of it.
struct Chain {
    random: Random,
    now: Height,
    queue: Queue,
    calendar: Calendar,
    model: BTreeMap<(Height, u64), Timer>,
    /// Keys of the model in no order, for random draws.
    keys: Vec<(Height, u64)>,
    nonce: u64,
}

impl Chain {
    fn new(seed: u64, start: u64) -> Self {
        let now = Height::new(start);
        let mut queue = Queue::default();
        // The low bits of the order of insertion overflow on the way.
        queue.next_seq_is((seed << 32) - 10_000);
        queue.maintain(now);
        let calendar = Calendar::rebuild(&mut queue, now);
        let model = BTreeMap::new();
        Self { random: Random(seed), now, queue, calendar, model, keys: Vec::new(), nonce: 0 }
    }

    fn height(&mut self) -> Height {
        let random = &mut self.random;
        // Next block, this ring, the ring's end, these epochs, 30 days and beyond.
        let reach = [1, 40, 5_000, 4_097, 20_000, 2_592_000, 2_700_000, 6_000_000];
        let reach = reach[random.below(8) as usize];
        let ahead = if random.below(8) == 0 { reach } else { 1 + random.below(reach) };
        self.now.after(ahead)
    }

    fn timer_at(&mut self, height: Height) -> Timer {
        self.nonce += 1;
        let random = &mut self.random;
        let gba = (random.below(5) == 0).then(|| address(99));
        let actor = address(random.below(50));
        Timer {
            id: keccak256(&[&self.nonce.to_be_bytes()]),
            seq: 0,
            actor,
            height,
            payload: vec![7; random.below(60) as usize],
            handler: (random.below(9) == 0).then(|| "tick".to_owned()),
            fee_payer: if random.below(4) == 0 { address(random.below(70)) } else { actor },
            gas_limit: 1 + random.below(550_000),
            cell_limit: Due::CELLS * random.below(20),
            promised: None,
            expires_at: height.after(random.below(1_000)),
            max_fee_per_cycle: Wei::new(u128::from(random.below(u64::MAX)) << random.below(40)),
            max_priority_fee_per_cycle: Wei::new(u128::from(random.below(1_000))),
            scheduled_at: self.now,
            gba,
            // A real chain has no bids this early; the calendar has to keep them anyway.
            bid: gba.filter(|_| random.below(4) == 0).map(|_| Bid {
                max_fee_per_cycle: Wei::new(5_000),
                max_priority_fee_per_cycle: Wei::new(11),
                failed: false,
            }),
        }
    }

    fn schedule(&mut self) {
        let height = self.height();
        self.schedule_at(height);
    }

    fn schedule_at(&mut self, height: Height) {
        let mut timer = self.timer_at(height);
        timer.seq = self.queue.schedule(timer.clone());
        self.keys.push((timer.height, timer.seq));
        self.model.insert((timer.height, timer.seq), timer);
    }

    /// Adds many timers at one height and cancels most of them, so that the bucket is cleared.
    fn burst(&mut self) {
        let height = self.height();
        for _ in 0..60 {
            self.schedule_at(height);
        }
        let all: Vec<_> = self.model.range((height, 0)..(height.next(), 0)).collect();
        let gone = all.into_iter().filter(|(key, _)| key.1 % 9 > 0);
        for (key, id) in gone.map(|(key, timer)| (*key, timer.id)).collect::<Vec<_>>() {
            self.model.remove(&key);
            self.queue.remove(&id);
        }
    }

    /// A random timer: any, or one that is due.
    fn draw(&mut self) -> Option<(Height, u64)> {
        if self.random.below(3) == 0
            && let Some(first) = self.model.range(..(self.now.next(), 0)).next()
        {
            return Some(*first.0);
        }
        let drawn = (!self.keys.is_empty()).then(|| self.random.below(self.keys.len() as u64))?;
        let key = self.keys[drawn as usize];
        if !self.model.contains_key(&key) {
            self.keys.swap_remove(drawn as usize);
            return None;
        }
        Some(key)
    }

    fn cancel(&mut self) {
        if let Some(key) = self.draw() {
            let timer = self.model.remove(&key).expect("it was drawn");
            assert_eq!(self.queue.remove(&timer.id), Some(timer));
        }
    }

    fn extend(&mut self) {
        if let Some(key) = self.draw() {
            let blocks = self.random.below(5_000);
            let timer = self.model.get_mut(&key).expect("it was drawn");
            let before = timer.clone();
            timer.expires_at = timer.expires_at.after(blocks);
            if timer.gba.is_some() {
                let max_fee_per_cycle = Wei::new(u128::from(blocks));
                let max_priority_fee_per_cycle = Wei::new(3);
                let bid = Bid { max_fee_per_cycle, max_priority_fee_per_cycle, failed: true };
                timer.bid = blocks.is_multiple_of(2).then_some(bid);
            }
            assert_eq!(self.queue.replace(timer), Some(before));
        }
    }

    /// Fires some due timers like a lane: the entry first, then the record.
    fn fire(&mut self) {
        self.calendar.apply(&mut self.queue);
        for index in 0..self.calendar.due().len() as u32 {
            let entry = self.calendar.due()[index as usize];
            if entry.is_live() && self.random.below(4) > 0 {
                let timer = self.queue.find(&entry).expect("it is due");
                self.calendar.kill(index);
                self.queue.remove(&timer.id);
                self.model.remove(&(timer.height, timer.seq));
            }
        }
    }

    fn advance(&mut self, blocks: u64) {
        for _ in 0..blocks {
            let before = self.calendar.due().len();
            self.now = self.now.next();
            self.calendar.advance(self.now, &mut self.queue);
            let mut at_height = self.model.range((self.now, 0)..(self.now.next(), 0));
            if at_height.next().is_some() || self.calendar.due().len() != before {
                self.check_due();
            }
        }
        self.check_due();
        assert_eq!(self.queue.len(), self.model.len());
    }

    /// Advances many blocks with lanes that leave little.
    fn jump(&mut self, blocks: u64) {
        for _ in 0..blocks / 500 {
            self.advance(500);
            self.fire();
        }
    }

    fn check_due(&self) {
        let due = self.model.range(..(self.now.next(), 0));
        let expected: Vec<_> = due
            .map(|(_, timer)| {
                let notice = Notice::of(timer);
                (notice.due, notice.actor, notice.payer)
            })
            .collect();
        assert_eq!(described(&self.calendar), expected, "at {}", self.now);
        let with_agent = self.model.range(..(self.now.next(), 0));
        let with_agent = with_agent.filter(|(_, timer)| timer.gba.is_some());
        let agents = self.calendar.agents().map(|index| self.calendar.due()[index as usize].seq);
        assert!(agents.eq(with_agent.map(|(key, _)| key.1 as u32)), "agents at {}", self.now);
    }

    /// Checks the calendar's counts and buckets against the timers.
    fn check_places(&mut self) {
        self.calendar.apply(&mut self.queue);
        let (mut counts, mut overflow) = (CalendarCounts::default(), 0);
        let (mut ring, mut epochs) = (BTreeMap::new(), BTreeMap::new());
        for timer in self.model.values() {
            match TimerPlace::of(timer.height, timer.scheduled_at, self.now) {
                TimerPlace::CarryOver => counts.carry_over += 1,
                TimerPlace::Ring => {
                    counts.ring += 1;
                    *ring.entry(timer.height).or_default() += 1;
                }
                TimerPlace::Epoch => {
                    counts.epochs += 1;
                    *epochs.entry(epoch(timer.height)).or_default() += 1;
                }
                TimerPlace::Overflow => overflow += 1,
            }
        }
        assert_eq!(self.calendar.counts(), counts);
        assert!(self.calendar.ring().eq(ring));
        assert!(self.calendar.epochs().eq(epochs));
        assert_eq!(self.queue.overflow_len(), overflow);
    }

    /// Checks the root against a queue with the same contents in another order.
    fn check_root(&mut self) {
        let mut other = Queue::default();
        other.maintain(self.now);
        let mut by_id: Vec<_> = self.model.values().collect();
        by_id.sort_unstable_by_key(|timer| timer.payload.len());
        for timer in by_id {
            other.next_seq_is(timer.seq);
            other.schedule(timer.clone());
        }
        other.next_seq_is(self.queue.next_seq());
        assert_eq!(other.root(), self.queue.root());
        assert!(other.iter().eq(self.queue.iter()));
        for n in 0..50 {
            let own = self.model.values().filter(|timer| timer.actor == address(n)).count();
            assert_eq!(self.queue.count_of(&address(n)), own as u64);
        }
    }

    /// Restarts a node: a restored queue behaves as before.
    fn restart(&mut self) {
        let decoded: Queue = from_slice(&to_vec(&self.queue)).expect("it was just encoded");
        assert_eq!(decoded, self.queue);
        self.queue = decoded;
        self.calendar = Calendar::rebuild(&mut self.queue, self.now);
        self.check_due();
    }

    /// A failed transaction: the fork from before it is unaffected by its changes to the queue.
    fn fail(&mut self) {
        let (fork, root) = (self.queue.clone(), self.queue.root());
        let (model, keys) = (self.model.clone(), self.keys.clone());
        for _ in 0..5 {
            self.schedule();
            self.cancel();
            self.extend();
        }
        (self.queue, self.model, self.keys) = (fork, model, keys);
        assert_eq!(self.queue.root(), root);
    }
}

fn run(seed: u64, start: u64, operations: u32) -> Chain {
    let mut chain = Chain::new(seed, start);
    for _ in 0..operations {
        match chain.random.below(1_000) {
            0..500 => chain.schedule(),
            500..750 => chain.cancel(),
            750..850 => chain.extend(),
            850..985 => {
                let blocks = 1 + chain.random.below(3);
                chain.advance(blocks);
            }
            985..994 => chain.fire(),
            994..996 => chain.burst(),
            996 => chain.fail(),
            997 => {
                let blocks = chain.random.below(8_000);
                chain.jump(blocks);
            }
            998 => chain.check_places(),
            _ if chain.random.below(6) == 0 => {
                chain.check_root();
                chain.restart();
            }
            _ => {}
        }
    }
    chain.check_root();
    chain.check_places();
    chain
}

#[test]
fn due_sets_are_those_of_a_sorted_map() {
    for (seed, start) in [(1, 0), (2, 3_599), (3, 2_592_000 - 5), (4, 1 << 31)] {
        run(seed, start, 30_000);
    }
}

#[test]
fn what_is_far_away_comes_to_its_turn() {
    let mut chain = run(5, 7_000, 2_000);
    assert!(chain.queue.overflow_len() > 50);
    chain.jump(6_050_000);
    chain.check_root();
    let left = chain.model.range((chain.now.next(), 0)..).count();
    assert_eq!((left, chain.queue.overflow_len()), (0, 0));
}
