//! How a door is told of things by other threads: through a channel, and a waker that ends its
//! sleep.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use mio::net::TcpListener;
use mio::{Poll, Token, Waker};

use crate::http::client_socket::AcceptedSocket;
use crate::http::connection_limits::Addresses;

/// Connections on their way to one front; beyond it another one gets them.
const PENDING_SOCKETS_MAX: usize = 1024;
/// The token of the waker.
pub(super) const WAKER: Token = Token(0);

/// What a door is told to do.
#[derive(Debug)]
pub enum Command<N> {
    /// For its desk.
    Update(N),
    /// Takes connections from this socket.
    Listen(Box<Listening<N>>),
    /// Every further request is relayed; the server behind refuses new work and says why.
    Drain,
    /// Takes no connection any more, and says whenever nothing is in hand.
    Stop,
    /// Closes everything and ends.
    End,
}

/// A socket that listens, and what belongs to it.
#[derive(Debug)]
pub struct Listening<N> {
    pub(super) socket: TcpListener,
    /// The doors that have their turns after the one that accepts.
    pub(super) others: Vec<EventLoopHandle<N>>,
    pub(super) addresses: Arc<Addresses>,
}

impl<N> Listening<N> {
    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

/// What comes through the channel.
#[derive(Debug)]
pub(super) enum Message<N> {
    Command(Command<N>),
    Socket(AcceptedSocket),
}

/// The end of the channel that others hold; clones lead to the same door.
#[derive(Debug)]
pub struct EventLoopHandle<N> {
    sender: Sender<Message<N>>,
    waker: Arc<Waker>,
    pending_sockets: Arc<AtomicUsize>,
}

impl<N> Clone for EventLoopHandle<N> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
            waker: self.waker.clone(),
            pending_sockets: self.pending_sockets.clone(),
        }
    }
}

impl<N> EventLoopHandle<N> {
    /// Tells the door; false when it is no more. What is told comes in the order of telling.
    pub fn send(&self, command: Command<N>) -> bool {
        self.sender.send(Message::Command(command)).is_ok() && self.waker.wake().is_ok()
    }

    /// Hands a connection on; gives it back where the door is no more, or does not keep up.
    pub(super) fn offer_socket(&self, accepted: AcceptedSocket) -> Result<(), AcceptedSocket> {
        if self.pending_sockets.fetch_add(1, Ordering::Relaxed) >= PENDING_SOCKETS_MAX {
            self.pending_sockets.fetch_sub(1, Ordering::Relaxed);
            return Err(accepted);
        }
        match self.sender.send(Message::Socket(accepted)) {
            // One that is not woken now is when something else comes.
            Ok(()) => {
                let _ = self.waker.wake();
                Ok(())
            }
            Err(unsent) => match unsent.0 {
                Message::Socket(accepted) => Err(accepted),
                // It is what was sent.
                Message::Command(_) => Ok(()),
            },
        }
    }
}

/// The door's own end.
#[derive(Debug)]
pub struct Mailbox<N> {
    pub(super) poll: Poll,
    receiver: Receiver<Message<N>>,
    pending_sockets: Arc<AtomicUsize>,
}

impl<N> Mailbox<N> {
    /// What came first of what is left.
    pub(super) fn next(&self) -> Option<Message<N>> {
        let message = self.receiver.try_recv().ok()?;
        if matches!(message, Message::Socket(_)) {
            self.pending_sockets.fetch_sub(1, Ordering::Relaxed);
        }
        Some(message)
    }
}

/// Both ends for one door.
///
/// # Errors
/// When the system has no descriptors left.
pub fn mailbox<N>() -> io::Result<(EventLoopHandle<N>, Mailbox<N>)> {
    let poll = Poll::new()?;
    let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
    let (sender, receiver) = channel();
    let pending_sockets = Arc::new(AtomicUsize::new(0));
    let handle = EventLoopHandle { sender, waker, pending_sockets: pending_sockets.clone() };
    Ok((handle, Mailbox { poll, receiver, pending_sockets }))
}
