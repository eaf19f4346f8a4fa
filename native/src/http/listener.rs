//! The listening socket. One ingress thread owns it and distributes connections round-robin to all
//! ingress threads.

use std::io::{self, ErrorKind};
use std::net::{self, SocketAddr};

use mio::net::TcpListener;
use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, Socket, Type};

use crate::http::mailbox::{AcceptedSocket, EventLoopHandle, Listening};
use crate::http::permits::Permits;
use crate::sync::clock::NS_PER_MS;

/// Connections that wait to be accepted; the same as uWebSockets.js uses.
const BACKLOG: i32 = 512;
/// Connections accepted before clients get their turn.
const ACCEPTS_PER_TURN: usize = 64;
/// Pause after a failed accept: whatever it lacked is not available immediately.
const ACCEPT_PAUSE_NS: u64 = 100 * NS_PER_MS;
/// Token of the listening socket.
pub(super) const LISTENER: Token = Token(1);

/// Binds and listens without sharing the port.
///
/// # Errors
/// When the port is in use, or the address is not local.
pub fn listen_on(address: SocketAddr) -> io::Result<net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    // Allows a port with connections in TIME_WAIT, not one with a listener.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Accepts connections and distributes them.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    others: Vec<EventLoopHandle>,
    /// Of all threads. Their number is bounded by each thread's own limit, so only the share of an
    /// address is bounded here.
    connection_permits: Permits,
    /// The next ingress thread: 0 is the one that accepts.
    next: usize,
    pub(super) can_accept: bool,
    paused_until_ns: u64,
}

impl Listener {
    /// Connections go round-robin to the ingress thread that gets this listener and to the
    /// `others`. One address may hold `per_address` of them at the same time.
    #[must_use]
    pub fn listening(
        socket: net::TcpListener,
        others: Vec<EventLoopHandle>,
        per_address: usize,
    ) -> Listening {
        let socket = TcpListener::from_std(socket);
        let connection_permits = Permits::new(usize::MAX, per_address);
        Listening { socket, others, connection_permits }
    }

    /// Accepts from this socket.
    pub(super) fn new(listening: Listening) -> Self {
        let Listening { socket, others, connection_permits } = listening;
        Self { socket, others, connection_permits, next: 0, can_accept: false, paused_until_ns: 0 }
    }

    /// Ends the accepts of this process. The kernel would go on to report connections to this
    /// thread while another process has the socket.
    pub(super) fn deregister(&mut self, registry: &Registry) {
        let _ = registry.deregister(&mut self.socket);
    }

    pub(super) fn register(&mut self, registry: &Registry) -> io::Result<()> {
        registry.register(&mut self.socket, LISTENER, Interest::READABLE)
    }

    /// Time until the next accept may succeed, where known.
    pub(super) fn due_in_ns(&self, now_ns: u64) -> Option<u64> {
        self.can_accept.then(|| self.paused_until_ns.saturating_sub(now_ns))
    }

    /// Accepts pending connections; `own` receives those of this ingress thread. Closes connections
    /// of addresses at their limit, and returns their count.
    pub(super) fn accept(&mut self, now_ns: u64, own: &mut Vec<AcceptedSocket>) -> usize {
        let mut over_limit = 0;
        if !self.can_accept || now_ns < self.paused_until_ns {
            return over_limit;
        }
        for _ in 0..ACCEPTS_PER_TURN {
            match self.socket.accept() {
                Ok((stream, address)) => {
                    let from = address.ip().to_canonical();
                    match self.connection_permits.try_acquire(from) {
                        Some(address_permit) => self.dispatch_round_robin(
                            AcceptedSocket { stream, from, address_permit },
                            own,
                        ),
                        None => over_limit += 1,
                    }
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => {
                        self.can_accept = false;
                        break;
                    }
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    _ => {
                        self.paused_until_ns = now_ns.saturating_add(ACCEPT_PAUSE_NS);
                        break;
                    }
                },
            }
        }
        over_limit
    }

    /// Skips ingress threads that accept none; this one always does.
    fn dispatch_round_robin(
        &mut self,
        mut accepted: AcceptedSocket,
        own: &mut Vec<AcceptedSocket>,
    ) {
        let count = self.others.len() + 1;
        for _ in 0..count {
            let turn = self.next % count;
            self.next = (turn + 1) % count;
            let Some(other) = turn.checked_sub(1).and_then(|at| self.others.get(at)) else { break };
            match other.offer_socket(accepted) {
                Ok(()) => return,
                Err(back) => accepted = back,
            }
        }
        own.push(accepted);
    }
}
