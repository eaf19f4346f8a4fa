//! From bytes to a validation result: the parsers of the three formats, the rules of the tip and
//! the compute budget, and the errors. `ed25519` verifies the signatures.

pub mod compute_budget;
pub mod decoder;
pub mod errors;
pub mod legacy;
pub mod message;
pub mod parse_state;
pub mod signatures;
pub mod tip;
pub mod tx;
pub mod v1;
