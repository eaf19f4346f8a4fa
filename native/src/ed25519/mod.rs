//! Ed25519's verification: a verifier with tables of the keys that sign often (`verify`,
//! `key_tables`, `comb`), and the arithmetic under it, one number or eight at a time.

pub mod comb;
pub mod curve;
pub mod encoding;
pub mod field;
mod inverse;
pub mod key_tables;
#[cfg(target_arch = "x86_64")]
// A function for a processor that has more than every one takes unsafe code to be called.
#[allow(unsafe_code)]
pub mod lane_points;
#[cfg(target_arch = "x86_64")]
// A vector that is read from memory takes unsafe code.
#[allow(unsafe_code)]
mod lanes;
#[cfg(all(test, target_arch = "x86_64"))]
// A function for a processor that has more than every one takes unsafe code to be called.
#[allow(unsafe_code)]
mod lanes_tests;
pub mod sums;
pub mod table;
pub mod verify;
