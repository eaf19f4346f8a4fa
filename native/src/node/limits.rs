//! Fixed limits of what JavaScript may create and pass.

/// Most engines of a process.
pub(crate) const ENGINES_MAX: usize = 16;
/// Most ingress threads: `INGRESS_THREADS_MAX` of `src/config/limits.ts` for each of a few edges.
pub(crate) const INGRESS_THREADS_MAX: usize = 64;
/// Most RPC clients.
pub(crate) const RPC_CLIENTS_MAX: usize = 64;
/// Largest request body.
pub(crate) const RPC_REQUEST_BYTES_MAX: usize = 64 * 1024;
/// Largest response limit that an operator may set.
pub(crate) const RPC_RESPONSE_BYTES_MAX: usize = 1 << 30;
/// Most signatures per request. Agave `MAX_GET_SIGNATURE_STATUSES_QUERY_ITEMS`, 2026-11.
pub(crate) const STATUS_SIGNATURES_MAX: usize = 256;
