//! Hot path: datagrams on their way to the socket.
//!
//! Datagrams of equal size to one address leave in one system call if the kernel supports
//! segmentation; a single datagram, the usual case, is never copied. If the socket's buffer is
//! full, the connection gets the `GsoBatch` back and retries later; every other error is a lost
//! packet, which QUIC repairs.

#[cfg(test)]
use std::cell::Cell;
use std::mem;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, net::IpAddr};

use quinn_proto::Transmit;
use quinn_udp::{EcnCodepoint, UdpSocketState};

use crate::quic::limits::SEGMENTS_MAX;

/// One bound UDP socket.
pub struct Socket {
    pub(crate) index: usize,
    pub(crate) udp: UdpSocket,
    pub(crate) state: UdpSocketState,
    /// Datagrams that the kernel rejected, other than for a full buffer.
    pub(crate) send_errors: AtomicU64,
}

/// Datagrams of equal size to one address; the last may be shorter.
pub struct GsoBatch {
    bytes: Vec<u8>,
    segment: usize,
    count: usize,
    destination: SocketAddr,
    source: Option<IpAddr>,
    ecn: Option<quinn_proto::EcnCodepoint>,
}

/// Collects datagrams while a thread drives a connection.
#[derive(Default)]
pub struct GsoWriter {
    /// Buffer for quinn-proto's next datagram.
    pub(crate) scratch: Vec<u8>,
    spare: Vec<u8>,
    pub(crate) gso_batch: Option<GsoBatch>,
}

impl GsoWriter {
    /// Adds the datagram in `scratch`. Returns a batch that the socket could not accept.
    pub(crate) fn push(&mut self, transmit: &Transmit, socket: &Socket) -> Option<GsoBatch> {
        if let Some(gso_batch) = &mut self.gso_batch
            && gso_batch.append(&self.scratch, transmit)
        {
            self.scratch.clear();
            return None;
        }
        let stalled = self.flush(socket);
        let bytes = mem::replace(&mut self.scratch, mem::take(&mut self.spare));
        self.scratch.clear();
        self.gso_batch = Some(GsoBatch {
            segment: bytes.len(),
            bytes,
            count: 1,
            destination: transmit.destination,
            source: transmit.src_ip,
            ecn: transmit.ecn,
        });
        stalled
    }

    /// Sends the collected datagrams. Returns the batch when the socket's buffer is full.
    pub(crate) fn flush(&mut self, socket: &Socket) -> Option<GsoBatch> {
        let gso_batch = self.gso_batch.take()?;
        if !socket.send(&gso_batch) {
            return Some(gso_batch);
        }
        self.recycle(gso_batch);
        None
    }

    /// Reuses a sent batch's memory.
    pub(crate) fn recycle(&mut self, gso_batch: GsoBatch) {
        if self.spare.capacity() < gso_batch.bytes.capacity() {
            self.spare = gso_batch.bytes;
        }
    }

    /// Discards the collected datagrams; for use after a panic.
    pub(crate) fn clear(&mut self) {
        self.gso_batch = None;
        self.scratch.clear();
    }
}

impl GsoBatch {
    fn append(&mut self, datagram: &[u8], transmit: &Transmit) -> bool {
        // A shorter datagram ends a batch: its size is then no multiple of the segment.
        let open = self.bytes.len() == self.segment * self.count && self.count < SEGMENTS_MAX;
        let fits = datagram.len() <= self.segment
            && self.destination == transmit.destination
            && self.source == transmit.src_ip
            && self.ecn == transmit.ecn;
        if !open || !fits {
            return false;
        }
        self.bytes.extend_from_slice(datagram);
        self.count += 1;
        true
    }
}

#[cfg(test)]
thread_local! {
    /// The network interface of a test's thread: whether it takes nothing for now, and its largest
    /// datagram. That of the loopback never has a full buffer, and takes any size.
    pub(crate) static INTERFACE: Cell<(bool, usize)> = const { Cell::new((false, usize::MAX)) };
}

