//! A path between an engine and a leader that alters datagrams.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The sender of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Engine,
    Leader,
}

/// Forwards between an engine and a leader; `alter` maps each datagram to the datagrams that arrive.
pub struct Path {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Path {
    pub fn start(
        leader: SocketAddr,
        alter: impl FnMut(From, &[u8]) -> Vec<Vec<u8>> + Send + 'static,
    ) -> Self {
        Self::with_delay(leader, Duration::ZERO, alter)
    }

    /// The same, with a delay for each datagram.
    pub fn with_delay(
        leader: SocketAddr,
        delay: Duration,
        mut alter: impl FnMut(From, &[u8]) -> Vec<Vec<u8>> + Send + 'static,
    ) -> Self {
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        for socket in [&near, &far] {
            socket.set_nonblocking(true).unwrap();
        }
        let address = near.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let (mut client, mut under_way) = (None, VecDeque::new());
            let mut buffer = [0; 65_535];
            while !stopped.load(Ordering::Relaxed) {
                let due = Instant::now() + delay;
                let mut idle = true;
                while let Ok((size, from)) = near.recv_from(&mut buffer) {
                    client = Some(from);
                    let altered = alter(From::Engine, &buffer[..size]);
                    under_way.extend(altered.into_iter().map(|datagram| (due, datagram, leader)));
                }
                while let Ok((size, _)) = far.recv_from(&mut buffer) {
                    let Some(client) = client else { continue };
                    let altered = alter(From::Leader, &buffer[..size]);
                    under_way.extend(altered.into_iter().map(|datagram| (due, datagram, client)));
                }
                while under_way.front().is_some_and(|(due, ..)| *due <= Instant::now()) {
                    let Some((_, datagram, to)) = under_way.pop_front() else { break };
                    let from = if to == leader { &far } else { &near };
                    let _ = from.send_to(&datagram, to);
                    idle = false;
                }
                if idle {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
        });
        Self { address, stop, thread: Some(thread) }
    }

    /// Alters the leader's datagrams, and forwards the engine's unchanged.
    pub fn altering_the_leader(
        leader: SocketAddr,
        mut alter: impl FnMut(&[u8]) -> Vec<Vec<u8>> + Send + 'static,
    ) -> Self {
        Self::start(leader, move |from, datagram| match from {
            From::Engine => vec![datagram.to_vec()],
            From::Leader => alter(datagram),
        })
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
