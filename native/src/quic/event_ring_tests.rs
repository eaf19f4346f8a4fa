//! Event order and loss, and when the reader is woken.

use super::EventRing;
use crate::quic::event::{Kind, RECORD_FIELDS, Record};
use crate::quic::limits::{
    EVENT_UNITS, OUTCOMES_DELAY_NS_MAX, PEER_EVENTS_MAX, SUBMISSION_UNITS_MAX, UNITS_PER_WAKE,
};
use crate::sync::clock::NEVER_NS;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn record(tx: u64) -> Record {
    Record { kind: Kind::Sent, tx, peer: 1, tag: 2, reason: 0, at_ns: 3, rtt_us: 4, detail: 0 }
}

fn events() -> (EventRing, Arc<AtomicUsize>) {
    let wakes = Arc::new(AtomicUsize::new(0));
    let counted = wakes.clone();
    let waker = Box::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    (EventRing::new(waker), wakes)
}

#[test]
fn outcomes_have_room_besides_submissions_and_connections_besides_outcomes() {
    let (events, _) = events();
    let room = EVENT_UNITS - SUBMISSION_UNITS_MAX - PEER_EVENTS_MAX;
    assert_eq!(room, 65_536);
    assert!(events.entries.claim(SUBMISSION_UNITS_MAX, SUBMISSION_UNITS_MAX).is_some());
    assert!(events.entries.claim(1, SUBMISSION_UNITS_MAX).is_none());
    for tx in 0..=room as u64 {
        assert_eq!(events.lost(), 0);
        events.push(record(tx));
    }
    assert_eq!((events.lost(), events.unread()), (1, EVENT_UNITS - PEER_EVENTS_MAX));
    let closed = Record { kind: Kind::Closed, ..record(0) };
    (0..=PEER_EVENTS_MAX).for_each(|_| events.push(closed));
    assert_eq!((events.lost(), events.unread()), (2, EVENT_UNITS));
}

#[test]
fn events_are_read_in_the_order_in_which_they_were_written() {
    let (events, _) = events();
    let kinds = [Kind::Acked, Kind::Closed, Kind::Sent, Kind::Connected];
    kinds.into_iter().for_each(|kind| events.push(Record { kind, ..record(7) }));
    let mut out = [0.0; 8 * RECORD_FIELDS];
    assert_eq!((events.drain(&mut out), events.unread()), (4, 0));
    let read: Vec<_> = out.chunks(RECORD_FIELDS).map(|record| record[0] as u8).take(4).collect();
    assert_eq!(read, kinds.map(|kind| kind as u8));
    assert_eq!(out[1..RECORD_FIELDS], [7.0, 1.0, 2.0, 0.0, 3.0, 4.0, 0.0]);
}

#[test]
fn wakes_once_per_batch_and_never_for_an_empty_ring() {
    let (events, wakes) = events();
    events.wake();
    assert_eq!(wakes.load(Ordering::Relaxed), 0);
    events.push(record(1));
    events.wake();
    events.push(record(2));
    events.wake();
    assert_eq!(wakes.load(Ordering::Relaxed), 1);
    let mut out = [0.0; 8 * RECORD_FIELDS];
    assert_eq!(events.drain(&mut out), 2);
    events.push(record(3));
    events.wake();
    assert_eq!(wakes.load(Ordering::Relaxed), 2);
}

#[test]
fn submission_wakes_as_an_informational_event_or_at_once_if_it_is_urgent() {
    let (events, wakes) = events();
    let woken = || wakes.load(Ordering::Relaxed);
    let mut out = [0.0; RECORD_FIELDS];
    let write = || events.entries.claim(1, 1).unwrap().complete();
    write();
    events.note(3, false);
    events.wake_here();
    events.wake_due(3);
    assert_eq!((woken(), events.due_ns()), (0, 3 + OUTCOMES_DELAY_NS_MAX));
    events.wake_due(3 + OUTCOMES_DELAY_NS_MAX);
    assert_eq!((woken(), events.drain(&mut out)), (1, 1));
    write();
    events.note(4, true);
    events.wake_here();
    events.note(5, true);
    events.wake_here();
    assert_eq!((woken(), events.drain(&mut out)), (2, 1));
    // Nothing is left to read.
    events.wake();
    events.wake_here();
    assert_eq!((woken(), events.due_ns()), (2, NEVER_NS));
}

/// The batch ends before the record, or the record was written while the batch was read.
#[test]
fn record_to_act_on_that_a_batch_leaves_wakes_again() {
    let (events, wakes) = events();
    let woken = || wakes.load(Ordering::Relaxed);
    events.push(record(1));
    events.push(record(2));
    events.push(Record { kind: Kind::Failed, ..record(3) });
    events.wake_due(4);
    assert_eq!(woken(), 1);
    let mut out = [0.0; 2 * RECORD_FIELDS];
    assert_eq!((events.drain(&mut out), woken()), (2, 2));
    assert_eq!((events.drain(&mut out), woken()), (1, 2));
    // What comes after it only informs.
    events.push(record(4));
    events.push(record(5));
    events.push(record(6));
    events.wake_due(4);
    assert_eq!((events.drain(&mut out), events.unread(), woken()), (2, 1, 2));
    assert_eq!(events.due_ns(), 3 + OUTCOMES_DELAY_NS_MAX);
    assert_eq!((events.drain(&mut out), events.due_ns()), (1, NEVER_NS));
}

