//! A `FanOut` on a fake engine and a clock set by hand.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use super::{
    BURST_MIN, EngineHandle, FanOut, FanOutOutcome, FanOutResult, Offer, SendStatus, Transaction,
};
use crate::quic::targets::TargetTable;

pub(super) const BYTES: &[u8] = &[1, 2, 3];
pub(super) const OFFER: Offer = Offer { account: 8, lamports: 5_000.0 };
pub(super) const NS_PER_US: u64 = 1000;
pub(super) const NS_PER_MS: u64 = 1_000_000;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Call {
    Send,
    Cork,
    Uncork,
    Wake,
}

/// An engine with preset results, and a clock set by hand.
pub(super) struct Fake {
    pub(super) now_ns: Cell<u64>,
    /// As `SendStatus::bits`, and the deliveries that find a full queue.
    pub(super) status: Cell<u32>,
    pub(super) saturated: Cell<u16>,
    /// Duration of each send or cork, and of each uncork.
    pub(super) call_ns: Cell<u64>,
    pub(super) uncork_ns: Cell<u64>,
    pub(super) calls: RefCell<Vec<Call>>,
    /// The deliveries, number and lifetime of each transaction.
    pub(super) given: RefCell<Vec<(Vec<u32>, u64, u32)>>,
    /// Urgency of records, as noted.
    pub(super) noted: RefCell<Vec<bool>>,
}

pub(super) struct FakeEngine {
    pub(super) fake: Rc<Fake>,
    /// Time that passes between any two readings of the clock.
    pause_ns: u64,
}

impl FakeEngine {
    fn note(&self, call: Call, transaction: &Transaction<'_>) -> SendStatus {
        let &Transaction { deliveries, tx, ttl_ms, offer, .. } = transaction;
        assert_eq!(offer, OFFER);
        self.fake.calls.borrow_mut().push(call);
        self.fake.given.borrow_mut().push((deliveries.to_vec(), tx, ttl_ms));
        self.fake.now_ns.set(self.fake.now_ns.get() + self.fake.call_ns.get());
        let (bits, saturated) = (self.fake.status.get(), self.fake.saturated.get());
        let (wire, queued) = (bits as u16, (bits >> 16) as u16);
        SendStatus { wire, queued, saturated }
    }
}

impl EngineHandle for FakeEngine {
    fn send(&self, transaction: &Transaction<'_>) -> SendStatus {
        assert!(!transaction.bytes.is_empty());
        self.note(Call::Send, transaction)
    }

    fn cork(&self, transaction: &Transaction<'_>) -> SendStatus {
        assert_eq!(transaction.bytes, BYTES);
        let status = self.note(Call::Cork, transaction);
        SendStatus { wire: 0, queued: status.accepted(), ..status }
    }

    fn uncork(&self) {
        self.fake.calls.borrow_mut().push(Call::Uncork);
        self.fake.now_ns.set(self.fake.now_ns.get() + self.fake.uncork_ns.get());
    }

    fn note_record(&self, is_urgent: bool, _now_ns: u64) {
        self.fake.noted.borrow_mut().push(is_urgent);
    }

    fn wake_if_urgent(&self) {
        self.fake.calls.borrow_mut().push(Call::Wake);
    }

    fn now_ns(&self) -> u64 {
        self.fake.now_ns.set(self.fake.now_ns.get() + self.pause_ns);
        self.fake.now_ns.get()
    }
}

/// A `FanOut` whose table has some leaders.
pub(super) struct Fixture {
    pub(super) targets: Arc<TargetTable>,
    pub(super) fake: Rc<Fake>,
    pub(super) fan_out: FanOut<FakeEngine>,
    pub(super) sent: FanOutResult,
}

impl Fixture {
    pub(super) fn new(count: u32, pause_ns: u64) -> Self {
        let targets = Arc::new(TargetTable::default());
        targets.publish(&targets_of(count), 800, 1232);
        let fake = Rc::new(Fake {
            now_ns: Cell::new(1_000_000_000),
            status: Cell::new(0b11),
            saturated: Cell::new(0),
            call_ns: Cell::new(0),
            uncork_ns: Cell::new(0),
            calls: RefCell::default(),
            given: RefCell::default(),
            noted: RefCell::default(),
        });
        let fan_out = fan_out_on(&targets, &fake, pause_ns);
        Self { targets, fake, fan_out, sent: FanOutResult::default() }
    }

    /// Always has pauses; with two leaders.
    pub(super) fn calm() -> Self {
        Self::new(2, NS_PER_MS)
    }

    /// Never has a pause, except by `pass`.
    pub(super) fn busy() -> Self {
        Self::new(2, 0)
    }

    /// Whether the sender is woken for the last transaction, at the end of the turn.
    pub(super) fn is_urgent(&mut self) -> bool {
        self.fan_out.sent_recorded(0);
        let is_urgent = self.fake.noted.take() == [true];
        assert_eq!(self.end_turn().contains(&Call::Wake), is_urgent);
        assert!(!self.end_turn().contains(&Call::Wake));
        is_urgent
    }

    pub(super) fn send(&mut self) -> bool {
        self.outcome() == FanOutOutcome::Sent
    }

    pub(super) fn outcome(&mut self) -> FanOutOutcome {
        self.fan_out.send(BYTES, OFFER, &mut self.sent, |_| true)
    }

    pub(super) fn send_many(&mut self, status: u32, count: u32) -> Vec<bool> {
        self.fake.status.set(status);
        (0..count).map(|_| self.send()).collect()
    }

    /// Sends until the next transaction is corked.
    pub(super) fn run_on(&mut self) {
        for _ in 0..BURST_MIN {
            assert!(self.send());
        }
    }

    pub(super) fn pass(&self, ns: u64) {
        self.fake.now_ns.set(self.fake.now_ns.get() + ns);
    }

    /// Sends `count` transactions `gap_ns` apart; returns the engine calls.
    pub(super) fn give(&mut self, count: u32, gap_ns: u64) -> Vec<Call> {
        for _ in 0..count {
            self.pass(gap_ns);
            self.send();
        }
        self.fake.calls.take()
    }

    pub(super) fn end_turn(&mut self) -> Vec<Call> {
        self.fan_out.end_turn();
        self.fake.calls.take()
    }

    pub(super) fn flush_if_due(&mut self, now_ns: u64) -> Vec<Call> {
        self.fan_out.flush_if_due(now_ns);
        self.fake.calls.take()
    }
}

pub(super) fn targets_of(count: u32) -> Vec<u32> {
    (0..count).map(|index| 70 + index).collect()
}

pub(super) fn fan_out_on(
    targets: &Arc<TargetTable>,
    fake: &Rc<Fake>,
    pause_ns: u64,
) -> FanOut<FakeEngine> {
    FanOut::new(targets.clone(), FakeEngine { fake: fake.clone(), pause_ns })
}

pub(super) fn times(call: Call, count: u32) -> Vec<Call> {
    (0..count).map(|_| call.clone()).collect()
}
