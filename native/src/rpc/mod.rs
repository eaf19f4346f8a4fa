//! To the nodes: what one is asked (`client`, by `http_post`, `dns_cache` and `tls`) and what is
//! kept of its long answers (`response_filter`, `statuses`), and what it tells of slots by itself
//! (`slot_feed`, by `websocket`; read by `slot_messages`). Whose certificates are taken is for both
//! (`root_store`).

#[cfg(feature = "addon")]
pub mod client;
#[cfg(feature = "addon")]
pub mod dns_cache;
#[cfg(feature = "addon")]
pub mod http_post;
#[cfg(feature = "reading")]
pub mod json_lenient;
#[cfg(feature = "addon")]
pub mod json_object;
#[cfg(feature = "addon")]
pub mod response_filter;
#[cfg(feature = "addon")]
pub mod root_store;
#[cfg(feature = "addon")]
pub mod slot_feed;
#[cfg(feature = "reading")]
pub mod slot_messages;
#[cfg(feature = "addon")]
pub mod statuses;
#[cfg(feature = "addon")]
pub mod tls;
#[cfg(feature = "addon")]
pub mod websocket;
#[cfg(all(test, feature = "addon"))]
mod websocket_tests;
