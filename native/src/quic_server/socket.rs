//! The listener's UDP sockets, one for each thread. Each sends datagrams, and keeps those received
//! until its thread handles them, one by one. All share the port: a program of `routing` chooses
//! one for each datagram.

use std::io::{self, IoSliceMut};
use std::net::{self, SocketAddr};

use bytes::BytesMut;
use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};
use nix::libc::{sock_filter, sock_fprog};
use nix::sys::socket::{setsockopt, sockopt::AttachReusePortCbpf};
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

/// The sockets that share a port, in the order in which the kernel has them. A thread that ends
/// closes its own descriptor alone: all sockets are closed together with this, the last one first,
/// so that a process which has sockets behind them knows in which order the kernel has its own
/// then.
#[derive(Debug)]
pub(super) struct PortSockets(Vec<net::UdpSocket>);

impl PortSockets {
    /// So many sockets on the address, whose datagrams the program distributes, and each of them
    /// for a thread. A successor may share the port with the process of this user that it replaces.
    ///
    /// # Errors
    /// When the port is in use, the address is not local, or the system has no socket left.
    pub(super) fn bind(
        address: SocketAddr,
        count: usize,
        is_successor: bool,
        program: &mut [sock_filter],
    ) -> io::Result<(Self, Vec<DatagramSocket>)> {
        let first = first_on(address, count, is_successor)?;
        let bound = first.local_addr()?;
        let mut sockets = Self(vec![first]);
        for _ in 1..count {
            sockets.0.push(shared_on(bound)?);
        }
        // Without it the kernel chooses by the addresses, and threads pass datagrams on.
        let _ = sockets.attach(program);
        let of_threads = sockets.0.iter().map(|socket| DatagramSocket::new(socket.try_clone()?));
        let of_threads = of_threads.collect::<io::Result<_>>()?;
        Ok((sockets, of_threads))
    }

    /// Has the program distribute the datagrams of the port, instead of the one before.
    ///
    /// # Errors
    /// When the system has no such programs, or the port is not shared.
    pub(super) fn attach(&self, program: &mut [sock_filter]) -> io::Result<()> {
        let Some(socket) = self.0.first() else { return Ok(()) };
        let len = u16::try_from(program.len()).unwrap_or(u16::MAX);
        let program = sock_fprog { len, filter: program.as_mut_ptr() };
        Ok(setsockopt(socket, AttachReusePortCbpf, &program)?)
    }
}

