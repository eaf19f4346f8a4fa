//! The export that sends messages to systemd, because Node has no Unix datagram sockets.

use napi_derive::napi;

use crate::node::convert::guarded;
use crate::node::status_codes::*;
use crate::sync::datagram::send_datagram;

/// Sends a message, as `sd_notify(3)` describes it, to the socket that NOTIFY_SOCKET names. Returns
/// OK, NOTIFY_FAILED or PANIC.
#[napi]
pub fn systemd_notify(socket: String, message: String) -> i32 {
    guarded(PANIC, || match send_datagram(&socket, message.as_bytes()) {
        Ok(()) => OK,
        Err(_) => NOTIFY_FAILED,
    })
}
