//! What an ingress thread answers, and what it records.

use std::cell::{Cell, RefCell};
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::*;
use crate::decode::base58::{SIGNATURE_TEXT_MAX, signature_text_at};
use crate::decode::decoder::Decoder;
use crate::decode::errors::DecodeError;
use crate::quic::event_ring::EventRing;
use crate::quic::landed_shares::Offer;
use crate::quic::limits::SUBMISSION_UNITS_MAX;
use crate::quic::send_result::SendStatus;
use crate::quic::targets::TargetTable;
use crate::submit::counters::{COUNTERS_BYTES, Counters};
use crate::submit::dedup::{DedupCache, Reservation, Sizes};
use crate::submit::fan_out::{FanOut, Transaction};
use crate::submit::key_table::tests::{ACCOUNT_NUMBER, table_of, terms};
use crate::submit::key_table::{Digest, KeyTerms, PolicyTerms};
use crate::submit::rate_limit::Rate;
use crate::submit::records::Records;
use crate::submit::thread_status::ThreadStatus;
use crate::sync::entry_ring::tests::{DONE, VOID};
use crate::sync::shared_memory::Memory;

#[path = "main_thread_tests.rs"]
mod main_thread;
#[path = "requests_rejection_tests.rs"]
mod rejections;
#[path = "streams_tests.rs"]
mod streams;

const TOKEN: &[u8] = b"0123456789abcdef";
/// Bytes of the account's name.
const ACCOUNT_SIZE: f64 = 4.0;
const TIP_ACCOUNT: [u8; 32] = [9; 32];
const SIZES: Sizes = Sizes { entries_max: 64, bytes_max: 65_536, keep_ms: 2_000, lock_ms: 1 };

/// An engine that records its transactions, and a clock that advances by a pause at each reading.
struct FakeEngine {
    now_ns: Cell<u64>,
    given: Rc<RefCell<Vec<Vec<u8>>>>,
    offers: Rc<RefCell<Vec<Offer>>>,
    is_broken: Rc<Cell<bool>>,
    is_full: Rc<Cell<bool>>,
    ends_after: Rc<Cell<usize>>,
    noted: Rc<RefCell<Vec<bool>>>,
}

impl EngineHandle for FakeEngine {
    fn send(&self, transaction: &Transaction<'_>) -> SendStatus {
        assert!(!self.is_broken.get(), "a bug in the engine");
        self.given.borrow_mut().push(transaction.bytes.to_vec());
        self.offers.borrow_mut().push(transaction.offer);
        if self.given.borrow().len() > self.ends_after.get() {
            return SendStatus::default();
        }
        if self.is_full.get() {
            return SendStatus { saturated: 0b11, ..SendStatus::default() };
        }
        SendStatus { wire: 0b11, ..SendStatus::default() }
    }

    fn cork(&self, transaction: &Transaction<'_>) -> SendStatus {
        let status = self.send(transaction);
        SendStatus { wire: 0, queued: status.accepted(), ..status }
    }

    fn uncork(&self) {}

    fn note_record(&self, is_urgent: bool, _now_ns: u64) {
        self.noted.borrow_mut().push(is_urgent);
    }

    fn wake_if_urgent(&self) {}

    fn now_ns(&self) -> u64 {
        self.now_ns.set(self.now_ns.get() + 1_000_000);
        self.now_ns.get()
    }
}

struct Fixture {
    handler: SubmitHandler<FakeEngine>,
    targets: Arc<TargetTable>,
    /// The dedup cache, as another thread uses it.
    other: Arc<DedupCache>,
    events: Arc<EventRing>,
    given: Rc<RefCell<Vec<Vec<u8>>>>,
    offers: Rc<RefCell<Vec<Offer>>>,
    is_broken: Rc<Cell<bool>>,
    is_full: Rc<Cell<bool>>,
    /// After so many transactions all connections end.
    ends_after: Rc<Cell<usize>>,
    /// Urgency of records, as noted for the main thread.
    noted: Rc<RefCell<Vec<bool>>>,
    status: Arc<ThreadStatus>,
    wakes: Arc<AtomicUsize>,
    drain: Drain,
    out: Vec<u8>,
}

