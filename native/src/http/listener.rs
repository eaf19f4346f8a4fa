//! The socket that is listened on. One front has it and deals what comes to all fronts in turn.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;

use mio::net::TcpListener;
use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, Socket, Type};

use crate::http::client_socket::Guest;
use crate::http::connection_limits::Addresses;
use crate::http::mailbox::{DoorHandle, Listening};
use crate::sync::clock::NS_PER_MS;

/// Connections that wait to be accepted; uWebSockets.js asks for as many.
const BACKLOG: i32 = 512;
/// Connections accepted before others get their turn.
const ACCEPTS_A_TURN: usize = 64;
/// How long nothing is accepted after that has failed: what it lacks does not come at once.
const ACCEPT_PAUSE_NS: u64 = 100 * NS_PER_MS;
/// The token of the listening socket.
pub(super) const LISTENER: Token = Token(1);

/// Takes connections and deals them out.
#[derive(Debug)]
pub struct Listener<N> {
    socket: TcpListener,
    others: Vec<DoorHandle<N>>,
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
        others: Vec<DoorHandle<N>>,
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
    pub(super) fn accept(&mut self, now_ns: u64, own: &mut Vec<Guest>) -> usize {
        let mut crowded = 0;
        if !self.can_accept || now_ns < self.paused_until_ns {
            return crowded;
        }
        for _ in 0..ACCEPTS_A_TURN {
            match self.socket.accept() {
                Ok((stream, address)) => {
                    let from = address.ip().to_canonical();
                    match self.addresses.take(from) {
                        Some(seat) => self.deal(Guest { stream, from, seat }, own),
                        None => crowded += 1,
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
        crowded
    }

    /// A front that takes none is passed over; this one always does.
    fn deal(&mut self, mut guest: Guest, own: &mut Vec<Guest>) {
        let count = self.others.len() + 1;
        for _ in 0..count {
            let turn = self.next % count;
            self.next = (turn + 1) % count;
            let Some(other) = turn.checked_sub(1).and_then(|at| self.others.get(at)) else { break };
            match other.deal(guest) {
                Ok(()) => return,
                Err(back) => guest = back,
            }
        }
        own.push(guest);
    }
}
