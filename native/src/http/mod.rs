//! HTTP without JavaScript: receives client requests, answers those that a handler decides, and
//! proxies every other one, as bytes, to the main thread's server (the upstream server).
//!
//! `event_loop` is the loop of a thread, with `listener`, `mailbox`, `socket`, TLS (`tls_session`,
//! `tls_config`), and the limits of a client: `permits` and `deadline`.
//! `dispatch` decides on each request, and calls a `handler` for submissions. `json_rpc` parses a
//! client's call in the common form, `rpc_body` any other body. `rejection` is a refusal, with its
//! texts from the generated `rejection_table`.

#[cfg(feature = "ingress")]
mod connection;
#[cfg(feature = "ingress")]
mod deadline;
#[cfg(feature = "ingress")]
mod dispatch;
#[cfg(feature = "ingress")]
pub mod event_loop;
#[cfg(feature = "ingress")]
pub mod handler;
#[cfg(feature = "ingress")]
mod header_marks;
#[cfg(feature = "ingress")]
mod header_room;
#[cfg(feature = "ingress")]
mod idle_list;
pub mod json_rpc;
#[cfg(feature = "ingress")]
pub mod json_text;
#[cfg(feature = "ingress")]
mod large_request;
#[cfg(feature = "ingress")]
pub mod listener;
#[cfg(feature = "ingress")]
pub mod mailbox;
#[cfg(feature = "ingress")]
pub mod message_template;
#[cfg(feature = "ingress")]
mod permits;
#[cfg(feature = "ingress")]
mod preamble;
#[cfg(feature = "ingress")]
mod proxy;
#[cfg(feature = "ingress")]
pub mod rejection;
#[cfg(feature = "ingress")]
#[rustfmt::skip]
pub mod rejection_table;
#[cfg(feature = "ingress")]
mod request_head;
#[cfg(feature = "ingress")]
pub mod response;
#[cfg(feature = "ingress")]
mod response_framing;
#[cfg(feature = "ingress")]
pub mod rpc_body;
#[cfg(feature = "ingress")]
mod socket;
#[cfg(all(test, feature = "ingress"))]
mod test_client;
#[cfg(all(test, feature = "ingress"))]
mod test_server;
#[cfg(all(test, feature = "ingress"))]
mod tls_client;
#[cfg(feature = "ingress")]
pub mod tls_config;
#[cfg(feature = "ingress")]
mod tls_session;
#[cfg(feature = "ingress")]
mod upstream_head;
