//! What is read of the table, also while it is written and when it is inconsistent.

use std::sync::Barrier;
use std::sync::atomic::AtomicBool;

use super::*;

/// The sender's side, as `SharedTargetTable` of `src/send/native/shared-target-table.ts` writes it.
pub(crate) struct Publisher {
    pub(crate) words: AtomicSlice<AtomicU32>,
    pub(crate) engine: u32,
}

impl Publisher {
    pub(crate) fn new(memory: &Memory) -> Self {
        Self { words: memory.atomics(0, TARGET_TABLE_BYTES / 4).unwrap(), engine: 3 }
    }

    /// Publishes the connections with these handles, which accept transactions of this size.
    pub(crate) fn publish(&self, peers: &[u32], ttl_ms: u32, bytes_max: u32) {
        self.publish_each(peers, ttl_ms, &vec![bytes_max; peers.len()]);
    }

    /// The same with a size for each.
    pub(crate) fn publish_each(&self, peers: &[u32], ttl_ms: u32, bytes_max: &[u32]) {
        self.words[0].fetch_add(1, SeqCst);
        let count = u32::try_from(peers.len()).unwrap();
        for (word, number) in self.words[ENGINE..].iter().zip([self.engine, count, ttl_ms]) {
            word.store(number, SeqCst);
        }
        for (at, numbers) in [(PEERS, peers), (BYTES_MAX, bytes_max)] {
            for (word, &number) in self.words[at..].iter().zip(numbers) {
                word.store(number, SeqCst);
            }
        }
        self.words[0].fetch_add(1, SeqCst);
    }
}

pub(crate) fn set_up() -> (Memory, Publisher, SharedTargetTable) {
    let memory = Memory::fresh(TARGET_TABLE_BYTES);
    let (publisher, targets) = (Publisher::new(&memory), SharedTargetTable::open(&memory).unwrap());
    (memory, publisher, targets)
}

#[test]
fn last_published_table_is_read() {
    let (_, publisher, mut targets) = set_up();
    assert_eq!(*targets.latest(), Targets::default());
    publisher.publish(&[u32::MAX, 8], 800, 1232);
    let Targets { engine, count, ttl_ms, bytes_max, peers } = *targets.latest();
    assert_eq!((engine, count, ttl_ms), (3, 2, 800));
    assert_eq!((&peers[..2], &bytes_max[..2]), (&[u32::MAX, 8][..], &[1232; 2][..]));
    publisher.publish(&[], 0, 0);
    assert_eq!(*targets.latest(), Targets { engine: 3, ..Targets::default() });
}

#[test]
fn memory_written_by_javascript_is_read() {
    // The memory that `SharedTargetTable` leaves after `useEngine(258)` and `publish` of two
    // targets.
    let (memory, publisher, _) = set_up();
    let head = [4, 1, 258, 2, 800, 4_000_000_001, 17];
    for (at, number) in head.into_iter().enumerate().chain([(21, 1232), (22, 4096)]) {
        publisher.words[at].store(number, SeqCst);
    }
    let mut targets = SharedTargetTable::open(&memory).unwrap();
    assert_eq!(targets.thread_number(), 2);
    assert!(targets.refresh());
    let Targets { engine, count, ttl_ms, bytes_max, peers } = targets.table;
    assert_eq!((engine, count, &peers[..2]), (258, 2, &[4_000_000_001, 17][..]));
    assert_eq!((ttl_ms, &bytes_max[..2]), (800, &[1232, 4096][..]));
}

#[test]
fn table_that_is_being_written_is_the_one_before() {
    let (_, publisher, mut targets) = set_up();
    publisher.publish(&[7], 800, 1232);
    assert!(targets.refresh());
    publisher.words[0].fetch_add(1, SeqCst);
    publisher.words[PEERS].store(9, SeqCst);
    assert!(!targets.refresh());
    assert_eq!(targets.latest().peers[0], 7);
    publisher.words[0].fetch_add(1, SeqCst);
    assert_eq!(targets.latest().peers[0], 9);
}

#[test]
fn table_changed_during_a_read_is_discarded() {
    let (_, publisher, mut targets) = set_up();
    publisher.publish(&[7], 800, 1232);
    let sequence = publisher.words[0].load(SeqCst);
    publisher.publish(&[8], 800, 1232);
    assert!(!targets.read(sequence));
    assert_eq!(targets.table, Targets::default());
    assert!(targets.refresh());
    assert_eq!(targets.table.peers[0], 8);
}

#[test]
fn table_is_read_again_only_after_a_write() {
    let (_, publisher, mut targets) = set_up();
    publisher.publish(&[7], 800, 1232);
    assert!(targets.refresh());
    publisher.words[PEERS].store(9, SeqCst);
    assert!(targets.refresh());
    assert_eq!(targets.table.peers[0], 7);
}

#[test]
fn concurrent_reads_are_never_torn() {
    const ROUNDS: usize = if cfg!(miri) { 10 } else { 30_000 };
    let (memory, publisher, mut targets) = set_up();
    let (is_over, barrier) = (AtomicBool::new(false), Barrier::new(2));
    std::thread::scope(|scope| {
        let (is_over, memory, barrier) = (&is_over, &memory, &barrier);
        let reader = scope.spawn(move || {
            let mut reader = SharedTargetTable::open(memory).unwrap();
            barrier.wait();
            while !is_over.load(SeqCst) {
                if reader.refresh() {
                    assert_whole(&reader.table);
                }
            }
        });
        barrier.wait();
        // Each version writes its count to every field.
        for _ in 0..ROUNDS {
            for count in [16, 1, 9] {
                let number = u32::try_from(count).unwrap();
                publisher.publish(&vec![number; count], number, 100 * number);
            }
        }
        is_over.store(true, SeqCst);
        reader.join().unwrap();
    });
    assert!(targets.refresh());
    assert_eq!(targets.table.count, 9);
    assert_whole(&targets.table);
}

fn assert_whole(table: &Targets) {
    let number = u32::try_from(table.count).unwrap();
    assert_eq!(table.ttl_ms, number);
    assert!(table.peers.iter().take(table.count).all(|&peer| peer == number), "{table:?}");
    let mut sizes = table.bytes_max.iter().take(table.count);
    assert!(sizes.all(|&size| size == 100 * number), "{table:?}");
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
    assert_eq!(TARGET_TABLE_BYTES, 148);
}

#[test]
fn a_target_accepts_transactions_up_to_its_own_size() {
    let (_, publisher, mut targets) = set_up();
    publisher.publish_each(&[7, 8, 9], 800, &[1232, 4096, 2000]);
    assert!(targets.refresh());
    let accepting = |size| {
        let (count, peers) = targets.table.accepting(size);
        peers[..count].to_vec()
    };
    assert_eq!(accepting(1232), [7, 8, 9]);
    assert_eq!((accepting(1233), accepting(2001)), (vec![8, 9], vec![8]));
    assert!(accepting(4097).is_empty());
}

#[test]
fn count_above_the_maximum_is_the_maximum() {
    let (_, publisher, mut targets) = set_up();
    publisher.words[0].fetch_add(2, SeqCst);
    publisher.words[COUNT].store(u32::MAX, SeqCst);
    assert!(targets.refresh());
    assert_eq!(targets.table.count, TARGETS_MAX);
}
