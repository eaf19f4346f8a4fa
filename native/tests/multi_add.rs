//! Every backend for adding table entries gives the same point, equal to dalek's.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "support/rng.rs"]
mod rng;

use std::array;

use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION};
use curve25519_dalek::{EdwardsPoint, Scalar};
use rng::rng;
use touchdown_native::ed25519::comb_table::Comb;
use touchdown_native::ed25519::curve::{Niels, Point, invert_all};
use touchdown_native::ed25519::multi_add::Backend;
use touchdown_native::ed25519::picks::{PICKS_MAX, Pick, Picks};

/// Sums compared between both backends.
const ROUNDS: usize = 100_000;

/// Below 2^253: random, few bits, or one repeated byte, which sets all digits to one value,
/// including their bounds.
fn scalar(rng: &mut impl FnMut(usize) -> usize) -> [u8; 32] {
    let mut out: [u8; 32] = array::from_fn(|_| rng(256) as u8);
    match rng(4) {
        0 => {
            let bytes = [0, 1, 0x07, 0x08, 0x70, 0x77, 0x78, 0x7f, 0x80, 0x81, 0x87, 0x88, 0xff];
            out = [bytes[rng(bytes.len())]; 32];
        }
        1 => {
            out = [0; 32];
            out[rng(32)] = 1 << rng(8);
        }
        _ => {}
    }
    out[31] &= 0x1f;
    out
}

/// Valid points, points of small order, the neutral element, and sums of the first two.
fn points() -> Vec<EdwardsPoint> {
    let mut rng = rng();
    let mut out = vec![ED25519_BASEPOINT_POINT];
    out.extend(EIGHT_TORSION);
    for small in EIGHT_TORSION {
        out.push(ED25519_BASEPOINT_POINT * Scalar::from_bytes_mod_order(scalar(&mut rng)) + small);
    }
    out
}

fn ours(point: &EdwardsPoint) -> Point {
    Point::decompress(point.compress().as_bytes()).unwrap()
}

fn encoded(points: &[Point]) -> Vec<[u8; 32]> {
    points.iter().zip(invert_all(points)).map(|(point, z)| point.compress(&z)).collect()
}

/// The sums of some entries, by both backends; one if the processor has no other.
fn both(picks: &Picks) -> [Point; 2] {
    [Backend::Scalar.sum(picks), Backend::best().sum(picks)]
}

/// A scalar times a point of any order, so the scalar may not be reduced by the group's order.
fn times(point: &EdwardsPoint, scalar: &[u8; 32]) -> EdwardsPoint {
    let mut sum = EdwardsPoint::default();
    for byte in scalar.iter().rev() {
        sum = (0..8).fold(sum, |sum, _| sum + sum) + point * Scalar::from(*byte);
    }
    sum
}

#[test]
fn products_of_two_points_are_equal_on_every_backend() {
    let points = points();
    let narrow: Vec<_> = points.iter().map(|point| Comb::<4>::new(&ours(point))).collect();
    let wide: Vec<_> = points.iter().map(|point| Comb::<8>::new(&ours(point))).collect();
    let mut rng = rng();
    let mut sums = Vec::new();
    for round in 0..ROUNDS {
        let (a, b) = (rng(points.len()), rng(points.len()));
        let (of_a, of_b) = (scalar(&mut rng), scalar(&mut rng));
        let mut picks = Picks::new();
        narrow[a].pick(&of_a, &mut picks);
        wide[b].pick(&of_b, &mut picks);
        sums.extend(both(&picks));
        if round % 100 == 0 {
            let expected = times(&points[a], &of_a) + times(&points[b], &of_b);
            assert_eq!(encoded(&sums[sums.len() - 1..])[0], expected.compress().to_bytes());
        }
    }
    for (round, pair) in encoded(&sums).chunks_exact(2).enumerate() {
        assert_eq!(pair[0], pair[1], "round {round}");
    }
}

/// Lists that no scalar produces: repeated entries, which are doublings, entries next to their own
/// negatives, gaps anywhere, and any length.
#[test]
fn sums_of_any_entries_are_equal_on_every_backend() {
    let points = points();
    let mapped: Vec<Point> = points.iter().map(ours).collect();
    let inverses = invert_all(&mapped);
    let entries: Vec<Niels> =
        mapped.iter().zip(&inverses).map(|(point, z)| point.niels(z)).collect();
    let mut rng = rng();
    let mut sums = Vec::new();
    for round in 0..20_000 {
        let mut picks = Picks::new();
        let mut expected = EdwardsPoint::default();
        let (kinds, first) = (1 + rng(entries.len()), rng(entries.len()));
        for _ in 0..rng(PICKS_MAX + 1) {
            let kind = (first + rng(kinds)) % entries.len();
            let is_gap = rng(8) == 0;
            let negative = rng(2) == 0;
            picks.push(Pick { multiple: (!is_gap).then_some(&entries[kind]), negative });
            if round % 20 == 0 && !is_gap {
                expected += if negative { -points[kind] } else { points[kind] };
            }
        }
        sums.extend(both(&picks));
        if round % 20 == 0 {
            assert_eq!(encoded(&sums[sums.len() - 1..])[0], expected.compress().to_bytes());
        }
    }
    for (round, pair) in encoded(&sums).chunks_exact(2).enumerate() {
        assert_eq!(pair[0], pair[1], "round {round}");
    }
}

#[test]
fn the_best_backend_is_the_vector_one_if_supported() {
    #[cfg(target_arch = "x86_64")]
    {
        let has =
            std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512ifma");
        assert_eq!(matches!(Backend::best(), Backend::Vector(_)), has);
        if !has {
            eprintln!("this processor has no AVX-512 IFMA: only the scalar backend was tested");
        }
    }
}

#[test]
fn entries_beyond_the_limit_are_ignored() {
    let base = ours(&ED25519_BASEPOINT_POINT);
    let entry = base.niels(&invert_all(&[base])[0]);
    let mut picks = Picks::new();
    for _ in 0..PICKS_MAX + 9 {
        picks.push(Pick { multiple: Some(&entry), negative: false });
    }
    let expected = ED25519_BASEPOINT_POINT * Scalar::from(PICKS_MAX as u64);
    for sum in encoded(&both(&picks)) {
        assert_eq!(sum, expected.compress().to_bytes());
    }
}

#[test]
fn an_empty_sum_is_the_neutral_element() {
    for sum in encoded(&both(&Picks::new())) {
        assert_eq!(sum, EdwardsPoint::default().compress().to_bytes());
    }
}
