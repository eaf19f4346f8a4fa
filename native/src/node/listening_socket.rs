//! Listening sockets as file descriptors, which one process can pass on to the next.

use std::net::{TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use socket2::SockRef;

use crate::http::listener::listen_on;
use crate::node::status_codes::INGRESS_THREAD_LISTEN;

/// A socket that listens on the first address of the host that can be bound.
pub(crate) fn socket_of(host: &str, port: u32) -> Option<TcpListener> {
    let port = u16::try_from(port).ok()?;
    (host, port).to_socket_addrs().ok()?.find_map(|address| listen_on(address).ok())
}

/// The inherited listening socket, under another descriptor; the given one is closed.
pub(crate) fn inherited(descriptor: u32) -> Option<TcpListener> {
    let socket = duplicate(descriptor)?;
    let inherited = RawFd::try_from(descriptor).ok()?;
    // SAFETY: `duplicate` found it open; the caller gives it up.
    drop(unsafe { OwnedFd::from_raw_fd(inherited) });
    Some(socket)
}

/// The same socket under another descriptor; None unless it is a TCP socket that listens.
pub(crate) fn duplicate(descriptor: u32) -> Option<TcpListener> {
    let descriptor = RawFd::try_from(descriptor).ok()?;
    // SAFETY: the caller's descriptor stays open during the call; the kernel refuses a closed one.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let owned = borrowed.as_fd().try_clone_to_owned().ok()?;
    let is_listener = SockRef::from(&owned).is_listener().unwrap_or(false);
    let socket = is_listener.then(|| TcpListener::from(owned))?;
    socket.set_nonblocking(true).ok()?;
    socket.local_addr().is_ok().then_some(socket)
}

/// The descriptor, for the caller to close.
pub(crate) fn into_descriptor(socket: TcpListener) -> i32 {
    let descriptor = socket.into_raw_fd();
    if descriptor > 0 { descriptor } else { INGRESS_THREAD_LISTEN }
}
