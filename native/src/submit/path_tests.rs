//! What a front answers by itself, what it leaves to the main thread and how, and what that is told.

use std::cell::{Cell, RefCell};
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use super::*;
use crate::quic::peer::Backlog;
use crate::submit::counters::FIGURES_BYTES;
use crate::submit::dedup::{Sizes, prepared};
use crate::submit::rate_limit::{LimitCells, PASS_MEMORY_BYTES};
use crate::submit::record_ring::RECORDS_BYTES;
use crate::submit::route_table::tests::Publisher;
use crate::submit::route_table::{ROUTES_BYTES, Routes};
use crate::submit::wakeup::Told;
use crate::sync::shared_memory::{Cells, Memory};

const TOKEN: &[u8] = b"0123456789abcdef";
const PLACE: u32 = 7;
const RECORDS: usize = 1024;
const TIP_ACCOUNT: [u8; 32] = [9; 32];
const SIZES: Sizes = Sizes { entries_max: 64, bytes_max: 65_536, keep_ms: 2_000, lock_ms: 1 };

/// An engine that notes what it is given, and a clock that goes on by a pause each time.
struct FakeWire {
    now_ns: Cell<u64>,
    given: Rc<RefCell<Vec<Vec<u8>>>>,
    is_broken: Rc<Cell<bool>>,
}

impl Wire for FakeWire {
    fn engine(&self) -> u32 {
        3
    }

    fn send(&self, _copies: &[u32], bytes: &[u8], _tx: u64, _ttl_ms: u32) -> u32 {
        assert!(!self.is_broken.get(), "a bug in the engine");
        self.given.borrow_mut().push(bytes.to_vec());
        0b11
    }

    fn hold(&self, copies: &[u32], bytes: &[u8], tx: u64, ttl_ms: u32) -> u32 {
        self.send(copies, bytes, tx, ttl_ms)
    }

    fn release(&self) -> Backlog {
        Backlog::None
    }

    fn now_ns(&self) -> u64 {
        self.now_ns.set(self.now_ns.get() + 1_000_000);
        self.now_ns.get()
    }
}

struct Scene {
    desk: FrontDesk<FakeWire>,
    publisher: Publisher,
    /// Another thread's view of what was seen.
    other: Seen,
    records: Cells<AtomicU64>,
    given: Rc<RefCell<Vec<Vec<u8>>>>,
    is_broken: Rc<Cell<bool>>,
    told: Arc<Told>,
    wakes: Arc<AtomicUsize>,
    out: Vec<u8>,
}

fn pass() -> Pass {
    Pass {
        rate_per_second: 1.0,
        burst: 2.0,
        is_shared: false,
        expires_unix_ms: None,
        networks: None,
        own_limit: None,
        account_cell: 4,
        key_cell: None,
        place: PLACE,
    }
}

impl Scene {
    /// With a pass for `TOKEN`, and two leaders that take what comes.
    fn new(pass: Pass) -> Self {
        let [passes, figures, records, routes] =
            [PASS_MEMORY_BYTES, FIGURES_BYTES, RECORDS_BYTES, ROUTES_BYTES].map(Memory::fresh);
        let seen = prepared(SIZES, 5).unwrap();
        let mut publisher = Publisher::new(&routes);
        publisher.publish(&[(70, 0), (71, 1)], 800, 4096, 0);
        publisher.open(true);
        let wakes = Arc::new(AtomicUsize::new(0));
        let counted = wakes.clone();
        let told = Arc::new(Told::new(Box::new(move || {
            counted.fetch_add(1, SeqCst);
        })));
        let (given, is_broken) = (Rc::default(), Rc::default());
        let wire = FakeWire {
            now_ns: Cell::new(1_000_000_000),
            given: Rc::clone(&given),
            is_broken: Rc::clone(&is_broken),
        };
        let mut desk = FrontDesk::new(Parts {
            passes: Passes::new(LimitCells::new(&passes).unwrap()),
            seen: Seen::open_with(&seen, SIZES).unwrap(),
            decoder: Arc::new(Decoder::new(&TIP_ACCOUNT, 1000.0, false, 0).unwrap()),
            sending: Sending::new(Routes::open(&routes).unwrap(), wire),
            records: Records::open(&records).unwrap(),
            figures: Figures::open(&figures).unwrap(),
            teller: Teller::new(told.clone()),
        });
        desk.news(News::Pass(TOKEN.into(), pass));
        Self {
            desk,
            publisher,
            other: Seen::open_with(&seen, SIZES).unwrap(),
            records: records.cells(0, RECORDS_BYTES / 8).unwrap(),
            given,
            is_broken,
            told,
            wakes,
            out: b"what was there".to_vec(),
        }
    }

