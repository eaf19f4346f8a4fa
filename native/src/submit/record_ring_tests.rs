//! Records are what JavaScript reads, in order, up to the ring's capacity.

use std::sync::{Arc, LazyLock};

use sha2::{Digest, Sha256};

use super::*;
use crate::submit::key_table::tests::{digest_of, table_of, terms};
use crate::submit::key_table::{KeyTerms, PlanTerms};
use crate::submit::rate_limit::Rate;

/// As the reader leaves a slot.
const CLAIMED: u64 = 0;
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

/// The main thread's side.
struct Reader {
    memory: Memory,
    slots: usize,
}

impl Reader {
    fn cursor(&self, at: usize) -> AtomicU32Slice {
        self.memory.atomics(at, 1).unwrap()
    }

    /// Sets both cursors to this number.
    fn start_at(&self, number: u32) {
        for at in [0, LINE_BYTES] {
            self.cursor(at)[0].store(number, SeqCst);
        }
    }

    fn has_any(&self) -> bool {
        self.cursor(0)[0].load(SeqCst) != self.cursor(LINE_BYTES)[0].load(SeqCst)
    }

    fn oldest_state(&self) -> u64 {
        let slot = self.cursor(LINE_BYTES)[0].load(SeqCst) as usize % self.slots;
        self.memory.atomics::<AtomicU64>(SLOTS_AT + slot * SLOT_BYTES + 8 * STATE, 1).unwrap()[0]
            .load(SeqCst)
    }

    /// The numbers and the transaction of the oldest record; frees its slot.
    fn read(&self) -> (Vec<f64>, Vec<u8>) {
        assert!(self.has_any());
        let tail = self.cursor(LINE_BYTES);
        let at = SLOTS_AT + (tail[0].load(SeqCst) as usize % self.slots) * SLOT_BYTES;
        let numbers = self.memory.atomics::<AtomicU64>(at, HEAD_NUMBERS).unwrap();
        let numbers: Vec<f64> =
            numbers.iter().map(|cell| f64::from_bits(cell.load(Relaxed))).collect();
        let bytes = self.memory.atomics::<AtomicU8>(at + BYTES_AT, numbers[1] as usize).unwrap();
        let bytes = bytes.iter().map(|cell| cell.load(Relaxed)).collect();
        let state = self.memory.atomics::<AtomicU64>(at + 8 * STATE, 1).unwrap();
        state[0].store(CLAIMED, SeqCst);
        tail[0].fetch_add(1, SeqCst);
        (numbers, bytes)
    }

