//! Checks of the bytes of an Ed25519 key or signature without curve arithmetic: points of small
//! order, non-canonical encodings, and the error of a bad signature.
//!
//! Whether a point lies on the curve is not checked: no signature verifies under a key that does
//! not. So every engine reports the same error for the same bytes.

/// The order of the group, little-endian. RFC 8032 section 5.1, 2026-11.
const GROUP_ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// The two y of the points of order 8, little-endian; dalek's EIGHT_TORSION, 2026-11.
const ORDER_8_Y: [[u8; 32]; 2] = [
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98,
        0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53,
        0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67,
        0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac,
        0x03, 0x7a,
    ],
];

/// Whether the encoded point has small order or is not canonical. The sign bit is ignored: both
/// points of a small-order y have small order. The y of order 4 is 0, of order 1 is 1, of order 2
/// is p - 1, and every y from p = 2^255 - 19 on is not canonical.
#[must_use]
pub fn is_unsafe_point(point: &[u8; 32]) -> bool {
    let mut y = *point;
    let [first, middle @ .., last] = &mut y;
    *last &= 0x7f;
    match (*first, *last) {
        (0..=1, 0x00) => middle.iter().all(|byte| *byte == 0x00),
        (0xec..=0xff, 0x7f) => middle.iter().all(|byte| *byte == 0xff),
        (0x26 | 0xc7, _) => ORDER_8_Y.contains(&y),
        _ => false,
    }
}

/// Whether the little-endian scalar is below the group's order.
#[must_use]
pub fn is_scalar_canonical(scalar: &[u8; 32]) -> bool {
    scalar.iter().rev().lt(GROUP_ORDER.iter().rev())
}

/// Splits a signature into R and S.
#[must_use]
pub fn halves(signature: &[u8; 64]) -> ([u8; 32], [u8; 32]) {
    let (mut point, mut scalar) = ([0; 32], [0; 32]);
    let (first, second) = signature.split_at(32);
    point.copy_from_slice(first);
    scalar.copy_from_slice(second);
    (point, scalar)
}

/// What is wrong with a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureError {
    /// It is all zeros.
    Missing,
    /// The key has small order, or is not canonical.
    KeyMalformed,
    /// R has small order, or R or S is not canonical.
    Malformed,
    /// Well-formed, but not this key's signature of this message.
    Wrong,
}

/// The error of a bad signature. All zeros count as a missing one; then the key is checked, then
/// the signature's form, then its value.
#[must_use]
pub fn signature_error(key: &[u8; 32], signature: &[u8; 64]) -> SignatureError {
    let (point, scalar) = halves(signature);
    if *signature == [0; 64] {
        SignatureError::Missing
    } else if is_unsafe_point(key) {
        SignatureError::KeyMalformed
    } else if is_unsafe_point(&point) || !is_scalar_canonical(&scalar) {
        SignatureError::Malformed
    } else {
        SignatureError::Wrong
    }
}