    fn usual() -> Self {
        Self::new(pass())
    }

    fn take(&mut self, door: Door, token: &[u8], body: &[u8]) -> Taken {
        let from = Ipv4Addr::LOCALHOST.into();
        self.desk.take(&Request { door, token, from, body }, &mut self.out)
    }

    fn post(&mut self, bytes: &[u8]) -> Taken {
        self.take(Door::Raw, TOKEN, bytes)
    }

    /// What was answered since.
    fn answer(&mut self) -> String {
        let rest = self.out.split_off(b"what was there".len());
        let text = String::from_utf8(rest).unwrap();
        text.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_string())
    }

    fn figure(&self, figure: Figure) -> f64 {
        self.desk.parts.figures.number(figure)
    }

    /// Fields of the record of that number: kind, size, place, and where the signature starts.
    fn record(&self, number: usize) -> [f64; 4] {
        let slot = 16 + number * (RECORDS_BYTES / 8 - 16) / RECORDS;
        let field = |at: usize| f64::from_bits(self.records[slot + at].load(SeqCst));
        [field(0), field(1), field(2), field(8)]
    }

    fn depth(&self) -> usize {
        self.desk.parts.records.depth()
    }

    fn given(&self) -> usize {
        self.given.borrow().len()
    }
}

/// A legacy transaction of this number, whose one instruction pays a tip.
fn transaction(number: u8, lamports: u64) -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend([number; 64]);
    bytes.extend([1, 0, 1, 3]);
    bytes.extend([7; 32]);
    bytes.extend(TIP_ACCOUNT);
    bytes.extend([0; 32]);
    bytes.extend([8; 32]);
    bytes.extend([1, 2, 2, 0, 1, 12, 2, 0, 0, 0]);
    bytes.extend(lamports.to_le_bytes());
    bytes
}

fn good(number: u8) -> Vec<u8> {
    transaction(number, 5000)
}

fn name(bytes: &[u8]) -> String {
    let mut text = [0; SIGNATURE_TEXT_MAX];
    let size = signature_text_at(bytes, 1, &mut text).unwrap();
    String::from_utf8(text[..size].to_vec()).unwrap()
}

fn is_paid(taken: Taken) -> bool {
    match taken {
        Taken::Relay(Note { is_paid, received_ns }) => {
            assert!(received_ns > 0 || !is_paid);
            is_paid
        }
        Taken::Answered => panic!("it was answered"),
    }
}

