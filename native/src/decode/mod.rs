//! From bytes to a verdict: the parsers of the three forms, the rule of the tip and the compute
//! budget, and the faults that are named. The signatures are `ed25519`'s.

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
