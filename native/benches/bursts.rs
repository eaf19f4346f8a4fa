//! The cost of sending several datagrams one by one, in one call, and as one segmented GSO batch.
//!
//! `cargo bench --bench bursts -- [DATAGRAMS] [ROUNDS]`. Over loopback, where sending runs the
//! receiver's side of the stack too; so the processor time is that of the sending thread and of the
//! receivers', which read as a leader does, GRO included. The methods alternate, and the results
//! are medians over the rounds.
//!
//! Decision: docs/decisions/0014-no-batching-on-the-way-out.md

#![allow(unsafe_code, clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use socket2::SockAddr;

fn main() {
    let words: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let (datagrams, rounds) =
        (words.first().copied().unwrap_or(20_000), words.get(1).copied().unwrap_or(9));
    println!("leaders,bytes,burst,way,sender_us,all_us");
    for (leaders, bytes) in [(1, 400), (1, 1250), (4, 400)] {
        let fixture = Fixture::new(leaders);
        for burst in [1, 2, 4, 8] {
            if burst % leaders != 0 && leaders != 1 {
                continue;
            }
            let mut results: Vec<(Method, Vec<(f64, f64)>)> =
                Method::ALL.iter().map(|method| (*method, Vec::new())).collect();
            for round in 0..=rounds {
                for (method, values) in &mut results {
                    if !method.is_of_use(leaders, burst) {
                        continue;
                    }
                    let value = fixture.measure(*method, bytes, burst, datagrams / burst);
                    if round > 0 {
                        values.push(value);
                    }
                }
            }
            for (method, values) in results.iter().filter(|(_, values)| !values.is_empty()) {
                let sender = median(values.iter().map(|(sender, _)| *sender));
                let all = median(values.iter().map(|(_, all)| *all));
                println!("{leaders},{bytes},{burst},{method:?},{sender:.2},{all:.2}");
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Method {
    /// One `sendmsg` for each datagram.
    OneByOne,
    /// One `sendmmsg` for all.
    OneCall,
    /// One `sendmsg` with UDP_SEGMENT.
    GsoBatch,
}

impl Method {
    const ALL: [Self; 3] = [Self::OneByOne, Self::OneCall, Self::GsoBatch];

    fn is_of_use(self, leaders: usize, burst: usize) -> bool {
        match self {
            Self::OneByOne => true,
            Self::OneCall => burst > 1,
            Self::GsoBatch => burst > 1 && leaders == 1,
        }
    }
}

/// A sender, and leaders that read everything.
struct Fixture {
    socket: UdpSocket,
    state: UdpSocketState,
    leaders: Vec<SocketAddr>,
    received: Arc<AtomicU64>,
    receivers_ns: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl Fixture {
    fn new(leaders: usize) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let state = UdpSocketState::new((&socket).into()).unwrap();
        let (received, receivers_ns, over): (Arc<AtomicU64>, Arc<AtomicU64>, Arc<AtomicBool>) =
            Default::default();
        let start = |_| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let address = socket.local_addr().unwrap();
            let parts = (received.clone(), receivers_ns.clone(), over.clone());
            std::thread::spawn(move || receive(&socket, &parts));
            address
        };
        let leaders = (0..leaders).map(start).collect();
        Self { socket, state, leaders, received, receivers_ns, over }
    }

    /// Microseconds of processor time per datagram: of the sending thread, and of all threads.
    fn measure(&self, method: Method, bytes: usize, burst: usize, bursts: usize) -> (f64, f64) {
        let contents = vec![7; bytes * burst];
        let count = (burst * bursts) as u64;
        let (received, theirs) =
            (self.received.load(Ordering::Acquire), self.receivers_ns.load(Ordering::Acquire));
        let (mut mine, mut sent) = (0, received);
        for _ in 0..bursts {
            let before = thread_ns();
            match method {
                Method::OneByOne => self.one_by_one(&contents, bytes),
                Method::OneCall => self.one_call(&contents, bytes),
                Method::GsoBatch => self.send(&contents, self.leaders[0], Some(bytes)),
            }
            mine += thread_ns() - before;
            sent += burst as u64;
            self.wait_for(sent.saturating_sub(AHEAD_MAX));
        }
        self.wait_for(sent);
        let theirs = self.receivers_ns.load(Ordering::Acquire) - theirs;
        let each = |ns: u64| ns as f64 / 1000.0 / count as f64;
        (each(mine), each(mine + theirs))
    }

    /// Nothing is lost as long as few are in flight.
    fn wait_for(&self, count: u64) {
        while self.received.load(Ordering::Acquire) < count {
            std::thread::yield_now();
        }
    }

    fn one_by_one(&self, contents: &[u8], bytes: usize) {
        for (datagram, leader) in contents.chunks(bytes).zip(self.leaders.iter().cycle()) {
            self.send(datagram, *leader, None);
        }
    }

    fn send(&self, contents: &[u8], destination: SocketAddr, segment_size: Option<usize>) {
        let transmit = Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
        self.state.try_send((&self.socket).into(), &transmit).unwrap();
    }

    fn one_call(&self, contents: &[u8], bytes: usize) {
        let addresses: Vec<SockAddr> = self.leaders.iter().map(|each| (*each).into()).collect();
        let mut slices: Vec<libc::iovec> = contents
            .chunks(bytes)
            .map(|each| libc::iovec { iov_base: each.as_ptr().cast_mut().cast(), iov_len: bytes })
            .collect();
        let mut messages: Vec<libc::mmsghdr> = slices
            .iter_mut()
            .zip(addresses.iter().cycle())
            .map(|(slice, address)| {
                // SAFETY: all fields may be zeros: null pointers and empty parts.
                let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
                message.msg_hdr.msg_name = address.as_ptr().cast_mut().cast();
                message.msg_hdr.msg_namelen = address.len();
                message.msg_hdr.msg_iov = slice;
                message.msg_hdr.msg_iovlen = 1;
                message
            })
            .collect();
        let count = messages.len() as u32;
        // SAFETY: the messages point into `addresses`, `slices` and `contents`, which live longer.
        let sent =
            unsafe { libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), count, 0) };
        assert_eq!(sent, count as i32);
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
    }
}

fn receive(
    socket: &UdpSocket,
    (received, receivers_ns, over): &(Arc<AtomicU64>, Arc<AtomicU64>, Arc<AtomicBool>),
) {
    let state = UdpSocketState::new(socket.into()).unwrap();
    let timeout = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let mut buffers = vec![[0; 65_535]; 8];
    while !over.load(Ordering::Acquire) {
        let before = thread_ns();
        poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout)).unwrap();
        let mut metas = [RecvMeta::default(); 8];
        let mut slices: Vec<_> = buffers.iter_mut().map(|each| IoSliceMut::new(each)).collect();
        let count = state.recv(socket.into(), &mut slices, &mut metas).unwrap_or(0);
        let datagrams = |meta: &RecvMeta| meta.len.div_ceil(meta.stride.max(1)) as u64;
        let arrived = metas.iter().take(count).map(datagrams).sum();
        receivers_ns.fetch_add(thread_ns() - before, Ordering::AcqRel);
        received.fetch_add(arrived, Ordering::AcqRel);
    }
}

/// Maximum datagrams in flight.
const AHEAD_MAX: u64 = 32;

fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
