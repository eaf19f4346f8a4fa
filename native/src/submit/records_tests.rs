//! Records are what JavaScript reads, up to their part of the ring.

use std::sync::{Arc, LazyLock};

use sha2::{Digest, Sha256};

use super::*;
use crate::submit::key_table::tests::{digest_of, table_of, terms};
use crate::submit::key_table::{KeyTerms, PlanTerms};
use crate::submit::rate_limit::Rate;
use crate::sync::entry_ring::tests::{DONE, PENDING, VOID};

const TOKEN: &[u8] = b"0123456789abcdef";

const VALIDATION_SAMPLE: [f64; VALIDATION_NUMBERS] =
    [1.0, -1.0, 1.0, 2.0, 129.0, 200.0, 134.0, 170.0, 1.0, 1_000_000.0, 5_000.0];

fn key(account: &str) -> Arc<Key> {
    let rate = Rate { rate_per_second: 1.0, burst: 1.0 };
    let table = table_of(rate, false, &[]);
    assert!(table.set_plan(1, PlanTerms { name: "Pro".into(), rate, is_shared: false }));
    assert!(table.put(KeyTerms { plan: 1, ..terms(TOKEN, account) }));
    table.find(digest_of(TOKEN)).unwrap()
}

fn record(bytes: &[u8]) -> SubmissionRecord<'_> {
    static KEY: LazyLock<Arc<Key>> = LazyLock::new(|| key("größe"));
    SubmissionRecord {
        bytes,
        submitter: Submitter::Key(&KEY),
        received_ns: 1_000_000_000_001,
        decoded_ns: 1_000_000_000_002,
        sent_ns: 1_000_000_000_003,
        body_bytes: 412,
        max_retries: Some(3),
    }
}

/// Publishes and completes the record of a transaction.
fn sent_on(
    records: &mut Records,
    record: &SubmissionRecord,
    validation: [f64; VALIDATION_NUMBERS],
    sent: &FanOutResult,
) -> bool {
    let pending = FanOutResult { status: 0, ..*sent };
    let is_written = records.submitted(record, validation, &pending);
    records.complete(record.sent_ns, sent);
    is_written
}

fn set_up() -> (Records, Arc<EventRing>) {
    let events = Arc::new(EventRing::new(Box::new(|| {})));
    (Records::new(events.clone()), events)
}

/// The numbers and the bytes of the oldest record, which is freed.
fn read(events: &EventRing) -> (Vec<f64>, Vec<u8>) {
    let units = events.entries.peek()[0].1.len() / UNIT_WORDS;
    let mut out = vec![0.0; units * UNIT_WORDS];
    assert_eq!(events.drain(&mut out), units);
    let size = out[1] as usize;
    assert_eq!(out[UNITS], units as f64);
    let bytes = out[BYTES_AT..].iter().flat_map(|word| word.to_bits().to_le_bytes());
    let bytes = bytes.take(size).collect();
    out.truncate(KEY_ID_AT);
    (out, bytes)
}

#[test]
fn sent_record_has_all_fields() {
    let (mut records, events) = set_up();
    let bytes: Vec<u8> = (0..TRANSACTION_BYTES_MAX).map(|at| at as u8).collect();
    let mut sent = FanOutResult {
        number: 41,
        count: 3,
        status: 1 << 31 | 0b101,
        corked: true,
        ..FanOutResult::default()
    };
    sent.peers = [u32::MAX; DELIVERIES_MAX];
    assert!(sent_on(&mut records, &record(&bytes), VALIDATION_SAMPLE, &sent));
    let (numbers, transaction) = read(&events);
    assert_eq!(transaction, bytes);
    let record = [1.0, 4096.0, 7.0, 1e12 + 1.0, 1e12 + 2.0, 1e12 + 3.0, 412.0, 3.0];
    assert_eq!(numbers[..8], record);
    // The number, the number of targets, the status as a positive number, and whether it was
    // corked.
    assert_eq!(numbers[9..12], [41.0, 3.0, 2_147_483_653.0]);
    assert_eq!(numbers[13], 1.0);
    assert_eq!(numbers[14..25], VALIDATION_SAMPLE);
    let peer = f64::from(u32::MAX);
    assert_eq!((numbers[25], &numbers[27..31]), (1.0, &[peer, peer, peer, 0.0][..]));
}

#[test]
fn duplicate_record_has_offset_and_retries() {
    let (records, events) = set_up();
    assert!(records.duplicate(&SubmissionRecord { max_retries: None, ..record(&[1, 2]) }, 65));
    assert!(records.duplicate(&SubmissionRecord { max_retries: Some(0), ..record(&[]) }, 1));
    let (numbers, bytes) = read(&events);
    assert_eq!((numbers[0], numbers[7], numbers[8], bytes), (2.0, -1.0, 65.0, vec![1, 2]));
    let (numbers, bytes) = read(&events);
    assert_eq!((numbers[0], numbers[7], numbers[8], bytes), (2.0, 0.0, 1.0, vec![]));
}

