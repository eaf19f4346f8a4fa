//! What is read of the table, also while it is written and when it is inconsistent, and that no
//! tag is allocated twice.

use std::sync::Barrier;
use std::sync::atomic::AtomicBool;

use super::*;

/// The sender's side, as `SharedTargetTable` of `src/send/native/shared-target-table.ts` writes it.
pub(crate) struct Publisher {
    pub(crate) words: AtomicSlice<AtomicU32>,
    pub(crate) engine: u32,
    version: u32,
}

impl Publisher {
    pub(crate) fn new(memory: &Memory) -> Self {
        Self { words: memory.atomics(0, TARGET_TABLE_BYTES / 4).unwrap(), engine: 3, version: 0 }
    }

    /// Publishes targets, each a connection handle and a cell.
    pub(crate) fn publish(
        &mut self,
        targets: &[(u32, u32)],
        ttl_ms: u32,
        bytes_max: u32,
        excluded: u32,
    ) -> u32 {
        self.open(false);
        self.version += 1;
        self.words[0].fetch_add(1, SeqCst);
        let count = u32::try_from(targets.len()).unwrap();
        let numbers = [self.engine, self.version, count, ttl_ms, bytes_max, excluded];
        for (word, number) in self.words[3..].iter().zip(numbers) {
            word.store(number, SeqCst);
        }
        for (target, &(peer, cell)) in targets.iter().enumerate() {
            self.words[9 + target].store(peer, SeqCst);
            self.words[25 + target].store(cell, SeqCst);
        }
        self.words[0].fetch_add(1, SeqCst);
        self.version
    }

    pub(crate) fn open(&self, may: bool) {
        self.words[1].store(u32::from(may), SeqCst);
    }
}

pub(crate) fn set_up() -> (Memory, Publisher, SharedTargetTable) {
    let memory = Memory::fresh(TARGET_TABLE_BYTES);
    let (publisher, targets) = (Publisher::new(&memory), SharedTargetTable::open(&memory).unwrap());
    (memory, publisher, targets)
}

#[test]
fn last_published_table_is_read() {
    let (_, mut publisher, mut targets) = set_up();
    assert!(!targets.is_open() && targets.refresh());
    assert_eq!(*targets.table(), Targets::default());
    let version = publisher.publish(&[(u32::MAX, 0), (8, 1)], 800, 1232, 5);
    assert!(!targets.is_open() && targets.refresh());
    let Targets { engine, count, ttl_ms, bytes_max, excluded, peers, .. } = *targets.table();
    assert_eq!((engine, targets.table().version, count), (3, version, 2));
    assert_eq!((ttl_ms, bytes_max, excluded, &peers[..2]), (800, 1232, 5, &[u32::MAX, 8][..]));
    publisher.open(true);
    assert!(targets.is_open());
    let next = publisher.publish(&[], 0, 0, 0);
    assert!(!targets.is_open() && targets.refresh());
    assert_eq!(*targets.table(), Targets { engine: 3, version: next, ..Targets::default() });
}

#[test]
fn memory_written_by_javascript_is_read_and_its_streams_continue() {
    // The memory that `SharedTargetTable` leaves after `useEngine(258)`, three calls of
    // `allocateCell`, `publish` of two targets, `open(true)` and three calls of `nextStream`.
    let (memory, publisher, _) = set_up();
    let head = [4, 1, 1, 258, 2, 2, 800, 1232, 4, 4_000_000_001, 17];
    let numbers = head.into_iter().enumerate().chain([(25, 2), (26, 1), (65, 1), (66, 2)]);
    for (at, number) in numbers {
        publisher.words[at].store(number, SeqCst);
    }
    let mut targets = SharedTargetTable::open(&memory).unwrap();
    assert_eq!((targets.thread_number(), targets.is_open()), (2, true));
    assert!(targets.refresh());
    let Targets { engine, version, count, ttl_ms, bytes_max, excluded, peers, .. } =
        *targets.table();
    assert_eq!((engine, version, count, &peers[..2]), (258, 2, 2, &[4_000_000_001, 17][..]));
    assert_eq!((ttl_ms, bytes_max, excluded), (800, 1232, 4));
    assert_eq!([0, 1].map(|target| targets.next_tag(target)), [Some(3), Some(2)]);
}

#[test]
fn closed_table_stays_closed_until_the_sender_opens_it() {
    let (_, publisher, targets) = set_up();
    publisher.open(true);
    targets.close();
    assert!(!targets.is_open());
    publisher.open(true);
    assert!(targets.is_open());
    publisher.words[1].store(2, SeqCst);
    assert!(!targets.is_open());
}

#[test]
fn table_is_not_read_while_it_is_written() {
    let (_, mut publisher, mut targets) = set_up();
    publisher.publish(&[(7, 0)], 800, 1232, 0);
    assert!(targets.refresh());
    publisher.words[0].fetch_add(1, SeqCst);
    publisher.words[9].store(9, SeqCst);
    assert!(!targets.refresh());
    assert_eq!(targets.table().peers[0], 7);
    publisher.words[0].fetch_add(1, SeqCst);
    assert!(targets.refresh());
    assert_eq!(targets.table().peers[0], 9);
}

