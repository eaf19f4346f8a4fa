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
use crate::quic_server::server::QuicServer;

/// Most sockets on their way to one ingress thread; beyond it another one gets them.
const PENDING_SOCKETS_MAX: usize = 1024;
/// Most batches of receipts on their way to one ingress thread; beyond it their sender keeps them.
const PENDING_RECEIPTS_MAX: usize = 16;
/// Token of the waker.
pub(super) const WAKER: Token = Token(0);

/// A command to an event loop.
#[derive(Debug)]
pub enum Command {
    /// Present this certificate to connections from now on, and speak TLS with them.
    Tls(Arc<ServerConfig>),
    /// Accept connections from this socket.
    Listen(Box<Listening>),
    /// Serve QUIC clients on this socket too.
    ListenQuic(Box<QuicServer>),
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
    /// Report that every earlier command was handled.
    #[cfg(test)]
    Report(Sender<()>),
}

/// A listening socket and what belongs to it.
#[derive(Debug)]
pub struct Listening {
    pub(super) socket: TcpListener,
    /// The event loops that share connections with the one that accepts.
    pub(super) others: Vec<EventLoopHandle>,
    pub(super) addresses: Arc<AddressLimits>,
}

impl Listening {
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
pub(super) enum Message {
    Command(Command),
    Socket(AcceptedSocket),
    /// Receipts for QUIC clients.
    Receipts(Box<[u8]>),
}

/// The sending end of the channel; clones lead to the same event loop.
#[derive(Clone, Debug)]
pub struct EventLoopHandle {
    sender: Sender<Message>,
    waker: Arc<Waker>,
    pending_sockets: Arc<AtomicUsize>,
    pending_receipts: Arc<AtomicUsize>,
}

impl EventLoopHandle {
    /// Sends a command; false if the event loop has ended. Commands arrive in sending order.
    pub fn send(&self, command: Command) -> bool {
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
                Message::Command(_) | Message::Receipts(_) => Ok(()),
            },
        }
    }

    /// Sends receipts for QUIC clients; false if the event loop has ended, or does not keep up.
    #[must_use]
    pub fn offer_receipts(&self, batch: Box<[u8]>) -> bool {
        if self.pending_receipts.fetch_add(1, Ordering::Relaxed) >= PENDING_RECEIPTS_MAX {
            self.pending_receipts.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        self.sender.send(Message::Receipts(batch)).is_ok() && self.waker.wake().is_ok()
    }
}

/// The event loop's receiving end.
#[derive(Debug)]
pub struct Mailbox {
    pub(super) poll: Poll,
    receiver: Receiver<Message>,
    pending_sockets: Arc<AtomicUsize>,
    pending_receipts: Arc<AtomicUsize>,
}

impl Mailbox {
    /// The oldest message.
    pub(super) fn next(&self) -> Option<Message> {
        let message = self.receiver.try_recv().ok()?;
        match message {
            Message::Socket(_) => self.pending_sockets.fetch_sub(1, Ordering::Relaxed),
            Message::Receipts(_) => self.pending_receipts.fetch_sub(1, Ordering::Relaxed),
            Message::Command(_) => 0,
        };
        Some(message)
    }
}

/// Both ends for one event loop.
///
/// # Errors
/// When the system has no descriptors left.
pub fn mailbox() -> io::Result<(EventLoopHandle, Mailbox)> {
    let poll = Poll::new()?;
    let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
    let (sender, receiver) = channel();
    let pending_sockets = Arc::new(AtomicUsize::new(0));
    let pending_receipts = Arc::new(AtomicUsize::new(0));
    let handle = EventLoopHandle {
        sender,
        waker,
        pending_sockets: pending_sockets.clone(),
        pending_receipts: pending_receipts.clone(),
    };
    Ok((handle, Mailbox { poll, receiver, pending_sockets, pending_receipts }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_above_a_number_are_left_to_their_sender() {
        let (handle, mailbox) = mailbox().unwrap();
        for _ in 0..PENDING_RECEIPTS_MAX {
            assert!(handle.offer_receipts(Box::new([1])));
        }
        assert!(!handle.offer_receipts(Box::new([2])));
        assert!(matches!(mailbox.next(), Some(Message::Receipts(batch)) if *batch == [1]));
        assert!(handle.offer_receipts(Box::new([3])));
        assert!(!handle.offer_receipts(Box::new([4])));
        drop(mailbox);
        let (ended, _) = super::mailbox().unwrap();
        assert!(!ended.offer_receipts(Box::new([5])));
    }
}