#[test]
fn end_of_a_record_to_act_on_stays_noted_if_an_earlier_one_is_noted_later() {
    let (events, wakes) = events();
    let failed = |tx| Record { kind: Kind::Failed, ..record(tx) };
    events.push(failed(1));
    events.push(failed(2));
    events.wake_due(4);
    // By a thread that was interrupted after it wrote the first.
    events.note_urgent(1);
    let mut out = [0.0; RECORD_FIELDS];
    assert_eq!((events.drain(&mut out), wakes.load(Ordering::Relaxed)), (1, 2));
}

#[test]
fn informational_records_wait_for_a_count_or_a_delay() {
    let (events, wakes) = events();
    let woken = || wakes.load(Ordering::Relaxed);
    events.push(record(1));
    events.wake_due(3);
    assert_eq!((woken(), events.due_ns()), (0, 3 + OUTCOMES_DELAY_NS_MAX));
    events.wake_due(3 + OUTCOMES_DELAY_NS_MAX);
    assert_eq!((woken(), events.due_ns()), (1, NEVER_NS));
    let mut out = [0.0; 512 * RECORD_FIELDS];
    assert_eq!(events.drain(&mut out), 1);
    events.push(Record { kind: Kind::Failed, ..record(2) });
    events.wake_due(4);
    assert_eq!((woken(), events.drain(&mut out)), (2, 1));
    for tx in 0..UNITS_PER_WAKE as u64 {
        assert_eq!(woken(), 2);
        events.push(record(tx));
        events.wake_due(4);
    }
    assert_eq!(woken(), 3);
}

#[test]
fn deliveries_that_had_to_wait_wake_immediately() {
    let (events, wakes) = events();
    let tell = |waited| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                super::mark_io_thread();
                events.push(Record { detail: waited, ..record(1) });
            });
        });
        events.wake_due(3);
        wakes.load(Ordering::Relaxed)
    };
    // The second only found another thread driving the connection.
    assert_eq!((tell(0), tell(1)), (0, 1));
    assert_eq!(events.drain(&mut [0.0; 8 * RECORD_FIELDS]), 2);
    // A sending thread knows itself what waits.
    events.push(Record { detail: 1, ..record(2) });
    events.wake_due(3);
    assert_eq!(wakes.load(Ordering::Relaxed), 1);
}

#[test]
fn a_record_drained_while_appended_leaves_no_deadline() {
    let (events, wakes) = events();
    let mut out = [0.0; 8 * RECORD_FIELDS];
    // As if the reader drained a record between its append and the note of its time, or a record
    // arrived during a drain.
    events.drain(&mut out);
    events.since_ns.store(3, Ordering::Relaxed);
    assert_eq!(events.due_ns(), 3 + OUTCOMES_DELAY_NS_MAX);
    events.wake_due(3 + OUTCOMES_DELAY_NS_MAX);
    assert_eq!((wakes.load(Ordering::Relaxed), events.due_ns()), (0, NEVER_NS));
    events.push(record(1));
    assert_eq!(events.due_ns(), 3 + OUTCOMES_DELAY_NS_MAX);
}

/// One thread calls `wake_due` continuously, the other appends records.
#[test]
fn a_record_appended_during_an_empty_check_is_reported() {
    let (events, wakes) = events();
    let (events, done) = (&events, &AtomicBool::new(false));
    let mut out = [0.0; 8 * RECORD_FIELDS];
    let mut unnotified = 0;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                events.wake_due(NEVER_NS - 1);
            }
        });
        for tx in 1..=ROUNDS {
            // As after a drain that read a record while it was being appended.
            events.since_ns.store(tx, Ordering::Relaxed);
            (0..tx % 64).for_each(|_| std::hint::spin_loop());
            events.push(record(tx));
            let by = Instant::now() + Duration::from_secs(60);
            while wakes.load(Ordering::Relaxed) < tx as usize && Instant::now() < by {
                std::thread::yield_now();
            }
            unnotified += u64::from(wakes.swap(tx as usize, Ordering::Relaxed) != tx as usize);
            events.drain(&mut out);
            if unnotified > 0 {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(unnotified, 0);
}

const ROUNDS: u64 = 5_000;

#[test]
fn a_buffer_too_small_for_a_record_receives_none() {
    let (events, _) = events();
    events.push(record(1));
    assert_eq!(events.drain(&mut [0.0; RECORD_FIELDS - 1]), 0);
    assert_eq!(events.unread(), 1);
}
