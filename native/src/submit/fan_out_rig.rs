//! A front on an engine and a clock that do as they are told.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{Backlog, RUN, Sending, Sent, Wire};
use crate::submit::route_table::tests::Publisher;
use crate::submit::route_table::{ROUTES_BYTES, Routes};
use crate::sync::shared_memory::Memory;

pub(super) const BYTES: &[u8] = &[1, 2, 3];
pub(super) const NS_PER_US: u64 = 1000;
pub(super) const NS_PER_MS: u64 = 1_000_000;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Call {
    Send,
    Hold,
    Release,
}

/// An engine that answers as told, and a clock that moves by hand.
pub(super) struct Fake {
    pub(super) now_ns: Cell<u64>,
    pub(super) mask: Cell<u32>,
    pub(super) left: Cell<Backlog>,
    /// How long each other call takes, and a release.
    pub(super) call_ns: Cell<u64>,
    pub(super) release_ns: Cell<u64>,
    pub(super) calls: RefCell<Vec<Call>>,
    /// Of each transaction its copies, number and lifetime.
    pub(super) given: RefCell<Vec<(Vec<u32>, u64, u32)>>,
}

pub(super) struct FakeWire {
    pub(super) fake: Rc<Fake>,
    /// What goes by between any two readings of the clock.
    pause_ns: u64,
}

impl FakeWire {
    fn note(&self, call: Call, copies: &[u32], tx: u64, ttl_ms: u32) -> u32 {
        self.fake.calls.borrow_mut().push(call);
        self.fake.given.borrow_mut().push((copies.to_vec(), tx, ttl_ms));
        self.fake.now_ns.set(self.fake.now_ns.get() + self.fake.call_ns.get());
        self.fake.mask.get()
    }
}

impl Wire for FakeWire {
    fn engine(&self) -> u32 {
        3
    }

    fn send(&self, copies: &[u32], bytes: &[u8], tx: u64, ttl_ms: u32) -> u32 {
        assert!(!bytes.is_empty());
        self.note(Call::Send, copies, tx, ttl_ms)
    }

    fn hold(&self, copies: &[u32], bytes: &[u8], tx: u64, ttl_ms: u32) -> u32 {
        assert_eq!(bytes, BYTES);
        self.note(Call::Hold, copies, tx, ttl_ms) << 16
    }

    fn release(&self) -> Backlog {
        self.fake.calls.borrow_mut().push(Call::Release);
        self.fake.now_ns.set(self.fake.now_ns.get() + self.fake.release_ns.get());
        self.fake.left.get()
    }

    fn now_ns(&self) -> u64 {
        self.fake.now_ns.set(self.fake.now_ns.get() + self.pause_ns);
        self.fake.now_ns.get()
    }
}

/// A front whose table names some leaders.
pub(super) struct Rig {
    pub(super) memory: Memory,
    pub(super) publisher: Publisher,
    pub(super) version: u32,
    pub(super) fake: Rc<Fake>,
    pub(super) front: Sending<FakeWire>,
    pub(super) sent: Sent,
}

impl Rig {
    pub(super) fn new(count: u32, left_out: u32, pause_ns: u64) -> Self {
        let memory = Memory::fresh(ROUTES_BYTES);
        let mut publisher = Publisher::new(&memory);
        let version = publisher.publish(&routes_of(count), 800, 1232, left_out);
        publisher.open(true);
        let fake = Rc::new(Fake {
            now_ns: Cell::new(1_000_000_000),
            mask: Cell::new(0b11),
            left: Cell::new(Backlog::None),
            call_ns: Cell::new(0),
            release_ns: Cell::new(0),
            calls: RefCell::default(),
            given: RefCell::default(),
        });
        let front = front_on(&memory, &fake, pause_ns);
        Self { memory, publisher, version, fake, front, sent: Sent::default() }
    }

    /// One that always has pauses, with two leaders.
    pub(super) fn calm() -> Self {
        Self::new(2, 0, NS_PER_MS)
    }

    /// One that never has a pause, except by `pass`.
    pub(super) fn busy() -> Self {
        Self::new(2, 0, 0)
    }

    pub(super) fn send(&mut self) -> bool {
        self.front.send(BYTES, &mut self.sent)
    }

    pub(super) fn send_many(&mut self, mask: u32, count: u32) -> Vec<bool> {
        self.fake.mask.set(mask);
        (0..count).map(|_| self.send()).collect()
    }

    /// Has it send until it holds what it sends.
    pub(super) fn run_on(&mut self) {
        for _ in 0..RUN {
            assert!(self.send());
        }
    }

    pub(super) fn pass(&self, ns: u64) {
        self.fake.now_ns.set(self.fake.now_ns.get() + ns);
    }

    /// Gives so many, so far apart; what was called for them.
    pub(super) fn give(&mut self, count: u32, gap_ns: u64) -> Vec<Call> {
        for _ in 0..count {
            self.pass(gap_ns);
            self.send();
        }
        self.fake.calls.take()
    }

    pub(super) fn end_turn(&mut self) -> Vec<Call> {
        self.front.end_turn();
        self.fake.calls.take()
    }

    pub(super) fn heed(&mut self, now_ns: u64) -> Vec<Call> {
        self.front.heed(now_ns);
        self.fake.calls.take()
    }
}

pub(super) fn routes_of(count: u32) -> Vec<(u32, u32)> {
    (0..count).map(|index| (70 + index, index)).collect()
}

pub(super) fn front_on(memory: &Memory, fake: &Rc<Fake>, pause_ns: u64) -> Sending<FakeWire> {
    Sending::new(Routes::open(memory).unwrap(), FakeWire { fake: fake.clone(), pause_ns })
}

pub(super) fn times(call: Call, count: u32) -> Vec<Call> {
    (0..count).map(|_| call.clone()).collect()
}