impl Fixture {
    /// With the key `TOKEN`, this burst, and two leaders that accept deliveries.
    fn new(burst: f64) -> Self {
        Self::with(burst, None)
    }

    fn with(burst: f64, policy: Option<PolicyTerms>) -> Self {
        let rate = Rate { rate_per_second: 1.0, burst };
        let keys = table_of(rate, false, &[KeyTerms { policy, ..terms(TOKEN, "acme") }]);
        let counters = Memory::fresh(COUNTERS_BYTES);
        let events = Arc::new(EventRing::new(Box::new(|| {})));
        let dedup = Arc::new(DedupCache::new(SIZES));
        let targets = Arc::new(TargetTable::default());
        targets.publish(&[70, 71], 800, 4096);
        let wakes = Arc::new(AtomicUsize::new(0));
        let counted = wakes.clone();
        let status = Arc::new(ThreadStatus::new(Box::new(move || {
            counted.fetch_add(1, SeqCst);
        })));
        let (given, offers, is_broken, is_full, noted) =
            (Rc::default(), Rc::default(), Rc::default(), Rc::default(), Rc::default());
        let ends_after = Rc::new(Cell::new(usize::MAX));
        let engine_handle = FakeEngine {
            now_ns: Cell::new(1_000_000_000),
            given: Rc::clone(&given),
            offers: Rc::clone(&offers),
            is_broken: Rc::clone(&is_broken),
            is_full: Rc::clone(&is_full),
            ends_after: Rc::clone(&ends_after),
            noted: Rc::clone(&noted),
        };
        let path = SubmitPath {
            dedup: dedup.clone(),
            decoder: Arc::new(Decoder::new(&TIP_ACCOUNT, 1000.0, false, 0).unwrap()),
            fan_out: FanOut::new(targets.clone(), engine_handle),
            records: Records::new(events.clone()),
        };
        let counters = Counters::open(&counters).unwrap();
        let keys = Arc::new(keys);
        let keyless = KEYLESS.map(|(method, json)| (method.into(), json.into()));
        let keyless = Arc::new(KeylessMethods::new(keyless));
        let handler =
            SubmitHandler::new(path, keys, keyless, counters, status.clone(), 75_000_000_000);
        Self {
            handler,
            targets,
            other: dedup,
            events,
            given,
            offers,
            is_broken,
            is_full,
            ends_after,
            noted,
            status,
            wakes,
            drain: Drain::None,
            out: b"what was there".to_vec(),
        }
    }

    fn usual() -> Self {
        Self::new(2.0)
    }

    fn take(&mut self, endpoint: Endpoint, token: &[u8], body: &[u8]) {
        let (from, drain) = (Ipv4Addr::LOCALHOST.into(), self.drain);
        self.handler.handle(&Request { endpoint, token, from, body, drain }, &mut self.out);
    }

    /// Without its body.
    fn refuse_unread(&mut self, token: &[u8], reason: UnreadReason) -> Reason {
        let (endpoint, from) = (Endpoint::Raw, Ipv4Addr::LOCALHOST.into());
        let request = Request { endpoint, token, from, body: &[], drain: self.drain };
        self.handler.refuse_unread(&request, reason, &mut self.out)
    }

    fn post(&mut self, bytes: &[u8]) {
        self.take(Endpoint::Raw, TOKEN, bytes);
    }