impl Drop for PortSockets {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

impl DatagramSocket {
    fn new(socket: net::UdpSocket) -> io::Result<Self> {
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

    /// Has the poll report nothing more. The kernel would go on while the socket is open elsewhere.
    pub(super) fn deregister(&mut self, registry: &Registry) {
        let _ = registry.deregister(&mut self.socket);
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

    /// Fills the buffers once, unless they hold datagrams that were not taken yet. Returns whether
    /// it did.
    pub(super) fn receive(&mut self) -> bool {
        if !self.can_receive || self.has_received() {
            return false;
        }
        let mut slices = self.buffers.chunks_mut(RECEIVE_BUFFER_BYTES);
        let mut slices: [IoSliceMut<'_>; RECEIVE_BUFFERS] =
            std::array::from_fn(|_| IoSliceMut::new(slices.next().unwrap_or_default()));
        let count = match self.state.recv((&self.socket).into(), &mut slices, &mut self.metas) {
            Ok(count) => {
                // With a buffer left the kernel held no more; the poll reports what comes after.
                self.can_receive = count == RECEIVE_BUFFERS;
                count
            }
            Err(error) => {
                // Another error is one datagram's, such as a refused port.
                self.can_receive = error.kind() != io::ErrorKind::WouldBlock;
                0
            }
        };
        (self.count, self.train, self.offset) = (count, 0, 0);
        true
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

/// The first socket of a port. Without a predecessor the port must be free: another process's,
/// which listens there, is an error.
fn first_on(address: SocketAddr, count: usize, is_successor: bool) -> io::Result<net::UdpSocket> {
    if address.port() != 0 {
        if !is_successor {
            // Fails where another process listens, which a shared port would not.
            drop(net::UdpSocket::bind(address)?);
        }
        return shared_on(address);
    }
    // With a shared port the kernel might choose one that is in use.
    let socket = socket_of(address)?;
    socket.bind(&address.into())?;
    socket.set_reuse_port(count > 1)?;
    Ok(socket.into())
}

fn shared_on(address: SocketAddr) -> io::Result<net::UdpSocket> {
    let socket = socket_of(address)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

fn socket_of(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    // A smaller buffer than requested is no reason to fail.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER_BYTES);
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;
    use crate::quic_server::routing::Routing;

    const ANY_PORT: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

    fn bound() -> DatagramSocket {
        let program = &mut Routing::new(1, 0, &[]).program();
        let (_, mut sockets) = PortSockets::bind(ANY_PORT.into(), 1, false, program).unwrap();
        sockets.pop().unwrap()
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
    fn kernel_is_asked_again_when_it_may_hold_more() {
        let mut socket = bound();
        let client = UdpSocket::bind(ANY_PORT).unwrap();
        for (sent, may_hold_more) in [(1, false), (RECEIVE_BUFFERS, true)] {
            for _ in 0..sent {
                client.send_to(b"one", socket.local_addr().unwrap()).unwrap();
            }
            socket.on_readable();
            assert!(socket.receive());
            while socket.next().is_some() {}
            assert_eq!(socket.has_work(), may_hold_more);
        }
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

    /// The first bytes of packets with this first byte of the connection id.
    fn initial(id: u8) -> [u8; 8] {
        [0xc0, 0, 0, 0, 1, 8, id, id]
    }

    fn handshake(id: u8) -> [u8; 8] {
        [0xe0, 0, 0, 0, 1, 8, id, id]
    }

    fn short(id: u8) -> [u8; 8] {
        [0x40, id, 0, 0, 0, 0, 0, id]
    }

    /// Sends these, and returns what each of the sockets received.
    fn distributed(sockets: &mut [&mut DatagramSocket], sent: &[[u8; 8]]) -> Vec<Vec<[u8; 8]>> {
        let client = UdpSocket::bind(ANY_PORT).unwrap();
        let to = sockets[0].local_addr().unwrap();
        let mut all = vec![Vec::new(); sockets.len()];
        // One after the other, so that the kernel joins none.
        for datagram in sent {
            client.send_to(datagram, to).unwrap();
            let count: usize = all.iter().map(Vec::len).sum();
            while all.iter().map(Vec::len).sum::<usize>() == count {
                for (socket, received) in sockets.iter_mut().zip(&mut all) {
                    socket.on_readable();
                    socket.receive();
                    received.extend(
                        socket.next().map(|(bytes, _)| <[u8; 8]>::try_from(&bytes[..]).unwrap()),
                    );
                }
            }
        }
        all
    }

    #[test]
    fn kernel_distributes_datagrams_by_their_connection_ids() {
        let routing = Routing::new(3, 0, &[]);
        let bind = PortSockets::bind(ANY_PORT.into(), 3, false, &mut routing.program());
        let (_port, mut sockets) = bind.unwrap();
        let sent: Vec<_> =
            (0..128).flat_map(|id| [initial(id), handshake(id), short(id)]).collect();
        let received = distributed(&mut sockets.iter_mut().collect::<Vec<_>>(), &sent);
        for (thread, datagrams) in received.iter().enumerate() {
            assert!(datagrams.iter().all(|datagram| routing.thread_of(datagram) == Some(thread)));
            assert_eq!(datagrams.len(), 3 * (128 - thread).div_ceil(3));
        }
    }

    /// Each process has another number of threads than the one before, or as many.
    #[test]
    fn kernel_leaves_a_predecessors_ids_to_it_until_that_is_gone() {
        let sequences: [&[usize]; 9] = [
            &[1, 1],
            &[2, 2],
            &[3, 2],
            &[1, 3],
            &[1, 2, 2],
            &[2, 3, 3],
            &[3, 2, 2],
            &[2, 2, 2],
            &[2, 1, 2, 3],
        ];
        for sequence in sequences {
            let free = UdpSocket::bind(ANY_PORT).unwrap().local_addr().unwrap();
            let mut before: Option<(Routing, PortSockets, Vec<DatagramSocket>)> = None;
            for (number, threads) in (4..).zip(sequence) {
                let places = before.as_ref().map(|(old, ..)| old.places_alone());
                let new = Routing::new(*threads, number, &places.unwrap_or_default());
                let program = &mut new.program();
                let bind = PortSockets::bind(free, *threads, before.is_some(), program);
                let (port, mut sockets) = bind.unwrap();
                if let Some((old, old_port, mut old_sockets)) = before {
                    both_have_their_own((&old, &mut old_sockets), (&new, &mut sockets));
                    drop(old_sockets);
                    drop(old_port);
                }
                port.attach(&mut new.program_alone()).unwrap();
                let generation = if number % 2 == 0 { 0 } else { 0x80 };
                let ids = generation..=generation + 0x7f;
                let sent: Vec<_> = ids.flat_map(|id| [initial(id), short(id)]).collect();
                let received = distributed(&mut sockets.iter_mut().collect::<Vec<_>>(), &sent);
                assert_eq!(received.iter().map(Vec::len).sum::<usize>(), 256);
                for (thread, datagrams) in received.iter().enumerate() {
                    assert!(are_of(&new, thread, datagrams), "{sequence:?} {number}");
                }
                before = Some((new, port, sockets));
            }
        }
    }

    fn both_have_their_own(
        (old, old_sockets): (&Routing, &mut [DatagramSocket]),
        (new, sockets): (&Routing, &mut [DatagramSocket]),
    ) {
        let ids = 0..=u8::MAX;
        let sent: Vec<_> = ids.flat_map(|id| [initial(id), handshake(id), short(id)]).collect();
        let before = old_sockets.len();
        let mut all: Vec<_> = old_sockets.iter_mut().chain(sockets).collect();
        let received = distributed(&mut all, &sent);
        let (of_old, of_new) = received.split_at(before);
        assert_eq!(of_old.iter().map(Vec::len).sum::<usize>(), 2 * 128);
        for (thread, datagrams) in of_old.iter().enumerate() {
            assert!(are_of(old, thread, datagrams));
            assert!(datagrams.iter().all(|each| each[0] != initial(0)[0]));
        }
        for (thread, datagrams) in of_new.iter().enumerate() {
            assert!(are_of(new, thread, datagrams));
        }
    }

    fn are_of(routing: &Routing, thread: usize, datagrams: &[[u8; 8]]) -> bool {
        datagrams.iter().all(|each| routing.thread_of(each) == Some(thread))
    }

    #[test]
    fn port_that_another_has_is_an_error_except_for_a_successor() {
        let first = UdpSocket::bind(ANY_PORT).unwrap();
        let program = &mut Routing::new(2, 0, &[]).program();
        let taken = first.local_addr().unwrap();
        assert!(PortSockets::bind(taken, 2, false, program).is_err());
        drop(first);
        let (_port, _sockets) = PortSockets::bind(taken, 2, false, program).unwrap();
        assert!(PortSockets::bind(taken, 2, false, program).is_err());
        assert!(PortSockets::bind(taken, 2, true, program).is_ok());
    }
}
