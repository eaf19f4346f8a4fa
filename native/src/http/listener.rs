//! The socket that is listened on. One front has it and deals what comes to all fronts in turn.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;

use mio::net::TcpListener;
use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, Socket, Type};

use crate::http::client_socket::AcceptedSocket;
use crate::http::connection_limits::Addresses;
use crate::http::mailbox::{EventLoopHandle, Listening};
use crate::sync::clock::NS_PER_MS;

/// Connections that wait to be accepted; uWebSockets.js asks for as many.
const BACKLOG: i32 = 512;
/// Connections accepted before others get their turn.
const ACCEPTS_PER_TURN: usize = 64;
/// How long nothing is accepted after that has failed: what it lacks does not come at once.
const ACCEPT_PAUSE_NS: u64 = 100 * NS_PER_MS;
/// The token of the listening socket.
pub(super) const LISTENER: Token = Token(1);

/// Takes connections and deals them out.
#[derive(Debug)]
pub struct Listener<N> {
    socket: TcpListener,
    others: Vec<EventLoopHandle<N>>,
    addresses: Arc<Addresses>,
    /// Whose turn it is: 0 is the front that accepts.
    next: usize,
    pub(super) can_accept: bool,
    paused_until_ns: u64,
}

impl<N> Listener<N> {
    /// Listens; alone on its port. Connections go in turn to the front that is given this listener
    /// and to the `others`. One address may hold `per_address` of them at the same time.
    ///
    /// # Errors
    /// When the port is taken, or the address is not of this machine.
    pub fn bind(
        address: SocketAddr,
        others: Vec<EventLoopHandle<N>>,
        per_address: usize,
    ) -> io::Result<Listening<N>> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        // A port whose last connections linger may be had; one that is listened on may not.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let socket = TcpListener::from_std(socket.into());
        let addresses = Addresses::new(per_address);
        Ok(Listening { socket, others, addresses })
    }

    /// Accepts from such a socket.
    pub(super) fn new(listening: Listening<N>) -> Self {
        let Listening { socket, others, addresses } = listening;
        Self { socket, others, addresses, next: 0, can_accept: false, paused_until_ns: 0 }
    }

    pub(super) fn register(&mut self, registry: &Registry) -> io::Result<()> {
        registry.register(&mut self.socket, LISTENER, Interest::READABLE)
    }

    /// How long until there may be something to accept, where that is known.
    pub(super) fn due_in_ns(&self, now_ns: u64) -> Option<u64> {
        self.can_accept.then(|| self.paused_until_ns.saturating_sub(now_ns))
    }

    /// Takes some of what has come; `own` is what falls to this front. Closes connections of
    /// addresses that hold all that they may, and returns how many those were.
    pub(super) fn accept(&mut self, now_ns: u64, own: &mut Vec<AcceptedSocket>) -> usize {
        let mut over_limit = 0;
        if !self.can_accept || now_ns < self.paused_until_ns {
            return over_limit;
        }
        for _ in 0..ACCEPTS_PER_TURN {
            match self.socket.accept() {
                Ok((stream, address)) => {
                    let from = address.ip().to_canonical();
                    match self.addresses.take(from) {
                        Some(seat) => {
                            self.dispatch_round_robin(AcceptedSocket { stream, from, seat }, own)
                        }
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

    /// A front that takes none is passed over; this one always does.
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
