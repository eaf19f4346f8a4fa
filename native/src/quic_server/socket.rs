//! The listener's UDP socket: sends datagrams, and keeps those received until the listener handles
//! them, one by one.

use std::io::{self, IoSliceMut};
use std::net::{self, SocketAddr};

use bytes::BytesMut;
use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};
use quinn_proto::Transmit;
use quinn_udp::{RecvMeta, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};

use crate::quic_server::limits::{
    RECEIVE_BUFFER_BYTES, RECEIVE_BUFFERS, SEGMENTS_MAX, SOCKET_BUFFER_BYTES,
};

/// A socket with its received datagrams: a train of them in each buffer.
pub(super) struct DatagramSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    /// Whether the kernel may hold more.
    can_receive: bool,
    buffers: Vec<u8>,
    metas: [RecvMeta; RECEIVE_BUFFERS],
    /// Buffers with a train.
    count: usize,
    /// The train that continues, and where in it.
    train: usize,
    offset: usize,
}

impl DatagramSocket {
    /// Binds it. A successor may share the port with the process of this user that it replaces.
    ///
    /// # Errors
    /// When the port is in use, the address is not local, or the system has no socket left.
    pub(super) fn bind(address: SocketAddr, is_successor: bool) -> io::Result<Self> {
        let socket = socket_on(address, is_successor)?;
        Ok(Self {
            state: UdpSocketState::new((&socket).into())?,
            socket: UdpSocket::from_std(socket),
            can_receive: true,
            buffers: vec![0; RECEIVE_BUFFERS * RECEIVE_BUFFER_BYTES],
            metas: [RecvMeta::default(); RECEIVE_BUFFERS],
            count: 0,
            train: 0,
            offset: 0,
        })
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Has the poll report when datagrams arrive.
    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.socket, token, Interest::READABLE)
    }

    /// The poll reported datagrams.
    pub(super) fn on_readable(&mut self) {
        self.can_receive = true;
    }

    /// Whether `next` may return a datagram.
    pub(super) fn has_work(&self) -> bool {
        self.can_receive || self.has_received()
    }

    /// Whether the kernel may break datagrams up on their way.
    pub(super) fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    /// Most datagrams of one send.
    pub(super) fn segments_max(&self) -> usize {
        self.state.max_gso_segments().min(SEGMENTS_MAX)
    }

    /// Fills the buffers once, unless they hold datagrams that were not taken yet.
    pub(super) fn receive(&mut self) {
        if !self.can_receive || self.has_received() {
            return;
        }
        let mut slices = self.buffers.chunks_mut(RECEIVE_BUFFER_BYTES);
        let mut slices: [IoSliceMut<'_>; RECEIVE_BUFFERS] =
            std::array::from_fn(|_| IoSliceMut::new(slices.next().unwrap_or_default()));
        let count = match self.state.recv((&self.socket).into(), &mut slices, &mut self.metas) {
            Ok(count) => count,
            Err(error) => {
                // Another error is one datagram's, such as a refused port.
                self.can_receive = error.kind() != io::ErrorKind::WouldBlock;
                0
            }
        };
        (self.count, self.train, self.offset) = (count, 0, 0);
    }

    /// Takes the next received datagram.
    pub(super) fn next(&mut self) -> Option<(BytesMut, RecvMeta)> {
        while self.has_received() {
            let meta = *self.metas.get(self.train)?;
            let start = self.train * RECEIVE_BUFFER_BYTES;
            let end = meta.len.min(self.offset + meta.stride.max(1));
            let place = start + self.offset..start + end;
            self.offset = end;
            if end >= meta.len {
                (self.train, self.offset) = (self.train + 1, 0);
            }
            if !place.is_empty() {
                return Some((self.buffers.get(place)?.into(), meta));
            }
        }
        None
    }

    /// Forgets the received datagrams.
    pub(super) fn discard(&mut self) {
        self.count = 0;
    }

    /// Returns whether the kernel took the datagrams.
    pub(super) fn send(&self, transmit: &Transmit, out: &[u8]) -> bool {
        let datagrams = quinn_udp::Transmit {
            destination: transmit.destination,
            ecn: transmit.ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
            contents: out.get(..transmit.size).unwrap_or_default(),
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        };
        self.state.try_send((&self.socket).into(), &datagrams).is_ok()
    }

    fn has_received(&self) -> bool {
        self.train < self.count
    }
}

fn socket_on(address: SocketAddr, is_successor: bool) -> io::Result<net::UdpSocket> {
    if !is_successor {
        // Fails where another process listens, which a shared port would not.
        drop(net::UdpSocket::bind(address)?);
    }
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_port(address.port() != 0)?;
    // A smaller buffer than requested is no reason to fail.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER_BYTES);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;

    fn bound() -> DatagramSocket {
        DatagramSocket::bind((Ipv4Addr::LOCALHOST, 0).into(), false).unwrap()
    }

    /// Waits until the kernel has handed a datagram over.
    fn received(socket: &mut DatagramSocket) -> Vec<u8> {
        loop {
            socket.on_readable();
            socket.receive();
            if let Some((datagram, _)) = socket.next() {
                return datagram.to_vec();
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn datagrams_are_taken_one_by_one_in_order() {
        let mut socket = bound();
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        for datagram in [&b"first"[..], b"second", b"third"] {
            client.send_to(datagram, socket.local_addr().unwrap()).unwrap();
        }
        let taken: Vec<Vec<u8>> = (0..3).map(|_| received(&mut socket)).collect();
        assert_eq!(taken, [&b"first"[..], b"second", b"third"]);
    }

    #[test]
    fn discarded_datagrams_are_not_taken() {
        let mut socket = bound();
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        client.send_to(b"first", socket.local_addr().unwrap()).unwrap();
        while !socket.has_received() {
            socket.on_readable();
            socket.receive();
        }
        socket.discard();
        assert!(socket.next().is_none());
        client.send_to(b"second", socket.local_addr().unwrap()).unwrap();
        assert_eq!(received(&mut socket), b"second");
    }
}