    fn digest(&self) -> String {
        let cells = self.memory.atomics::<AtomicU8>(0, self.memory.size()).unwrap();
        let bytes: Vec<u8> = cells.iter().map(|cell| cell.load(Relaxed)).collect();
        Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

type AtomicU32Slice = AtomicSlice<AtomicU32>;

fn ring(slots: usize) -> (Records, Reader) {
    let memory = Memory::fresh(ring_bytes(slots));
    (Records::of(&memory, slots).unwrap(), Reader { memory, slots })
}

#[test]
fn sent_record_has_all_fields() {
    let (mut records, reader) = ring(4);
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
    let (numbers, transaction) = reader.read();
    assert_eq!(transaction, bytes);
    let record = [1.0, 4096.0, 7.0, 1e12 + 1.0, 1e12 + 2.0, 1e12 + 3.0, 412.0, 3.0];
    assert_eq!(numbers[..8], record);
    // The number, the number of targets, the status as a positive number, and whether it was
    // corked.
    assert_eq!(numbers[9..12], [41.0, 3.0, 2_147_483_653.0]);
    assert_eq!(numbers[13], 1.0);
    assert_eq!(numbers[14..25], VALIDATION_SAMPLE);
    let peer = f64::from(u32::MAX);
    assert_eq!(
        (numbers[25], numbers[26].to_bits(), &numbers[27..31]),
        (1.0, DONE, &[peer, peer, peer, 0.0][..])
    );
}

#[test]
fn duplicate_record_has_offset_and_retries() {
    let (mut records, reader) = ring(4);
    assert!(records.duplicate(&SubmissionRecord { max_retries: None, ..record(&[1, 2]) }, 65));
    assert!(records.duplicate(&SubmissionRecord { max_retries: Some(0), ..record(&[]) }, 1));
    let (numbers, bytes) = reader.read();
    assert_eq!((numbers[0], numbers[7], numbers[8], bytes), (2.0, -1.0, 65.0, vec![1, 2]));
    let (numbers, bytes) = reader.read();
    assert_eq!((numbers[0], numbers[7], numbers[8], bytes), (2.0, 0.0, 1.0, vec![]));
}

#[test]
fn ring_accepts_records_until_full_at_any_cursor_position() {
    for start in [0, u32::MAX, i32::MAX as u32] {
        let (mut records, reader) = ring(2);
        reader.start_at(start);
        for n in 0..2 {
            assert!(records.has_room());
            assert!(records.duplicate(&record(&[n]), 1));
        }
        assert_eq!((records.has_room(), records.depth()), (false, 2));
        let before = reader.digest();
        assert!(!records.duplicate(&record(&[9]), 1));
        assert!(!sent_on(&mut records, &record(&[9]), VALIDATION_SAMPLE, &FanOutResult::default()));
        assert_eq!(reader.digest(), before);
        assert_eq!(reader.read().1, [0]);
        assert!(records.has_room());
        assert!(records.duplicate(&record(&[2]), 1));
        assert_eq!([reader.read().1, reader.read().1], [[1], [2]]);
        assert_eq!(records.depth(), 0);
    }
}

#[test]
fn records_of_several_threads_are_all_there_and_those_of_each_in_order() {
    const EACH: u8 = 20;
    let memory = Memory::fresh(ring_bytes(64));
    let reader = Reader { memory: memory.clone(), slots: 64 };
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let mut records = Records::of(&memory, 64).unwrap();
            scope.spawn(move || {
                for n in 0..EACH {
                    assert!(records.duplicate(&record(&[thread, n]), 1));
                }
            });
        }
    });
    let mut next = [0; 3];
    for _ in 0..3 * EACH {
        assert_eq!(reader.oldest_state(), DONE);
        let bytes = reader.read().1;
        let expected = &mut next[usize::from(bytes[0])];
        assert_eq!(bytes[1], *expected);
        *expected += 1;
    }
    assert_eq!((next, reader.has_any()), ([EACH; 3], false));
}

#[test]
fn transaction_that_the_reader_gave_up_waiting_for_touches_no_later_record() {
    let (mut records, reader) = ring(1);
    let sent = FanOutResult { count: 1, status: 1 << 16, ..FanOutResult::default() };
    assert!(records.submitted(&record(&[1]), VALIDATION_SAMPLE, &sent));
    reader.read();
    assert!(records.void());
    assert_eq!(reader.oldest_state(), CLAIMED);
    assert!(records.duplicate(&record(&[2]), 1));
    assert_eq!((reader.oldest_state(), reader.read().1), (DONE, vec![2]));
}

#[test]
fn transaction_that_the_reader_gave_up_waiting_for_touches_no_later_one_that_is_being_sent() {
    let memory = Memory::fresh(ring_bytes(1));
    let reader = Reader { memory: memory.clone(), slots: 1 };
    let [mut late, mut other] = [0; 2].map(|_| Records::of(&memory, 1).unwrap());
    let sent = FanOutResult { count: 1, status: 1 << 16, ..FanOutResult::default() };
    for complete in [true, false] {
        assert!(late.submitted(&record(&[1]), VALIDATION_SAMPLE, &sent));
        reader.read();
        // Another thread has the slot now.
        assert!(other.submitted(&record(&[2]), VALIDATION_SAMPLE, &sent));
        if complete {
            late.complete(77, &FanOutResult { status: 1, ..sent });
        } else {
            late.void();
        }
        assert_eq!(reader.oldest_state() as u32, PENDING as u32);
        other.complete(78, &sent);
        let (numbers, _) = reader.read();
        assert_eq!((numbers[5], numbers[11]), (78.0, 65_536.0));
    }
}

