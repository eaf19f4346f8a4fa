//! QUIC to the leaders: the engine (`engine`), its connections (`peer`; `connection` holds the
//! protocol state and `transmit` sends deliveries, both for the holder of the drive token), the I/O
//! thread (`io_thread`), and the ring (`event_ring`) that carries each `event` to JavaScript.
//!
//! `targets` are the connections to which all threads send.
//!
//! `peer` shares `peer_core` and `connection_stats` with other threads; `peer_table` finds it by
//! its handle. What waits for a leader is in a `priority_queue`, ordered by `landed_shares`, and
//! goes as its grant and the `stream_window` allow. `in_flight`, `packing` and `gso_batch` serve
//! `transmit`; `congestion` and `transport_params` adapt quinn-proto; `timer` and `io_wakeup`
//! decide when the I/O thread wakes. `tls` and `certificate` identify this client.

pub mod certificate;
mod congestion;
pub mod connection;
mod connection_stats;
pub mod delivery;
pub mod engine;
pub mod engine_state;
pub mod event;
pub mod event_ring;
pub mod gso_batch;
pub mod in_flight;
pub mod io_thread;
pub mod io_wakeup;
pub mod landed_shares;
pub mod limits;
pub mod packing;
pub mod peer;
pub mod peer_core;
pub mod peer_table;
mod priority_queue;
pub mod send_result;
pub mod stream_window;
pub mod targets;
mod timer;
pub mod tls;
pub mod transmit;
mod transport_params;
