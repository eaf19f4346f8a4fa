//! The size limit of a transaction, which the engine (`quic`) and the requests (`http`) share.

/// Largest transaction that is sent, in bytes: a v1 transaction. SIMD-0296, 2026-11.
pub const TRANSACTION_BYTES_MAX: usize = 4096;
