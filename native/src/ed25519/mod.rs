//! Ed25519 verification: a verifier with tables of keys that sign often (`verify`, `table_cache`,
//! `comb_table`), and the arithmetic under it, one number or eight at a time.

pub mod comb_table;
pub mod curve;
pub mod encoding;
pub mod field;
#[cfg(target_arch = "x86_64")]
// Loading a vector from memory needs unsafe code.
#[allow(unsafe_code)]
mod ifma_field;
#[cfg(all(test, target_arch = "x86_64"))]
// Calling a function that requires special processor features needs unsafe code.
#[allow(unsafe_code)]
mod ifma_field_tests;
#[cfg(target_arch = "x86_64")]
// Calling a function that requires special processor features needs unsafe code.
#[allow(unsafe_code)]
pub mod ifma_points;
mod inverse;
pub mod multi_add;
pub mod picks;
pub mod table_cache;
pub mod verify;
