//! From bytes to a validation result: the parsers of the three formats, the rules of the tip and
//! the compute budget, and the errors; `base58` reads texts, `diagnosis` recognizes what is none.
//! `ed25519` verifies the signatures.

pub mod base58;
pub mod compute_budget;
pub mod decoder;
pub mod diagnosis;
pub mod errors;
pub mod legacy;
pub mod limits;
pub mod message;
pub mod parse_state;
pub mod signatures;
pub mod tip;
pub mod tx;
pub mod v1;
