//! How a door is told of things by other threads: through a channel, and a waker that ends its
//! sleep.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use mio::net::TcpListener;
use mio::{Poll, Token, Waker};

use crate::http::client_socket::Guest;
use crate::http::connection_limits::Addresses;

/// Connections on their way to one front; beyond it another one gets them.
const GUESTS_MAX: usize = 1024;
/// The token of the waker.
pub(super) const WAKER: Token = Token(0);

/// What a door is told to do.
#[derive(Debug)]
pub enum Command<N> {
    /// For its desk.
    News(N),
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
    pub(super) others: Vec<DoorHandle<N>>,
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
pub(super) enum Item<N> {
    Command(Command<N>),
    Guest(Guest),
}

/// The end of the channel that others hold; clones lead to the same door.
#[derive(Debug)]
pub struct DoorHandle<N> {
    sender: Sender<Item<N>>,
    waker: Arc<Waker>,
    guests: Arc<AtomicUsize>,
}

impl<N> Clone for DoorHandle<N> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), waker: self.waker.clone(), guests: self.guests.clone() }
    }
}

impl<N> DoorHandle<N> {
    /// Tells the door; false when it is no more. What is told comes in the order of telling.
    pub fn send(&self, command: Command<N>) -> bool {
        self.sender.send(Item::Command(command)).is_ok() && self.waker.wake().is_ok()
    }

    /// Hands a connection on; gives it back where the door is no more, or does not keep up.
    pub(super) fn deal(&self, guest: Guest) -> Result<(), Guest> {
        if self.guests.fetch_add(1, Ordering::Relaxed) >= GUESTS_MAX {
            self.guests.fetch_sub(1, Ordering::Relaxed);
            return Err(guest);
        }
        match self.sender.send(Item::Guest(guest)) {
            // One that is not woken now is when something else comes.
            Ok(()) => {
                let _ = self.waker.wake();
                Ok(())
            }
            Err(unsent) => match unsent.0 {
                Item::Guest(guest) => Err(guest),
                // It is what was sent.
                Item::Command(_) => Ok(()),
            },
        }
    }
}

/// The door's own end.
#[derive(Debug)]
pub struct Inlet<N> {
    pub(super) poll: Poll,
    receiver: Receiver<Item<N>>,
    guests: Arc<AtomicUsize>,
}

impl<N> Inlet<N> {
    /// What came first of what is left.
    pub(super) fn next(&self) -> Option<Item<N>> {
        let item = self.receiver.try_recv().ok()?;
        if matches!(item, Item::Guest(_)) {
            self.guests.fetch_sub(1, Ordering::Relaxed);
        }
        Some(item)
    }
}

/// Both ends for one door.
///
/// # Errors
/// When the system has no descriptors left.
pub fn inlet<N>() -> io::Result<(DoorHandle<N>, Inlet<N>)> {
    let poll = Poll::new()?;
    let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
    let (sender, receiver) = channel();
    let guests = Arc::new(AtomicUsize::new(0));
    let handle = DoorHandle { sender, waker, guests: guests.clone() };
    Ok((handle, Inlet { poll, receiver, guests }))
}
