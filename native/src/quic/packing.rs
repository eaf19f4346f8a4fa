//! Hot path: which transactions share a datagram, and which datagrams a system call.
//!
//! Datagrams leave in one call if all have one size except the last, which may be smaller
//! (`gso_batch`). Transactions vary in size, so of each two datagrams the larger goes first.

use crate::quic::limits::BATCH_CANDIDATES_MAX;

/// Overhead of a datagram besides stream frames: a short header of 1, 20 and 4 bytes, a tag of 16,
/// 8 that quinn-proto reserves for a frame's length, and an acknowledgement.
const PACKET_BYTES: usize = 72;
/// Maximum overhead of a stream frame: type, stream and length. RFC 9000 section 19.8; a frame at
/// the start of a stream has no offset.
const FRAME_BYTES: usize = 1 + 8 + 2;

/// Capacity for frames in a datagram of `mtu` bytes.
pub(crate) fn capacity_of(mtu: u16) -> usize {
    usize::from(mtu).saturating_sub(PACKET_BYTES)
}

/// The largest transaction that still fits into `room` next to those of these sizes.
pub(crate) fn remaining_capacity(sizes: impl Iterator<Item = usize>, room: usize) -> usize {
    let taken: usize = sizes.map(|size| size + FRAME_BYTES).sum();
    room.saturating_sub(taken + FRAME_BYTES)
}

/// The order in which transactions of these sizes, at most `BATCH_CANDIDATES_MAX`, make nearly the
/// fewest datagrams and calls: each joins the first datagram that has room for it, in arrival
/// order, and of each two datagrams the larger goes first.
pub(crate) fn sort_for_gso(sizes: impl Iterator<Item = usize>, room: usize) -> Vec<usize> {
    let mut datagrams: Vec<usize> = Vec::with_capacity(BATCH_CANDIDATES_MAX);
    // The datagram of each transaction, and its index.
    let mut assigned: Vec<(usize, usize)> = Vec::with_capacity(BATCH_CANDIDATES_MAX);
    for (position, size) in sizes.enumerate() {
        let bytes = size + FRAME_BYTES;
        let roomy = datagrams.iter_mut().enumerate().find(|(_, taken)| **taken + bytes <= room);
        if let Some((datagram, taken)) = roomy {
            *taken += bytes;
            assigned.push((datagram, position));
        } else {
            assigned.push((datagrams.len(), position));
            datagrams.push(bytes);
        }
    }
    let is_second_larger = |pair: usize| match datagrams.get(2 * pair..2 * pair + 2) {
        Some([first, second]) => second > first,
        _ => false,
    };
    assigned.sort_by_key(|(datagram, _)| datagram ^ usize::from(is_second_larger(datagram / 2)));
    assigned.into_iter().map(|(_, position)| position).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 1300;

    fn sorted(sizes: &[usize]) -> Vec<usize> {
        sort_for_gso(sizes.iter().copied(), ROOM)
            .into_iter()
            .map(|position| sizes[position])
            .collect()
    }

    #[test]
    fn small_transactions_fill_the_room_next_to_earlier_large_ones() {
        assert_eq!(sorted(&[900, 1000, 350, 200]), [900, 350, 1000, 200]);
        assert_eq!(sorted(&[400, 400, 400, 400]), [400, 400, 400, 400]);
    }

    #[test]
    fn of_each_two_datagrams_the_larger_goes_first() {
        assert_eq!(sorted(&[900, 1000, 1100, 950, 700]), [1000, 900, 1100, 950, 700]);
        // The second datagram is larger than the first.
        assert_eq!(sorted(&[1000, 400, 800]), [400, 800, 1000]);
        // Three or more of one size make one call, in arrival order.
        assert_eq!(sort_for_gso([1200; 4].into_iter(), ROOM), [0, 1, 2, 3]);
    }

    #[test]
    fn every_transaction_is_placed_once_whatever_the_sizes() {
        let sizes: Vec<usize> = (0..BATCH_CANDIDATES_MAX).map(|at| 1 + at * 7919 % 4096).collect();
        let mut places = sort_for_gso(sizes.iter().copied(), ROOM);
        places.sort_unstable();
        assert_eq!(places, (0..BATCH_CANDIDATES_MAX).collect::<Vec<_>>());
        assert!(sort_for_gso([].into_iter(), ROOM).is_empty());
        assert_eq!(sort_for_gso([usize::MAX / 2, 1].into_iter(), 0), [0, 1]);
    }

    #[test]
    fn a_fitting_transaction_leaves_room_for_every_frame_header() {
        let room = capacity_of(1280);
        let largest = remaining_capacity([400, 300].into_iter(), room);
        assert_eq!(400 + 300 + largest + 3 * FRAME_BYTES + PACKET_BYTES, 1280);
        assert_eq!(remaining_capacity([4096].into_iter(), room), 0);
        assert_eq!(capacity_of(10), 0);
    }
}
