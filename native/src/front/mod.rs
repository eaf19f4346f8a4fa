//! The short way of a transaction, on threads of its own without JavaScript: takes requests, answers
//! those that it accepts, and relays every other one, as bytes, to the server of the main thread
//! behind it, which answers with the code for its own.
//!
//! ```text
//!  client ─▶ door ─▶ client ─▶ head ─▶ submit: passes ─▶ seen ─▶ decode ─▶ sending ─▶ leaders
//!                     │  ▲                                           └─▶ records ─▶ main thread
//!                     ▼  │
//!                   errand ◀──▶ main thread's server
//! ```
//!
//! `door` is the loop of a thread (`thread`), with `listener`, `inlet`, `wire`, and the bounds of a
//! client: `addresses`, `places` and `deadline`. `dispatch` decides on each request, and asks a
//! `desk` to take what it can, which is `submit`. `telling` says when the main thread is woken.
//! What both look at lies in memory that they share (`memory`): the states of limits (`cells`), what
//! was seen, the routes, records and figures. The layouts are those of the files in `src/` that each
//! module names.
//!
//! Decision: docs/decisions/0003-ingress-threads-without-javascript.md

mod addresses;
mod answer;
pub mod cells;
mod client;
mod deadline;
pub mod desk;
mod dispatch;
pub mod door;
mod errand;
pub mod figures;
mod head;
pub mod inlet;
pub mod listener;
mod lock;
#[allow(unsafe_code)]
pub mod memory;
pub mod passes;
mod places;
pub mod records;
#[cfg(test)]
mod rehearsal;
pub mod reply;
pub mod routes;
pub mod seen;
mod seen_ring;
pub mod sending;
mod strict;
pub mod submit;
pub mod telling;
pub mod thread;
#[cfg(test)]
mod visitor;
mod wire;