    /// The body of the response since the last call.
    fn response(&mut self) -> String {
        let rest = self.out.split_off(b"what was there".len());
        let text = String::from_utf8(rest).unwrap();
        text.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_string())
    }

    fn counter(&self, counter: Counter) -> f64 {
        self.handler.path.counters.number(counter)
    }

    /// Fields of a record: kind, size, account size, and signature offset.
    fn record(&self, number: usize) -> [f64; 4] {
        [0, 1, 2, 8].map(|at| self.field(number, at))
    }

    fn field(&self, number: usize, at: usize) -> f64 {
        self.events.entries.peek()[number].1[at]
    }

    /// Whether the record is completed.
    fn state(&self, number: usize) -> u64 {
        self.events.entries.peek()[number].0
    }

    /// Unread records.
    fn depth(&self) -> usize {
        self.events.entries.peek().len()
    }

    /// Has this many units of the ring unread.
    fn fill(&self, units: usize) {
        let entry = self.events.entries.claim(units - self.events.unread(), units);
        entry.unwrap().complete();
    }

    fn given(&self) -> usize {
        self.given.borrow().len()
    }
}

/// A legacy transaction with this signature byte, whose one instruction pays a tip.
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

fn signature(bytes: &[u8]) -> String {
    let mut text = [0; SIGNATURE_TEXT_MAX];
    let size = signature_text_at(bytes, 1, &mut text).unwrap();
    String::from_utf8(text[..size].to_vec()).unwrap()
}

