//! What is sent to, and what a thread learns of it.

use super::*;

impl TargetTable {
    /// Sets the connections with these handles, which accept transactions of this size.
    pub(crate) fn publish(&self, peers: &[u32], ttl_ms: u32, bytes_max: u32) {
        self.publish_each(peers, ttl_ms, &vec![bytes_max; peers.len()]);
    }

    /// The same with a size for each.
    pub(crate) fn publish_each(&self, peers: &[u32], ttl_ms: u32, bytes_max: &[u32]) {
        self.set(Targets::of(peers, bytes_max, ttl_ms).unwrap());
    }

    /// As if so many threads had registered.
    #[cfg(feature = "ingress")]
    pub(crate) fn set_threads(&self, count: u32) {
        self.threads.store(count, Ordering::Relaxed);
    }
}

#[test]
fn targets_that_were_set_last_are_used() {
    let table = TargetTable::default();
    assert_eq!(table.latest(), Targets::default());
    table.publish(&[u32::MAX, 8], 800, 1232);
    let Targets { count, ttl_ms, bytes_max, peers } = table.latest();
    assert_eq!((count, ttl_ms), (2, 800));
    assert_eq!((&peers[..2], &bytes_max[..2]), (&[u32::MAX, 8][..], &[1232; 2][..]));
    table.publish(&[], 0, 0);
    assert_eq!(table.latest(), Targets::default());
}

#[test]
fn each_thread_has_its_own_number() {
    let table = TargetTable::default();
    assert_eq!([(); 3].map(|()| table.register_thread()), [1, 2, 3]);
}

#[test]
fn a_target_accepts_transactions_up_to_its_own_size() {
    let targets = Targets::of(&[7, 8, 9], &[1232, 4096, 2000], 800).unwrap();
    let accepting = |size| {
        let (count, peers) = targets.accepting(size);
        peers[..count].to_vec()
    };
    assert_eq!(accepting(1232), [7, 8, 9]);
    assert_eq!((accepting(1233), accepting(2001)), (vec![8, 9], vec![8]));
    assert!(accepting(4097).is_empty());
}

#[test]
fn lists_of_other_lengths_are_no_targets() {
    assert!(Targets::of(&[1; TARGETS_MAX], &[1; TARGETS_MAX], 1).is_some());
    assert!(Targets::of(&[1; TARGETS_MAX + 1], &[1; TARGETS_MAX + 1], 1).is_none());
    assert!(Targets::of(&[1, 2], &[1], 1).is_none());
    assert!(Targets::of(&[1], &[1, 2], 1).is_none());
}
