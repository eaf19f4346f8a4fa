//! How other threads send commands to an event loop: a channel, and a waker that ends its poll.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use mio::net::{TcpListener, TcpStream};
use mio::{Poll, Token, Waker};
use rustls::ServerConfig;

use crate::http::permits::{Permit, Permits};
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
    /// Present this certificate to `touchdown/1` clients that connect from now on.
    QuicTls(Arc<ServerConfig>),
    /// Accept connections from this socket.
    Listen(Box<Listening>),
    /// Serve QUIC clients on this socket too.
    ListenQuic(Box<QuicServer>),
    /// Answer `getHealth` as of a node that is not healthy from now on.
    AnnounceDrain,
    /// Refuse new submissions.
    Drain,
    /// Close each connection with its next response.
    DisableKeepAlive,
    /// Another process accepts from the same socket now: accept no further connections, and close
    /// each with its next response.
    Retire,
    /// The process that was to replace this one has ended without accepting.
    TakeBack,
    /// Accept no further connections, and report whenever nothing is pending.
    Stop,
    /// Close everything and return.
    Exit,
    /// Report that every earlier command was handled.
    #[cfg(test)]
    Report(Sender<()>),
}

/// An accepted socket on its way to the ingress thread that will serve it.
#[derive(Debug)]
pub(super) struct AcceptedSocket {
    pub(super) stream: TcpStream,
    pub(super) from: IpAddr,
    /// Counts the connection against its address while it is open.
    pub(super) address_permit: Permit,
}

/// A listening socket and what belongs to it.
#[derive(Debug)]
pub struct Listening {
    pub(super) socket: TcpListener,
    /// The event loops that share connections with the one that accepts.
    pub(super) others: Vec<EventLoopHandle>,
    /// The connections of each address, over all threads.
    pub(super) connection_permits: Permits,
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
    Receipts(Arc<[u8]>),
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

    /// Sends receipts for QUIC clients to all of these event loops, or to none: false if one does
    /// not keep up. Only one thread may call it.
    #[must_use]
    pub fn offer_receipts(loops: &[&Self], batch: &Arc<[u8]>) -> bool {
        let has_room =
            |each: &&Self| each.pending_receipts.load(Ordering::Relaxed) < PENDING_RECEIPTS_MAX;
        if !loops.iter().all(has_room) {
            return false;
        }
        for each in loops {
            each.pending_receipts.fetch_add(1, Ordering::Relaxed);
            if each.sender.send(Message::Receipts(batch.clone())).is_ok() {
                // If it fails, the next event wakes the loop.
                let _ = each.waker.wake();
            } else {
                // It has ended, and has no clients.
                each.pending_receipts.fetch_sub(1, Ordering::Relaxed);
            }
        }
        true
    }
}

/// The event loop's receiving end.
#[derive(Debug)]
pub struct Mailbox {
    pub(super) poll: Poll,
    /// Ends the poll.
    pub(super) waker: Arc<Waker>,
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
        waker: waker.clone(),
        pending_sockets: pending_sockets.clone(),
        pending_receipts: pending_receipts.clone(),
    };
    Ok((handle, Mailbox { poll, waker, receiver, pending_sockets, pending_receipts }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_above_a_number_are_left_to_their_sender() {
        let [(one, of_one), (other, of_other)] = [(); 2].map(|()| mailbox().unwrap());
        let offer = |byte: u8| EventLoopHandle::offer_receipts(&[&one, &other], &[byte][..].into());
        for _ in 0..PENDING_RECEIPTS_MAX {
            assert!(offer(1));
        }
        assert!(!offer(2));
        assert!(matches!(of_one.next(), Some(Message::Receipts(batch)) if *batch == [1]));
        // The other has no room, so neither gets it.
        assert!(!offer(3));
        assert!(matches!(of_other.next(), Some(Message::Receipts(_))));
        assert!(offer(4) && !offer(5));
        let rest = std::iter::from_fn(|| of_one.next());
        assert_eq!(rest.count(), PENDING_RECEIPTS_MAX);
    }

    #[test]
    fn event_loop_that_has_ended_keeps_no_other_from_its_receipts() {
        let [(one, mailbox), (ended, _)] = [(); 2].map(|()| mailbox().unwrap());
        assert!(EventLoopHandle::offer_receipts(&[&ended, &one], &[1][..].into()));
        assert!(mailbox.next().is_some());
    }
}
