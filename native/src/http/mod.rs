//! HTTP without JavaScript: takes requests of clients, answers those that a handler accepts, and
//! relays every other one, as bytes, to the server of the main thread behind it.
//!
//! `event_loop` is the loop of a thread, with `listener`, `mailbox`, `socket`, and the bounds of a
//! client: `connection_limits`, `permits` and `deadline`. `dispatch` decides on each request, and
//! asks a `handler` to take what it can. `json_rpc` reads a client's call.

#[cfg(feature = "front")]
mod client_socket;
#[cfg(feature = "front")]
mod connection;
#[cfg(feature = "front")]
mod connection_limits;
#[cfg(feature = "front")]
mod deadline;
#[cfg(feature = "front")]
mod dispatch;
#[cfg(feature = "front")]
pub mod event_loop;
#[cfg(feature = "front")]
pub mod handler;
#[cfg(feature = "front")]
mod header_marks;
pub mod json_rpc;
#[cfg(feature = "front")]
pub mod listener;
#[cfg(feature = "front")]
pub mod mailbox;
#[cfg(feature = "front")]
mod permits;
#[cfg(feature = "front")]
mod proxy;
#[cfg(feature = "front")]
mod request_head;
#[cfg(feature = "front")]
pub mod response;
#[cfg(feature = "front")]
mod response_framing;
#[cfg(feature = "front")]
mod socket;
#[cfg(all(test, feature = "front"))]
mod test_client;
#[cfg(all(test, feature = "front"))]
mod test_server;
