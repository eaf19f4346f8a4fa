//! What one thread receives on the port: the datagrams of its own socket, and those that another
//! thread received for it and passed on.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use mio::{Registry, Token, Waker};
use quinn_proto::Transmit;

use crate::quic_server::handler::QuicNumbers;
use crate::quic_server::socket::DatagramSocket;
use crate::quic_server::threads::{Datagram, Threads};

pub(super) struct ThreadSocket {
    /// Dropped before `threads`, which closes the sockets of all threads in order with the last.
    pub(super) socket: DatagramSocket,
    threads: Arc<Threads>,
    /// Its number among them.
    thread: usize,
    /// When the datagrams in the socket's buffers were received.
    received_ns: u64,
    /// Whether the last datagram was one that another thread passed on.
    took_forwarded: bool,
}

impl ThreadSocket {
    pub(super) fn new(socket: DatagramSocket, threads: Arc<Threads>, thread: usize) -> Self {
        Self { socket, threads, thread, received_ns: 0, took_forwarded: false }
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Has the poll report when datagrams arrive; `waker` ends it for those that are passed on.
    pub(super) fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        waker: Arc<Waker>,
    ) -> io::Result<()> {
        self.threads.polls(self.thread, waker);
        self.socket.register(registry, token)
    }

    pub(super) fn deregister(&mut self, registry: &Registry) {
        self.socket.deregister(registry);
    }

    pub(super) fn on_readable(&mut self) {
        self.socket.on_readable();
    }

    /// Whether a datagram waits here.
    pub(super) fn has_work(&self) -> bool {
        self.socket.has_work() || self.forwarded() > 0
    }

    /// Fills the socket's buffers, if they are empty.
    pub(super) fn receive(&mut self, now_ns: u64) {
        if self.socket.receive() {
            self.received_ns = now_ns;
        }
    }

    /// How many datagrams that were passed on wait here.
    pub(super) fn forwarded(&self) -> usize {
        self.threads.forwarded(self.thread)
    }

    /// The next datagram of this thread: in turns one that another thread passed on, of which so
    /// many may be taken, and one of its own socket.
    pub(super) fn next(
        &mut self,
        forwarded: &mut usize,
        numbers: &mut QuicNumbers,
    ) -> Option<Datagram> {
        if !std::mem::replace(&mut self.took_forwarded, false)
            && let Some(datagram) = self.next_forwarded(forwarded)
        {
            self.took_forwarded = true;
            return Some(datagram);
        }
        self.next_received(numbers).or_else(|| self.next_forwarded(forwarded))
    }

    fn next_forwarded(&self, count: &mut usize) -> Option<Datagram> {
        *count = count.checked_sub(1)?;
        self.threads.take_forwarded(self.thread)
    }

    /// Passes on those of other threads.
    fn next_received(&mut self, numbers: &mut QuicNumbers) -> Option<Datagram> {
        loop {
            let (bytes, meta) = self.socket.next()?;
            let datagram = Datagram { bytes, meta, received_ns: self.received_ns };
            match self.threads.routing.thread_of(&datagram.bytes) {
                Some(thread) if thread != self.thread => {
                    let is_taken = self.threads.forward(thread, datagram);
                    numbers.datagrams_forwarded += u64::from(is_taken);
                    numbers.forwards_dropped += u64::from(!is_taken);
                }
                _ => return Some(datagram),
            }
        }
    }

    /// Forgets what the socket's buffers hold.
    pub(super) fn discard(&mut self) {
        self.socket.discard();
    }

    pub(super) fn segments_max(&self) -> usize {
        self.socket.segments_max()
    }

    /// Returns whether the kernel took the datagrams.
    pub(super) fn send(&mut self, transmit: &Transmit, out: &[u8]) -> bool {
        self.socket.send(transmit, out)
    }
}