/// The methods besides `getHealth` that need no key.
const KEYLESS: [(&str, &str); 2] = [("getVersion", r#"{"v":1}"#), ("getTipAccounts", "[7]")];

#[test]
fn transaction_is_sent_answered_with_its_signature_and_recorded() {
    let mut fixture = Fixture::usual();
    let bytes = good(1);
    fixture.post(&bytes);
    let body = format!(r#"{{"success":true,"signature":"{}"}}"#, signature(&bytes));
    assert_eq!(fixture.response(), body);
    assert_eq!(*fixture.given.borrow(), vec![bytes.clone()]);
    let [kind, size, account_size, _] = fixture.record(0);
    assert_eq!((kind, size, account_size), (1.0, bytes.len() as f64, ACCOUNT_SIZE));
    assert_eq!((fixture.state(0), fixture.field(0, 11)), (DONE, 3.0));
    let counted = [Counter::Requests, Counter::Accepted].map(|counter| fixture.counter(counter));
    assert_eq!((counted, fixture.depth()), ([1.0, 1.0], 1));
    assert!(fixture.other.query(&bytes, 1, 1_000_000_000));
}

#[test]
fn json_rpc_call_is_answered_with_its_id() {
    let mut fixture = Fixture::usual();
    let bytes = good(2);
    let text = base64(&bytes);
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":"a1","method":"sendTransaction","params":["{text}",{{"encoding":"base64"}}]}}"#
    );
    fixture.take(Endpoint::JsonRpc, TOKEN, call.as_bytes());
    let body = format!(r#"{{"jsonrpc":"2.0","result":"{}","id":"a1"}}"#, signature(&bytes));
    assert_eq!(fixture.response(), body);
    assert_eq!(*fixture.given.borrow(), [bytes]);
}

#[test]
fn json_rpc_call_in_an_unusual_form_is_answered() {
    let mut fixture = Fixture::usual();
    let bytes = good(2);
    let text = base64(&bytes);
    let call = format!(
        r#"{{"method":"send\u0054ransaction","params":["{text}",null],"id":1.50,"jsonrpc":"2.0"}}"#
    );
    fixture.take(Endpoint::JsonRpc, TOKEN, call.as_bytes());
    let body = format!(r#"{{"jsonrpc":"2.0","result":"{}","id":1.50}}"#, signature(&bytes));
    assert_eq!(fixture.response(), body);
    let health = r#"{"jsonrpc":"2.0","id":1,"method":"getHealth","params":{}}"#;
    fixture.take(Endpoint::JsonRpc, TOKEN, health.as_bytes());
    assert_eq!(fixture.response(), r#"{"jsonrpc":"2.0","result":"ok","id":1}"#);
    assert_eq!(
        (fixture.counter(Counter::Requests), fixture.counter(Counter::Accepted)),
        (2.0, 1.0)
    );
    assert_eq!((fixture.given(), fixture.depth()), (1, 1));
}

#[test]
fn batch_is_answered_in_order_and_each_further_call_is_charged() {
    let mut fixture = Fixture::new(4.0);
    let (first, poor) = (good(1), transaction(2, 999));
    let send = |id: u32, bytes: &[u8]| {
        let text = base64(bytes);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"sendTransaction","params":["{text}"]}}"#)
    };
    let health = r#"{"jsonrpc":"2.0","id":"h","method":"getHealth"}"#;
    let calls = [send(1, &first), send(2, &poor), health.into(), send(4, &first), send(5, &first)];
    let body = format!("[{}]", calls.join(","));
    fixture.take(Endpoint::JsonRpc, TOKEN, body.as_bytes());
    let response = fixture.response();
    let accepted =
        |id: u32| format!(r#"{{"jsonrpc":"2.0","result":"{}","id":{id}}}"#, signature(&first));
    let poor = r#",{"jsonrpc":"2.0","error":{"code":-32602,"message":"a tip of 999 lamports"#;
    assert!(response.starts_with(&format!("[{}{poor}", accepted(1))), "{response}");
    let ok = r#","id":2},{"jsonrpc":"2.0","result":"ok","id":"h"},"#;
    assert!(response.contains(&format!("{ok}{}", accepted(4))), "{response}");
    // The clock of this test gives one more request per second at most.
    assert!(response.contains(r#"{"jsonrpc":"2.0","error":{"code":-32005,"#), "{response}");
    assert!(response.ends_with(r#","id":5}]"#), "{response}");
    let counted = [Counter::Requests, Counter::Accepted].map(|counter| fixture.counter(counter));
    assert_eq!((counted, fixture.given(), fixture.depth()), ([1.0, 2.0], 1, 4));
    let each = (body.len() as f64 / 5.0).round();
    assert_eq!([0, 1, 2, 3].map(|number| fixture.field(number, 0)), [1.0, 3.0, 2.0, 3.0]);
    assert_eq!([0, 1, 2, 3].map(|number| fixture.field(number, 6)), [each; 4]);
}

#[test]
fn each_call_of_a_batch_is_answered_and_recorded_once_whatever_becomes_of_the_next() {
    let mut fixture = Fixture::new(5.0);
    // The last leader's connection ends after the first transaction, and its queue after the next.
    fixture.ends_after.set(1);
    let call = |number: u8| {
        let text = base64(&good(number));
        format!(
            r#"{{"jsonrpc":"2.0","id":{number},"method":"sendTransaction","params":["{text}"]}}"#
        )
    };
    assert_eq!(fixture.other.reserve(&good(3), 1, 1_000_000_000), Reservation::New);
    let body = format!("[{},{},{}]", call(1), call(2), call(3));
    fixture.take(Endpoint::JsonRpc, TOKEN, body.as_bytes());
    let response = fixture.response();
    let parts: Vec<&str> = response.split(r#"{"jsonrpc""#).skip(1).collect();
    assert!(parts[0].contains(&signature(&good(1))), "{response}");
    assert!(parts[1].contains(r#""reason":"no_leader""#), "{response}");
    assert!(parts[2].contains("another thread is sending this transaction"), "{response}");
    // Sent; published and void, refused; refused.
    let kinds = [0, 2, 3].map(|number| fixture.field(number, 0));
    assert_eq!((kinds, fixture.state(1), fixture.depth()), ([1.0, 3.0, 3.0], VOID, 4));
    assert_eq!((fixture.counter(Counter::Proxied), fixture.given()), (0.0, 2));
}

/// A JSON-RPC call without parameters.
fn call_of(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#)
}

/// A JSON-RPC call that submits.
fn send_of(bytes: &[u8]) -> String {
    let text = base64(bytes);
    format!(r#"{{"jsonrpc":"2.0","id":2,"method":"sendTransaction","params":["{text}"]}}"#)
}

/// The response to `send_of`.
fn sent(bytes: &[u8]) -> String {
    format!(r#"{{"jsonrpc":"2.0","result":"{}","id":2}}"#, signature(bytes))
}

const HEALTH: &str = r#"{"jsonrpc":"2.0","result":"ok","id":1}"#;
const UNHEALTHY: &str = r#"{"jsonrpc":"2.0","error":{"code":-32005,"message":"Node is unhealthy","data":{"numSlotsBehind":null}},"id":1}"#;

#[test]
fn edge_that_drains_answers_that_it_is_unhealthy_and_accepts_work() {
    let mut fixture = Fixture::new(7.0);
    let health = call_of("getHealth");
    let escaped = health.replace("getH", "get\\u0048");
    let (bytes, call) = (good(1), send_of(&good(1)));
    fixture.drain = Drain::Announced;
    for (body, response) in [
        (health.clone(), UNHEALTHY.to_string()),
        (escaped.clone(), UNHEALTHY.to_string()),
        (format!("[{call},{escaped}]"), format!("[{},{UNHEALTHY}]", sent(&bytes))),
        (format!("[{health},{call}]"), format!("[{UNHEALTHY},{}]", sent(&bytes))),
    ] {
        fixture.take(Endpoint::JsonRpc, TOKEN, body.as_bytes());
        assert_eq!(fixture.response(), response);
    }
    fixture.take(Endpoint::JsonRpc, b"", health.as_bytes());
    assert_eq!(fixture.response(), UNHEALTHY);
    assert_eq!((fixture.given(), fixture.counter(Counter::Requests)), (1, 5.0));
}

#[test]
fn edge_that_refuses_work_answers_small_bodies_that_need_no_key() {
    let mut fixture = Fixture::new(1.0);
    fixture.drain = Drain::Refusing;
    for (body, response) in [
        (call_of("getHealth"), UNHEALTHY),
        (call_of("getTipAccounts"), r#"{"jsonrpc":"2.0","result":[7],"id":1}"#),
    ] {
        // A key does not matter, and is not charged.
        for token in [b"".as_slice(), TOKEN] {
            fixture.take(Endpoint::JsonRpc, token, body.as_bytes());
            assert_eq!(fixture.response(), response);
        }
    }
    for body in [call_of("sendTransaction"), "no JSON".into(), call_of("other")] {
        fixture.take(Endpoint::JsonRpc, TOKEN, body.as_bytes());
        assert!(fixture.response().contains("this edge is draining"));
    }
    assert_eq!((fixture.given(), fixture.depth()), (0, 0));
    fixture.drain = Drain::None;
    fixture.post(&good(1));
    assert_eq!(fixture.given(), 1);
}

#[test]
fn method_that_needs_no_key_is_answered_with_its_result_with_and_without_a_key() {
    let mut fixture = Fixture::new(5.0);
    let (bytes, call) = (good(1), send_of(&good(1)));
    for (method, json) in KEYLESS {
        let other = call_of(method);
        let result = format!(r#"{{"jsonrpc":"2.0","result":{json},"id":1}}"#);
        for token in [b"".as_slice(), b"another key, unknown"] {
            let batch = format!("[{},{other}]", call_of("getHealth"));
            for (body, response) in
                [(other.clone(), result.clone()), (batch, format!("[{HEALTH},{result}]"))]
            {
                fixture.take(Endpoint::JsonRpc, token, body.as_bytes());
                assert_eq!(fixture.response(), response);
            }
            for (endpoint, body) in
                [(Endpoint::JsonRpc, format!("[{other},{call}]")), (Endpoint::Raw, other.clone())]
            {
                fixture.take(endpoint, token, body.as_bytes());
                assert!(fixture.response().contains("API key"));
            }
        }
        let mixed = format!("[{call},{other}]");
        fixture.take(Endpoint::JsonRpc, TOKEN, mixed.as_bytes());
        assert_eq!(fixture.response(), format!("[{},{result}]", sent(&bytes)));
    }
    assert_eq!((fixture.given(), fixture.counter(Counter::Proxied)), (1, 0.0));
}

#[test]
fn call_of_a_method_without_a_key_that_is_malformed_is_refused_for_its_form() {
    let mut fixture = Fixture::usual();
    let call = call_of("getVersion").replace("2.0", "1.0");
    fixture.take(Endpoint::JsonRpc, b"", call.as_bytes());
    let refused = fixture.response();
    assert!(refused.contains(r#"jsonrpc is \"1.0\""#), "{refused}");
    fixture.take(Endpoint::JsonRpc, b"", format!("[{call}]").as_bytes());
    assert_eq!(fixture.response(), format!("[{refused}]"));
    assert_eq!((fixture.counter(Counter::Requests), fixture.depth()), (2.0, 0));
}

#[test]
fn text_is_decoded_or_refused_for_what_it_is() {
    let mut fixture = Fixture::new(6.0);
    let bytes = good(1);
    let text = format!("{}\r\n", base64(&bytes));
    for body in [text.as_bytes(), &bytes] {
        fixture.take(Endpoint::Text, TOKEN, body);
        assert!(fixture.response().contains(&format!(r#""signature":"{}""#, signature(&bytes))));
    }
    assert_eq!(fixture.given(), 1);
    let size = text.len() as f64;
    assert_eq!(fixture.field(0, 6), size);
    for (body, found) in [(format!("{text} "), "base64 text"), ("x".repeat(81), "base58 text")] {
        fixture.take(Endpoint::Text, TOKEN, body.as_bytes());
        let response = fixture.response();
        assert!(response.contains(found), "{response}");
    }
}

#[test]
fn duplicate_is_answered_and_not_sent() {
    let mut fixture = Fixture::usual();
    let bytes = good(1);
    fixture.post(&bytes);
    let first = fixture.response();
    fixture.post(&bytes);
    assert_eq!((fixture.response(), fixture.given(), fixture.depth()), (first, 1, 2));
    let [kind, _, account_size, offset] = fixture.record(1);
    assert_eq!((kind, account_size, offset), (2.0, ACCOUNT_SIZE, 1.0));
}

#[test]
fn transaction_that_another_thread_does_not_finish_sending_is_refused_as_overloaded() {
    let mut fixture = Fixture::usual();
    let bytes = good(1);
    assert_eq!(fixture.other.reserve(&bytes, 1, 1_000_000_000), Reservation::New);
    fixture.post(&bytes);
    assert!(fixture.response().contains("another thread is sending this transaction"));
    assert_eq!((fixture.given(), fixture.depth()), (0, 1));
    fixture.other.commit(&bytes, 1);
    fixture.post(&bytes);
    assert!(fixture.response().contains(&signature(&bytes)));
    assert_eq!((fixture.given(), fixture.depth()), (0, 2));
}

#[test]
fn transaction_that_another_thread_is_sending_is_awaited() {
    let mut fixture = Fixture::usual();
    let bytes = good(1);
    assert_eq!(fixture.other.reserve(&bytes, 1, 1_000_000_000), Reservation::New);
    std::thread::scope(|scope| {
        let (other, bytes) = (&fixture.other, &bytes);
        scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_micros(500));
            other.commit(bytes, 1);
        });
        let SubmitHandler { path, keys, sent, .. } = &mut fixture.handler;
        let key = keys.find(Digest::of(TOKEN)).unwrap();
        let meta = RequestMeta::keyed(&key, 1_000_000_000, 0);
        let outcome = loop {
            // The other thread may be slower than one turn's patience.
            match path.submit(bytes, &meta, sent) {
                Err(_) => path.inner.fan_out.end_turn(),
                Ok(signature) => break signature,
            }
        };
        assert_eq!(outcome.text(), signature(bytes).as_bytes());
    });
    assert_eq!(fixture.given(), 0);
}

#[test]
fn a_transaction_ranks_by_what_its_account_offers() {
    let mut fixture = Fixture::usual();
    fixture.post(&transaction(1, 5_000));
    let offer = Offer { account: ACCOUNT_NUMBER, lamports: 5_000.0 };
    assert_eq!(fixture.offers.take(), [offer]);
}

#[test]
fn full_ring_prevents_sending_and_its_transaction_is_refused_as_overloaded() {
    let mut fixture = Fixture::new(1e6);
    fixture.post(&good(1));
    fixture.response();
    fixture.fill(SUBMISSION_UNITS_MAX);
    // A duplicate has a record too.
    for number in [2, 1] {
        fixture.post(&good(number));
        assert!(fixture.response().contains("this edge has fallen behind in accounting"));
        fixture.handler.end_turn();
    }
    assert_eq!((fixture.counter(Counter::Proxied), fixture.given()), (0.0, 1));
    assert_eq!(fixture.handler.path.counters.rejections(Reason::Overloaded), 2.0);
    assert_eq!(fixture.other.reserve(&good(2), 1, 1_000_000_000), Reservation::New);
}

#[test]
fn panic_in_the_handler_is_answered_as_internal() {
    let mut fixture = Fixture::usual();
    fixture.is_broken.set(true);
    fixture.post(&good(1));
    assert!(fixture.response().contains(r#""reason":"internal""#));
    assert_eq!(fixture.state(0), VOID);
    assert_eq!(
        (fixture.counter(Counter::HandlerErrors), fixture.counter(Counter::Requests)),
        (1.0, 1.0)
    );
    fixture.is_broken.set(false);
    // Nothing of it is reserved.
    assert_eq!(fixture.other.reserve(&good(1), 1, 1_000_000_000), Reservation::New);
    fixture.post(&good(2));
}

#[test]
fn removed_key_is_refused_at_once() {
    let mut fixture = Fixture::usual();
    assert!(fixture.handler.has_key(TOKEN));
    assert!(fixture.handler.keys.remove(Digest::of(TOKEN)));
    assert!(!fixture.handler.has_key(TOKEN));
    fixture.post(&good(1));
    assert_eq!((fixture.depth(), fixture.given()), (0, 0));
}

#[test]
fn each_record_is_noted_for_the_main_thread() {
    let mut fixture = Fixture::usual();
    for bytes in [good(1), good(1), transaction(2, 999)] {
        fixture.post(&bytes);
    }
    assert_eq!(fixture.noted.take(), [false; 3]);
}

#[test]
fn event_loop_counts_become_the_threads_counters() {
    let mut fixture = Fixture::usual();
    fixture.handler.connections(5);
    fixture.handler.bodies_pending(2);
    for reason in [
        ClientCloseReason::TooMany,
        ClientCloseReason::Address,
        ClientCloseReason::Address,
        ClientCloseReason::ReadTimeout,
        ClientCloseReason::Evicted,
    ] {
        fixture.handler.connection_closed(reason);
    }
    fixture.handler.client_left();
    fixture.handler.overloaded();
    fixture.handler.proxied();
    fixture.handler.proxied();
    let counters = [
        Counter::Connections,
        Counter::RequestsOpen,
        Counter::ConnectionsRejected,
        Counter::ConnectionsEvicted,
        Counter::ConnectionsOverAddressLimit,
        Counter::ConnectionsReadTimeout,
        Counter::Aborted,
        Counter::Proxied,
    ];
    let counts = [5.0, 2.0, 1.0, 1.0, 2.0, 1.0, 1.0, 2.0];
    assert_eq!(counters.map(|counter| fixture.counter(counter)), counts);
    assert_eq!(fixture.handler.path.counters.rejections(Reason::Overloaded), 1.0);
    fixture.handler.idle();
    fixture.handler.idle();
    assert_eq!((fixture.status.state(), fixture.wakes.load(SeqCst)), (ThreadState::Idle as u8, 1));
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes(word);
        for index in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * index)) as usize & 63];
            text.push(if index > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    text
}
