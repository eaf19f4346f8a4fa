//! To the nodes: what one is asked (`asker`, by `web`, `names` and `secure`) and what is kept of its
//! long answers (`brief`, `statuses`), and what it tells of slots by itself (`feed`, by `line`; read
//! by `news`). Whose certificates are taken is for both (`trust`).

#[cfg(feature = "addon")]
pub mod asker;
#[cfg(feature = "addon")]
pub mod brief;
#[cfg(feature = "addon")]
pub mod feed;
#[cfg(feature = "reading")]
pub mod lenient;
#[cfg(feature = "addon")]
pub mod line;
#[cfg(all(test, feature = "addon"))]
mod line_tests;
#[cfg(feature = "addon")]
pub mod names;
#[cfg(feature = "reading")]
pub mod news;
#[cfg(feature = "addon")]
pub mod object;
#[cfg(feature = "addon")]
pub mod secure;
#[cfg(feature = "addon")]
pub mod statuses;
#[cfg(feature = "addon")]
pub mod trust;
#[cfg(feature = "addon")]
pub mod web;
