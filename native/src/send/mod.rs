//! To the leaders: the engine (`engine`), its connections (`peer`, and under its baton `connection`
//! with its `copies` and their `load`), the I/O thread (`endpoint`), and the ring in which JavaScript learns what became
//! of each copy (`outcomes`).

mod alarm;
pub mod certificate;
mod congestion;
pub mod connection;
pub mod copies;
pub mod endpoint;
pub mod engine;
mod figures;
pub mod flights;
pub mod held;
pub mod load;
pub mod mask;
pub mod outbox;
pub mod outcomes;
pub mod packing;
pub mod peer;
pub mod shared;
pub mod signal;
mod terms;
pub mod tls;