#[test]
fn table_changed_during_a_read_is_discarded() {
    let (_, mut publisher, mut targets) = set_up();
    publisher.publish(&[(7, 0)], 800, 1232, 0);
    let sequence = publisher.words[0].load(SeqCst);
    publisher.publish(&[(8, 0)], 800, 1232, 0);
    assert!(!targets.read(sequence));
    assert_eq!(*targets.table(), Targets::default());
    assert!(targets.refresh());
    assert_eq!(targets.table().peers[0], 8);
}

#[test]
fn table_is_read_again_only_after_a_write() {
    let (_, mut publisher, mut targets) = set_up();
    publisher.publish(&[(7, 0)], 800, 1232, 0);
    assert!(targets.refresh());
    publisher.words[9].store(9, SeqCst);
    assert!(targets.refresh());
    assert_eq!(targets.table().peers[0], 7);
}

#[test]
fn concurrent_reads_are_never_torn() {
    const ROUNDS: usize = if cfg!(miri) { 10 } else { 30_000 };
    let (memory, mut publisher, mut targets) = set_up();
    let (is_over, barrier) = (AtomicBool::new(false), Barrier::new(2));
    std::thread::scope(|scope| {
        let (is_over, memory, barrier) = (&is_over, &memory, &barrier);
        let reader = scope.spawn(move || {
            let mut reader = SharedTargetTable::open(memory).unwrap();
            barrier.wait();
            while !is_over.load(SeqCst) {
                if reader.refresh() {
                    assert_whole(reader.table());
                }
            }
        });
        barrier.wait();
        // Each version writes its count to every field.
        for _ in 0..ROUNDS {
            for count in [16, 1, 9] {
                let number = u32::try_from(count).unwrap();
                publisher.publish(&vec![(number, number); count], number, 100 * number, number);
            }
        }
        is_over.store(true, SeqCst);
        reader.join().unwrap();
    });
    assert!(targets.refresh());
    assert_eq!(targets.table().count, 9);
    assert_whole(targets.table());
}

fn assert_whole(table: &Targets) {
    let number = u32::try_from(table.count).unwrap();
    assert_eq!((table.ttl_ms, table.bytes_max, table.excluded), (number, 100 * number, number));
    let mut targets = table.peers.iter().zip(&table.cells).take(table.count);
    assert!(targets.all(|target| target == (&number, &number)), "{table:?}");
}

#[test]
fn each_ingress_thread_has_its_own_number() {
    let (memory, _, targets) = set_up();
    assert_eq!(
        (targets.thread_number(), SharedTargetTable::open(&memory).unwrap().thread_number()),
        (1, 2)
    );
}

#[test]
fn memory_of_another_size_is_rejected() {
    for size in [0, TARGET_TABLE_BYTES - 4, TARGET_TABLE_BYTES + 4] {
        assert!(SharedTargetTable::open(&Memory::fresh(size)).is_none());
    }
    assert_eq!(TARGET_TABLE_BYTES, 33_024);
}

#[test]
fn tags_are_one_sequence_across_threads_without_0() {
    let (memory, mut publisher, mut targets) = set_up();
    let mut other = SharedTargetTable::open(&memory).unwrap();
    publisher.publish(&[(6, 0), (7, 5)], 800, 1232, 0);
    assert!(targets.refresh() && other.refresh());
    let drawn = [targets.next_tag(1), other.next_tag(1), targets.next_tag(1)];
    assert_eq!(drawn, [Some(1), Some(2), Some(3)]);
    assert_eq!((publisher.words[64].load(SeqCst), publisher.words[69].load(SeqCst)), (0, 3));
    publisher.words[69].store(u32::MAX - 1, SeqCst);
    assert_eq!([targets.next_tag(1), other.next_tag(1)], [Some(u32::MAX), Some(1)]);
}

#[test]
fn concurrently_allocated_tags_are_distinct() {
    // Enough that the threads run at the same time.
    const EACH: usize = if cfg!(miri) { 50 } else { 1_000_000 };
    let (memory, mut publisher, _) = set_up();
    publisher.publish(&[(7, 8191)], 800, 1232, 0);
    let barrier = Barrier::new(2);
    let draw = || {
        let mut targets = SharedTargetTable::open(&memory).unwrap();
        assert!(targets.refresh());
        barrier.wait();
        (0..EACH).map(|_| targets.next_tag(0).unwrap()).collect::<Vec<_>>()
    };
    let mut drawn: Vec<u32> = std::thread::scope(|scope| {
        let threads = [scope.spawn(draw), scope.spawn(draw)];
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    drawn.sort_unstable();
    assert!((1..).take(2 * EACH).eq(drawn), "a stream is missing or was drawn twice");
}

#[test]
fn invalid_route_or_cell_has_no_streams() {
    let (_, mut publisher, mut targets) = set_up();
    assert_eq!(targets.next_tag(0), None);
    publisher.publish(&[(7, 8191), (8, 8192), (9, u32::MAX)], 800, 1232, 0);
    assert!(targets.refresh());
    let drawn = [0, 1, 2, 3, 16, usize::MAX].map(|target| targets.next_tag(target));
    assert_eq!(drawn, [Some(1), None, None, None, None, None]);
    // A target count above the maximum.
    publisher.words[0].fetch_add(2, SeqCst);
    publisher.words[5].store(u32::MAX, SeqCst);
    assert!(targets.refresh());
    assert_eq!((targets.table().count, targets.next_tag(16)), (16, None));
}
