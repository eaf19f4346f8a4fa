//! Clients of Solana nodes: RPC requests (`client`, over `http_post`, `dns_cache` and `tls`), the
//! reduction of long responses (`response_filter`, `statuses`), and slot notifications
//! (`slot_subscriber`, over `websocket`; parsed by `slot_messages`). Both use the same trusted
//! certificates (`root_store`).

#[cfg(feature = "addon")]
pub mod client;
#[cfg(feature = "addon")]
pub mod dns_cache;
#[cfg(feature = "addon")]
pub mod http_post;
#[cfg(feature = "rpc")]
pub mod json_lenient;
#[cfg(feature = "addon")]
pub mod json_object;
#[cfg(feature = "addon")]
pub mod limits;
#[cfg(feature = "addon")]
pub mod response_filter;
#[cfg(feature = "addon")]
pub mod root_store;
#[cfg(feature = "rpc")]
pub mod slot_messages;
#[cfg(feature = "addon")]
pub mod slot_subscriber;
#[cfg(feature = "addon")]
pub mod statuses;
#[cfg(feature = "addon")]
pub mod tls;
#[cfg(feature = "addon")]
pub mod websocket;
#[cfg(all(test, feature = "addon"))]
mod websocket_tests;