#[test]
fn records_are_accepted_until_their_part_of_the_ring_is_full() {
    let (mut records, events) = set_up();
    let bytes = [0; TRANSACTION_BYTES_MAX];
    let count = SUBMISSION_UNITS_MAX / SUBMISSION_UNITS_EACH;
    for _ in 0..count {
        assert!(records.has_room());
        assert!(records.duplicate(&record(&bytes), 1));
    }
    assert!(!records.has_room() && !records.duplicate(&record(&bytes), 1));
    assert!(!sent_on(&mut records, &record(&bytes), VALIDATION_SAMPLE, &FanOutResult::default()));
    assert_eq!(records.unread(), count * SUBMISSION_UNITS_EACH);
    read(&events);
    assert!(records.has_room());
    assert!(records.duplicate(&record(&bytes), 1));
}

#[test]
fn rejections_use_half_of_it() {
    let (records, _) = set_up();
    let refused = || records.rejected(&record(&[0; 10_000]), Reason::NoLeader, None);
    while refused() {}
    assert_eq!(
        records.unread(),
        SUBMISSION_UNITS_MAX / 2 / SUBMISSION_UNITS_EACH * SUBMISSION_UNITS_EACH
    );
    assert!(!records.violated(&record(&[0; 10_000])));
    assert!(records.has_room() && records.duplicate(&record(&[1]), 1));
}

#[test]
fn oversized_transaction_is_not_written() {
    let (records, _) = set_up();
    assert!(!records.duplicate(&record(&[1; TRANSACTION_BYTES_MAX + 1]), 1));
    assert_eq!(records.unread(), 0);
}

#[test]
fn transaction_is_published_as_pending_and_completed_or_voided_once() {
    let (mut records, events) = set_up();
    let sent = FanOutResult { count: 1, status: 1 << 16, ..FanOutResult::default() };
    let result = FanOutResult { status: 1, corked: true, ..sent };
    for complete in [true, false] {
        assert!(records.submitted(&record(&[1]), VALIDATION_SAMPLE, &sent));
        assert_eq!(events.entries.peek()[0].0, PENDING);
        if complete {
            records.complete(77, &result);
        } else {
            assert!(records.void());
        }
        // Once only.
        records.complete(78, &sent);
        assert!(!records.void());
        let (state, numbers) = events.entries.peek().remove(0);
        let expected = if complete { (DONE, 77.0, 1.0) } else { (VOID, 1e12 + 3.0, 65_536.0) };
        assert_eq!((state, numbers[5], numbers[11]), expected);
        events.drain(&mut [0.0; UNIT_WORDS * SUBMISSION_UNITS_EACH]);
    }
}

#[test]
fn excess_stream_count_is_clamped() {
    let (mut records, events) = set_up();
    let sent = FanOutResult { count: 17, peers: [5; DELIVERIES_MAX], ..FanOutResult::default() };
    assert!(sent_on(&mut records, &record(&[1]), VALIDATION_SAMPLE, &sent));
    let (numbers, bytes) = read(&events);
    assert_eq!((numbers[10], numbers[42], bytes), (16.0, 5.0, vec![1]));
}

/// The digest is that of what the writer in `test/support/record-writer.ts` makes of the same
/// records.
#[test]
fn records_equal_javascripts_to_the_byte() {
    let (mut records, events) = set_up();
    let bytes: Vec<u8> = (0..TRANSACTION_BYTES_MAX).map(|at| (at * 7) as u8).collect();
    let peers = std::array::from_fn(|target| 0xffff_fff0 + target as u32);
    let sent = FanOutResult { number: 41, count: 16, status: 0x8001_7ffe, corked: true, peers };
    assert!(sent_on(&mut records, &record(&bytes), VALIDATION_SAMPLE, &sent));
    let repetition = SubmissionRecord { max_retries: None, ..record(&bytes[..100]) };
    assert!(records.duplicate(&repetition, 1));
    let sent = FanOutResult { number: 42, count: 2, status: 2, corked: false, peers };
    assert!(sent_on(
        &mut records,
        &SubmissionRecord { submitter: Submitter::Key(&key("")), ..record(&bytes[3..300]) },
        VALIDATION_SAMPLE,
        &sent
    ));
    let mut out = vec![0.0; 2 * SUBMISSION_UNITS_EACH * UNIT_WORDS];
    assert_eq!(events.drain(&mut out), 73 + 11 + 14);
    let bytes: Vec<u8> = out.iter().flat_map(|word| word.to_bits().to_le_bytes()).collect();
    let digest: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let golden = "fc5d1fc871e8f5abbde4633489a47753b2ef790fedbb382dda594d224135e742";
    assert_eq!(digest, golden);
}
