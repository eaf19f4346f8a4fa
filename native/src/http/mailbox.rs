//! How other threads send commands to an event loop: a channel, and a waker that ends its poll.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use mio::net::TcpListener;
use mio::{Poll, Token, Waker};
use rustls::ServerConfig;

use crate::http::client_socket::AcceptedSocket;
use crate::http::connection_limits::AddressLimits;

/// Most sockets on their way to one ingress thread; beyond it another one gets them.
const PENDING_SOCKETS_MAX: usize = 1024;
/// Token of the waker.
pub(super) const WAKER: Token = Token(0);

/// A command to an event loop.
#[derive(Debug)]
pub enum Command<U> {
    /// For its request handler.
    Update(U),
    /// Present this certificate to connections from now on, and speak TLS with them.
    Tls(Arc<ServerConfig>),
    /// Accept connections from this socket.
    Listen(Box<Listening<U>>),
    /// Proxy health checks from now on: the upstream server answers that this edge drains.
    AnnounceDrain,
    /// Proxy every further request; the upstream server rejects new work with the reason.
    Drain,
    /// Another process accepts from the same socket now: accept no further connections, and close
    /// each with its next response.
    Retire,
    /// Accept no further connections, and report whenever nothing is pending.
    Stop,
    /// Close everything and return.
    Exit,
}

/// A listening socket and what belongs to it.
#[derive(Debug)]
pub struct Listening<U> {
    pub(super) socket: TcpListener,
    /// The event loops that share connections with the one that accepts.
    pub(super) others: Vec<EventLoopHandle<U>>,
    pub(super) addresses: Arc<AddressLimits>,
}

impl<U> Listening<U> {
    /// Its local address.
    ///
    /// # Errors
    /// When the system does not return it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

/// A message in the channel.
#[derive(Debug)]
pub(super) enum Message<U> {
    Command(Command<U>),
    Socket(AcceptedSocket),
}

/// The sending end of the channel; clones lead to the same event loop.
#[derive(Debug)]
pub struct EventLoopHandle<U> {
    sender: Sender<Message<U>>,
    waker: Arc<Waker>,
    pending_sockets: Arc<AtomicUsize>,
}

impl<U> Clone for EventLoopHandle<U> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
            waker: self.waker.clone(),
            pending_sockets: self.pending_sockets.clone(),
        }
    }
}

impl<U> EventLoopHandle<U> {
    /// Sends a command; false if the event loop has ended. Commands arrive in sending order.
    pub fn send(&self, command: Command<U>) -> bool {
        self.sender.send(Message::Command(command)).is_ok() && self.waker.wake().is_ok()
    }

    /// Hands over a connection; returns it if the event loop has ended, or does not keep up.
    pub(super) fn offer_socket(&self, accepted: AcceptedSocket) -> Result<(), AcceptedSocket> {
        if self.pending_sockets.fetch_add(1, Ordering::Relaxed) >= PENDING_SOCKETS_MAX {
            self.pending_sockets.fetch_sub(1, Ordering::Relaxed);
            return Err(accepted);
        }
        match self.sender.send(Message::Socket(accepted)) {
            // If the wake fails, the next event wakes the loop.
            Ok(()) => {
                let _ = self.waker.wake();
                Ok(())
            }
            Err(unsent) => match unsent.0 {
                Message::Socket(accepted) => Err(accepted),
                // Unreachable: a socket was sent.
                Message::Command(_) => Ok(()),
            },
        }
    }
}

/// The event loop's receiving end.
#[derive(Debug)]
pub struct Mailbox<U> {
    pub(super) poll: Poll,
    receiver: Receiver<Message<U>>,
    pending_sockets: Arc<AtomicUsize>,
}

impl<U> Mailbox<U> {
    /// The oldest message.
    pub(super) fn next(&self) -> Option<Message<U>> {
        let message = self.receiver.try_recv().ok()?;
        if matches!(message, Message::Socket(_)) {
            self.pending_sockets.fetch_sub(1, Ordering::Relaxed);
        }
        Some(message)
    }
}

/// Both ends for one event loop.
///
/// # Errors
/// When the system has no descriptors left.
pub fn mailbox<U>() -> io::Result<(EventLoopHandle<U>, Mailbox<U>)> {
    let poll = Poll::new()?;
    let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
    let (sender, receiver) = channel();
    let pending_sockets = Arc::new(AtomicUsize::new(0));
    let handle = EventLoopHandle { sender, waker, pending_sockets: pending_sockets.clone() };
    Ok((handle, Mailbox { poll, receiver, pending_sockets }))
}
