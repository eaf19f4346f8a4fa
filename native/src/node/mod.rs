//! Every item that Node sees (`quic`, `decode`, `rpc`, `ingress`), and what these share.
//!
//! Bytes, handles and numbers cross, in one call a batch; no promise and, past `peer_open`, no
//! string. What can go wrong is a code (`status_codes`); an argument of another type than declared
//! is the caller's bug and throws. Panics stay here: the call answers `PANIC`.
//!
//! The macro around the exports writes unsafe code, and a view into JavaScript's memory takes it.

#[cfg(feature = "addon")]
#[allow(unsafe_code)]
pub mod options;

#[cfg(feature = "addon")]
#[allow(unsafe_code)]
pub mod quic;

#[cfg(feature = "addon")]
#[allow(unsafe_code)]
pub mod decode;

#[cfg(feature = "addon")]
#[allow(unsafe_code)]
pub mod rpc;

#[cfg(feature = "addon")]
#[allow(unsafe_code)]
pub mod ingress;

#[cfg(feature = "addon")]
mod convert;

pub mod handles;

#[cfg(feature = "addon")]
mod ingress_convert;

#[cfg(feature = "addon")]
#[allow(unsafe_code)]
pub mod shared_bytes;

#[cfg(feature = "addon")]
mod status_codes;
