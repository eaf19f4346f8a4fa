//! Fixed limits of what JavaScript may create and pass.

/// Most engines of a process.
pub(crate) const ENGINES_MAX: usize = 16;
/// Most key tables: one for each edge.
pub(crate) const KEY_TABLES_MAX: usize = 64;
/// Most paths for requests of JavaScript threads: one for each edge.
pub(crate) const SUBMIT_PATHS_MAX: usize = 64;
/// Most ingress threads: `INGRESS_THREADS_MAX` of `src/config/limits.ts` for each of a few edges.
pub(crate) const INGRESS_THREADS_MAX: usize = 64;
