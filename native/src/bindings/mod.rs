//! Every item that Node sees, and nothing else.
//!
//! Bytes, handles and numbers cross, in one call a batch; no promise and, past `peer_open`, no
//! string. What can go wrong is a code (`codes`); an argument of another type than declared is the
//! caller's bug and throws. Panics stay here: the call answers `PANIC`.

pub mod sending;

pub mod reading;

pub mod asking;

pub mod fronts;