#[test]
fn a_transaction_is_sent_answered_with_its_name_and_told_of() {
    let mut scene = Scene::usual();
    let bytes = good(1);
    assert_eq!(scene.post(&bytes), Taken::Answered);
    let body = format!(r#"{{"success":true,"signature":"{}"}}"#, name(&bytes));
    assert_eq!(scene.answer(), body);
    assert_eq!(*scene.given.borrow(), vec![bytes.clone()]);
    let [kind, size, place, _] = scene.record(0);
    assert_eq!((kind, size, place), (1.0, bytes.len() as f64, f64::from(PLACE)));
    let counted = [Figure::Requests, Figure::Accepted].map(|figure| scene.figure(figure));
    assert_eq!((counted, scene.depth()), ([1.0, 1.0], 1));
    assert!(scene.other.query(&bytes, 1, 1_000_000_000));
}

#[test]
fn a_call_is_answered_under_its_id() {
    let mut scene = Scene::usual();
    let bytes = good(2);
    let text = base64(&bytes);
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":"a1","method":"sendTransaction","params":["{text}",{{"encoding":"base64"}}]}}"#
    );
    assert_eq!(scene.take(Door::Rpc, TOKEN, call.as_bytes()), Taken::Answered);
    let body = format!(r#"{{"jsonrpc":"2.0","result":"{}","id":"a1"}}"#, name(&bytes));
    assert_eq!(scene.answer(), body);
    assert_eq!(*scene.given.borrow(), [bytes]);
}

#[test]
fn a_call_of_another_form_is_left_as_paid() {
    let mut scene = Scene::usual();
    assert!(is_paid(scene.take(Door::Rpc, TOKEN, br#"[{"jsonrpc":"2.0"}]"#)));
    assert_eq!((scene.figure(Figure::RelayedOther), scene.answer()), (1.0, String::new()));
}

#[test]
fn who_is_not_let_in_is_left_unpaid() {
    let mut scene = Scene::usual();
    assert!(!is_paid(scene.take(Door::Raw, b"another key", &good(1))));
    assert_eq!(scene.figure(Figure::RelayedKey), 1.0);
    for number in [1, 2] {
        assert_eq!(scene.post(&good(number)), Taken::Answered);
    }
    assert!(!is_paid(scene.post(&good(3))));
    assert_eq!((scene.figure(Figure::RelayedLimit), scene.given()), (1.0, 2));
}

#[test]
fn what_is_refused_is_left_as_paid_and_forgotten() {
    let mut scene = Scene::usual();
    let poor = transaction(1, 999);
    assert!(is_paid(scene.post(&poor)));
    assert!(is_paid(scene.post(b"")));
    assert_eq!((scene.figure(Figure::RelayedOther), scene.given(), scene.depth()), (2.0, 0, 0));
    assert!(!scene.other.query(&poor, 1, 1_000_000_000));
}

#[test]
fn a_repetition_is_answered_and_not_sent() {
    let mut scene = Scene::usual();
    let bytes = good(1);
    assert_eq!(scene.post(&bytes), Taken::Answered);
    let first = scene.answer();
    assert_eq!(scene.post(&bytes), Taken::Answered);
    assert_eq!((scene.answer(), scene.given(), scene.depth()), (first, 1, 2));
    let [kind, _, place, offset] = scene.record(1);
    assert_eq!((kind, place, offset), (2.0, f64::from(PLACE), 1.0));
}

#[test]
fn one_that_another_thread_has_at_this_moment_is_left_as_paid() {
    let mut scene = Scene::usual();
    let bytes = good(1);
    assert_eq!(scene.other.claim(&bytes, 1, 1_000_000_000), Claim::New);
    assert!(is_paid(scene.post(&bytes)));
    assert_eq!((scene.given(), scene.depth()), (0, 0));
    scene.other.confirm(&bytes, 1);
    assert_eq!(scene.post(&bytes), Taken::Answered);
    assert_eq!((scene.given(), scene.depth()), (0, 1));
}

#[test]
fn where_no_leader_takes_copies_it_is_left_as_paid_for_the_main_thread_to_claim() {
    let mut scene = Scene::usual();
    scene.publisher.open(false);
    let bytes = good(1);
    assert!(is_paid(scene.post(&bytes)));
    assert_eq!((scene.figure(Figure::RelayedLeaders), scene.depth()), (1.0, 0));
    assert_eq!(scene.other.claim(&bytes, 1, 1_000_000_000), Claim::New);
}

#[test]
fn without_room_for_a_record_nothing_is_sent() {
    let mut scene = Scene::new(Pass { burst: 1e6, ..pass() });
    let bytes = good(1);
    for _ in 0..RECORDS {
        assert_eq!(scene.post(&bytes), Taken::Answered);
    }
    let (other, given) = (good(2), scene.given());
    assert!(is_paid(scene.post(&other)));
    assert_eq!((scene.figure(Figure::RelayedBooks), scene.given()), (1.0, given));
    assert_eq!(scene.other.claim(&other, 1, 1_000_000_000), Claim::New);
}

#[test]
fn a_bug_costs_one_answer_which_the_main_thread_gives() {
    let mut scene = Scene::usual();
    scene.is_broken.set(true);
    assert!(!is_paid(scene.post(&good(1))));
    assert_eq!((scene.figure(Figure::Thrown), scene.answer()), (1.0, String::new()));
    scene.is_broken.set(false);
    assert_eq!(scene.post(&good(2)), Taken::Answered);
}

#[test]
fn a_pass_that_is_over_lets_nobody_in_and_its_place_comes_back() {
    let mut scene = Scene::usual();
    assert!(scene.desk.knows(TOKEN));
    scene.desk.news(News::PassOver(TOKEN.into(), PLACE));
    assert!(!scene.desk.knows(TOKEN) && !is_paid(scene.post(&good(1))));
    assert_eq!((scene.told.take_returned(8), scene.wakes.load(SeqCst)), (vec![PLACE], 1));
}

#[test]
fn a_pass_that_cannot_be_kept_is_as_none_and_its_place_comes_back_when_it_is_over() {
    let mut scene = Scene::usual();
    let broken = Pass { rate_per_second: 0.0, place: 9, ..pass() };
    scene.desk.news(News::Pass(b"broken".as_slice().into(), broken));
    assert!(!scene.desk.knows(b"broken"));
    assert!(scene.told.take_returned(8).is_empty());
    scene.desk.news(News::PassOver(b"broken".as_slice().into(), 9));
    assert_eq!(scene.told.take_returned(8), [9]);
}

#[test]
fn what_nobody_is_sure_to_come_for_is_told_of_late() {
    let mut scene = Scene::usual();
    let bytes = good(1);
    assert_eq!(scene.post(&bytes), Taken::Answered);
    scene.desk.end_turn();
    assert_eq!((scene.desk.wake_in(0), scene.wakes.load(SeqCst)), (None, 0));
    assert_eq!(scene.post(&bytes), Taken::Answered);
    let late = scene.desk.wake_in(0).unwrap();
    scene.desk.parts.sending.end_turn();
    assert!(late > Duration::from_millis(1_000));
    for _ in 0..300 {
        scene.desk.end_turn();
    }
    assert_eq!((scene.desk.wake_in(0), scene.wakes.load(SeqCst)), (None, 1));
}

#[test]
fn the_door_s_counts_are_the_front_s() {
    let mut scene = Scene::usual();
    scene.desk.connections(5);
    scene.desk.awaited(2);
    for cut in [Cut::Full, Cut::Address, Cut::Address, Cut::Slow] {
        scene.desk.cut(cut);
    }
    scene.desk.left();
    scene.desk.refused_relay();
    scene.desk.relayed(Why::Other);
    scene.desk.relayed(Why::Large);
    let figures = [
        Figure::Connections,
        Figure::RequestsOpen,
        Figure::ConnectionsRefused,
        Figure::ConnectionsCrowded,
        Figure::ConnectionsSlow,
        Figure::Aborted,
        Figure::Overloaded,
        Figure::RelayedOther,
    ];
    let counts = [5.0, 2.0, 1.0, 2.0, 1.0, 1.0, 1.0, 2.0];
    assert_eq!(figures.map(|figure| scene.figure(figure)), counts);
    scene.desk.idle();
    scene.desk.idle();
    assert_eq!((scene.told.state(), scene.wakes.load(SeqCst)), (State::Idle as u8, 1));
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes(word);
        for place in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * place)) as usize & 63];
            text.push(if place > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    text
}
