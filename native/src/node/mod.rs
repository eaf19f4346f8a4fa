//! Every export to Node (`quic`, `decode`, `submit`, `ingress`, `keys`, `systemd`), and what they
//! share.
//!
//! Only bytes, handles and numbers cross, in one call per batch; no promise, and no string per
//! transaction. Errors are codes (`status_codes`); an argument of the wrong type is the caller's
//! bug and throws. Panics are caught: the call returns `PANIC`.
//!
//! The export macro generates unsafe code, and views of JavaScript memory need it.

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
pub mod ingress;

#[cfg(feature = "addon")]
#[allow(unsafe_code)]
pub mod keys;

#[cfg(feature = "addon")]
#[allow(unsafe_code)]
pub mod submit;

#[cfg(feature = "addon")]
#[allow(unsafe_code)]
pub mod systemd;

#[cfg(feature = "addon")]
mod convert;

pub mod handles;

#[cfg(feature = "addon")]
#[allow(unsafe_code)]
mod listening_socket;

#[cfg(feature = "addon")]
#[allow(unsafe_code)]
pub mod shared_bytes;

#[cfg(feature = "addon")]
mod limits;

#[cfg(feature = "addon")]
mod status_codes;
