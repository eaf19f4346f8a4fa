use bytes::Bytes;

use super::{PriorityQueue, total_order_of};
use crate::quic::delivery::Delivery;
use crate::quic::landed_shares::{LandedShares, Offer};
use crate::sync::clock::NEVER_NS;

fn delivery(tx: u64, account: u64, lamports: f64) -> Delivery {
    let (bytes, offer) = (Bytes::from_static(b"a transaction"), Offer { account, lamports });
    Delivery { bytes, tx, tag: 0, until_ns: tx, offer }
}

/// A queue with these offers of one account each, whose transactions count from 0.
fn queue_of(offers: &[f64], shares: &LandedShares) -> PriorityQueue {
    let mut queue = PriorityQueue::default();
    for (tx, lamports) in offers.iter().enumerate() {
        queue.push(delivery(tx as u64, tx as u64, *lamports), shares);
    }
    queue
}

fn order(queue: &PriorityQueue) -> Vec<u64> {
    queue.iter().map(|delivery| delivery.tx).collect()
}

#[test]
fn the_best_paid_of_420_leaves_first_although_it_arrived_last() {
    let shares = LandedShares::default();
    let mut offers: Vec<f64> = (0..420).map(|tx| f64::from(tx * 7919 % 419)).collect();
    offers[419] = 1_000.0;
    let mut queue = queue_of(&offers, &shares);
    assert_eq!(queue.first().map(|delivery| delivery.tx), Some(419));
    let mut left = Vec::new();
    while let Some(delivery) = queue.remove(0) {
        left.push(delivery.offer.lamports);
    }
    assert!(left.is_sorted_by(|a, b| a >= b) && left.len() == 420);
}

#[test]
fn those_of_equal_rank_leave_in_arrival_order() {
    let shares = LandedShares::default();
    assert_eq!(order(&queue_of(&[1.0, 2.0, 1.0, 2.0, -1.0, 0.0], &shares)), [1, 3, 0, 2, 5, 4]);
}

#[test]
fn a_changed_share_ranks_all_that_waits_anew() {
    let shares = LandedShares::default();
    let mut queue = queue_of(&[30.0, 20.0, 10.0], &shares);
    shares.update(&[0.0, 0.02]);
    assert_eq!(order(&queue), [0, 1, 2]);
    queue.rank(&shares);
    assert_eq!(order(&queue), [1, 2, 0]);
    // A push ranks all as well, so that one share applies to all of an account.
    shares.update(&[1.0, 0.02]);
    queue.push(delivery(3, 1, 600.0), &shares);
    assert_eq!(order(&queue), [3, 2, 0, 1]);
}

#[test]
fn a_delivery_that_is_alone_is_ranked_once_another_arrives() {
    let shares = LandedShares::default();
    let mut queue = queue_of(&[1.0], &shares);
    shares.update(&[7.0, 1.0]);
    queue.push(delivery(7, 7, 0.9), &shares);
    assert_eq!(order(&queue), [7, 0]);
}

#[test]
fn the_least_rank_is_evicted_and_of_several_the_newest() {
    let shares = LandedShares::default();
    let mut queue = queue_of(&[1.0, 3.0, 1.0, 2.0], &shares);
    let evicted: Vec<u64> =
        std::iter::from_fn(|| queue.evict_least(&shares)).map(|it| it.tx).collect();
    assert_eq!((evicted, queue.is_empty()), (vec![2, 0, 3, 1], true));
    let mut single = queue_of(&[1.0], &shares);
    assert_eq!((single.evict_least(&shares).map(|it| it.tx), single.len()), (Some(0), 0));
}

#[test]
fn the_least_rank_is_evicted_also_of_those_packed_into_datagrams() {
    let shares = LandedShares::default();
    let mut queue = PriorityQueue::default();
    for (tx, size, lamports) in [(0, 900, 7.0), (1, 350, 8.0), (2, 1000, 9.0)] {
        let bytes = Bytes::from(vec![0; size]);
        queue.push(Delivery { bytes, ..delivery(tx, tx, lamports) }, &shares);
    }
    queue.pack(3, 1_300);
    assert_eq!(order(&queue), [1, 0, 2]);
    let evicted: Vec<u64> =
        std::iter::from_fn(|| queue.evict_least(&shares)).map(|it| it.tx).collect();
    assert_eq!(evicted, [0, 1, 2]);
}

#[test]
fn packing_chooses_among_the_best_and_a_better_arrival_goes_before_them() {
    let shares = LandedShares::default();
    let mut queue = PriorityQueue::default();
    for (tx, size, lamports) in [(0, 900, 9.0), (1, 1000, 8.0), (2, 350, 7.0), (3, 100, 6.0)] {
        let bytes = Bytes::from(vec![0; size]);
        queue.push(Delivery { bytes, ..delivery(tx, tx, lamports) }, &shares);
    }
    queue.pack(3, 1_300);
    // The first and the third share a datagram; the fourth has no stream.
    assert_eq!((order(&queue), queue.len()), (vec![0, 2, 1, 3], 4));
    assert_eq!(queue.remove(0).map(|it| it.tx), Some(0));
    queue.pack(3, 1_300);
    assert_eq!(order(&queue), [2, 1, 3]);
    queue.push(delivery(4, 4, 8.5), &shares);
    assert_eq!(order(&queue), [4, 1, 2, 3]);
    assert_eq!((queue.remove(2).map(|it| it.tx), order(&queue)), (Some(2), vec![4, 1, 3]));
    assert!(queue.remove(3).is_none());
}

#[test]
fn expired_ones_are_removed_wherever_they_wait() {
    let shares = LandedShares::default();
    let mut queue = queue_of(&[1.0, 9.0, 2.0, 8.0, 3.0], &shares);
    queue.pack(2, 1_300);
    let mut expired = Vec::new();
    assert_eq!(queue.expire(2, |delivery| expired.push(delivery.tx)), 3);
    assert_eq!((expired, order(&queue)), (vec![1, 2, 0], vec![3, 4]));
    assert_eq!(queue.take_all().map(|it| it.tx).collect::<Vec<_>>(), [3, 4]);
    assert_eq!((queue.is_empty(), queue.expire(9, |_| {})), (true, NEVER_NS));
}

#[test]
fn ranks_are_ordered_as_numbers() {
    let ranks = [f64::NEG_INFINITY, -2.0, -0.5, 0.0, 1e-300, 0.5, 1.0, 9e15, f64::INFINITY];
    assert!(ranks.map(total_order_of).is_sorted_by(|a, b| a < b));
}