#[test]
fn oversized_transaction_is_not_written() {
    let (mut records, reader) = ring(2);
    let before = reader.digest();
    assert!(!records.duplicate(&record(&[1; TRANSACTION_BYTES_MAX + 1]), 1));
    assert_eq!((reader.digest(), records.depth()), (before, 0));
}

#[test]
fn transaction_is_published_as_pending_and_completed_or_voided_once() {
    let (mut records, reader) = ring(4);
    let sent = FanOutResult { count: 1, status: 1 << 16, ..FanOutResult::default() };
    let result = FanOutResult { status: 1, corked: true, ..sent };
    for complete in [true, false] {
        assert!(records.submitted(&record(&[1]), VALIDATION_SAMPLE, &sent));
        assert!(reader.has_any());
        assert_eq!(reader.oldest_state() as u32, PENDING as u32);
        if complete {
            records.complete(77, &result);
        } else {
            assert!(records.void());
        }
        // Once only.
        records.complete(78, &sent);
        assert!(!records.void());
        let (numbers, _) = reader.read();
        let expected = if complete { (77.0, 1.0, DONE) } else { (1e12 + 3.0, 65_536.0, VOID) };
        assert_eq!((numbers[5], numbers[11], numbers[STATE].to_bits()), expected);
    }
}

#[test]
fn excess_stream_count_is_clamped() {
    let (mut records, reader) = ring(2);
    let sent = FanOutResult { count: 17, peers: [5; DELIVERIES_MAX], ..FanOutResult::default() };
    assert!(sent_on(&mut records, &record(&[1]), VALIDATION_SAMPLE, &sent));
    let (numbers, bytes) = reader.read();
    assert_eq!((numbers[10], numbers[42], bytes), (16.0, 5.0, vec![1]));
}

#[test]
fn inconsistent_cursors_leave_no_free_slot() {
    let (mut records, reader) = ring(2);
    for [head, tail] in [[0, 1], [3, 0], [0, u32::MAX - 2], [1 << 31, 0]] {
        reader.cursor(0)[0].store(head, SeqCst);
        reader.cursor(LINE_BYTES)[0].store(tail, SeqCst);
        assert!(!records.has_room());
        assert!(!records.duplicate(&record(&[1]), 1));
    }
}

#[test]
fn memory_of_another_size_is_rejected() {
    // The size of the memory that `src/engine/record-ring.ts` creates.
    assert_eq!(RECORDS_BYTES, 9_519_232);
    assert!(Records::open(&Memory::fresh(RECORDS_BYTES)).is_some());
    assert!(Records::open(&Memory::fresh(RECORDS_BYTES - 8)).is_none());
    assert!(Records::open(&Memory::fresh(RECORDS_BYTES + 8)).is_none());
    assert!(Records::of(&Memory::fresh(ring_bytes(3)), 3).is_none());
}

/// The digest is that of the memory after the same calls of the writer in
/// `src/engine/record-ring.ts`, with cursors that start at the largest 31-bit number, and a
/// reader that read the first record.
#[test]
fn memory_equals_javascripts_to_the_byte() {
    let (mut records, reader) = ring(2);
    reader.start_at(i32::MAX as u32);
    let bytes: Vec<u8> = (0..TRANSACTION_BYTES_MAX).map(|at| (at * 7) as u8).collect();
    let peers = std::array::from_fn(|target| 0xffff_fff0 + target as u32);
    let sent = FanOutResult { number: 41, count: 16, status: 0x8001_7ffe, corked: true, peers };
    assert!(sent_on(&mut records, &record(&bytes), VALIDATION_SAMPLE, &sent));
    let repetition = SubmissionRecord { max_retries: None, ..record(&bytes[..100]) };
    assert!(records.duplicate(&repetition, 1));
    reader.read();
    let sent = FanOutResult { number: 42, count: 2, status: 2, corked: false, peers };
    assert!(sent_on(
        &mut records,
        &SubmissionRecord { submitter: Submitter::Key(&key("")), ..record(&bytes[3..300]) },
        VALIDATION_SAMPLE,
        &sent
    ));
    let golden = "5cce3ae3bb0ccf989440996bf2ff459bad4ca7df14724c96d0c2ea2e6b7a3149";
    assert_eq!(reader.digest(), golden);
}