impl Socket {
    /// Sends a batch; false when the socket's buffer is full and the caller should retry.
    pub(crate) fn send(&self, gso_batch: &GsoBatch) -> bool {
        #[cfg(test)]
        {
            let (is_full, bytes_max) = INTERFACE.get();
            if is_full || gso_batch.segment > bytes_max {
                return !is_full;
            }
        }
        let segments_max = self.state.max_gso_segments().max(1);
        if gso_batch.count <= segments_max {
            return self.send_bytes(gso_batch, &gso_batch.bytes, gso_batch.count > 1);
        }
        // No segmentation: one call each. A full buffer in the middle loses the rest.
        let mut all = true;
        for datagram in gso_batch.bytes.chunks(gso_batch.segment.max(1)) {
            all &= self.send_bytes(gso_batch, datagram, false);
        }
        if !all {
            self.send_errors.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    fn send_bytes(&self, gso_batch: &GsoBatch, contents: &[u8], segmented: bool) -> bool {
        let transmit = quinn_udp::Transmit {
            destination: gso_batch.destination,
            ecn: gso_batch.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8)),
            contents,
            segment_size: segmented.then_some(gso_batch.segment),
            src_ip: gso_batch.source,
        };
        match self.state.try_send((&self.udp).into(), &transmit) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(_) => {
                // An MTU probe larger than the link's MTU fails here too; quinn-proto treats it as
                // lost.
                self.send_errors.fetch_add(1, Ordering::Relaxed);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{GsoWriter, Socket};
    use quinn_proto::Transmit;
    use quinn_udp::UdpSocketState;
    use std::net::{SocketAddr, UdpSocket};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    fn socket() -> Socket {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let state = UdpSocketState::new((&udp).into()).unwrap();
        Socket { index: 0, udp, state, send_errors: AtomicU64::new(0) }
    }

    fn push(gso_writer: &mut GsoWriter, socket: &Socket, destination: SocketAddr, datagram: &[u8]) {
        gso_writer.scratch.extend_from_slice(datagram);
        let size = datagram.len();
        let transmit = Transmit { destination, ecn: None, size, segment_size: None, src_ip: None };
        assert!(gso_writer.push(&transmit, socket).is_none(), "a full buffer");
    }

    fn received(from: &UdpSocket) -> Vec<u8> {
        from.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut datagram = vec![0; 2048];
        let size = from.recv(&mut datagram).unwrap();
        datagram.truncate(size);
        datagram
    }

    #[test]
    fn equal_datagrams_to_one_leader_are_batched_and_arrive_separately() {
        let (socket, mut gso_writer) = (socket(), GsoWriter::default());
        let leaders = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let [one, other] = leaders.each_ref().map(|leader| leader.local_addr().unwrap());
        let mut counts = Vec::new();
        // The shorter one ends the batch; a larger one or another address begins a new batch.
        for (leader, size, fill) in [
            (one, 300, 1),
            (one, 300, 2),
            (one, 200, 3),
            (one, 200, 4),
            (one, 900, 5),
            (other, 9, 6),
        ] {
            push(&mut gso_writer, &socket, leader, &vec![fill; size]);
            counts.push(gso_writer.gso_batch.as_ref().map_or(0, |gso_batch| gso_batch.count));
        }
        assert_eq!(counts, [1, 2, 3, 1, 1, 1]);
        assert!(gso_writer.flush(&socket).is_none() && gso_writer.gso_batch.is_none());
        let [here, there] = &leaders;
        for (size, fill) in [(300, 1), (300, 2), (200, 3), (200, 4), (900, 5)] {
            assert_eq!(received(here), vec![fill; size]);
        }
        assert_eq!(received(there), [6; 9]);
        assert_eq!(socket.send_errors.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_batch_ends_at_its_size_limit() {
        let (socket, mut gso_writer) = (socket(), GsoWriter::default());
        let leader = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = leader.local_addr().unwrap();
        let count = super::SEGMENTS_MAX as u8 + 1;
        for fill in 0..count {
            push(&mut gso_writer, &socket, address, &[fill; 100]);
        }
        assert_eq!(gso_writer.gso_batch.as_ref().map(|gso_batch| gso_batch.count), Some(1));
        assert!(gso_writer.flush(&socket).is_none());
        for fill in 0..count {
            assert_eq!(received(&leader), [fill; 100]);
        }
    }
}
