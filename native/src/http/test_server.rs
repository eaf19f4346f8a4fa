//! A door with real sockets for tests: its desk is simple, its clock stands still, and the server
//! behind it does what a test says.

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::http::event_loop::{Options, run};
use crate::http::handler::{Cut, Desk, Health, Note, Request, Taken, Why};
use crate::http::listener::Listener;
use crate::http::mailbox::Listening;
use crate::http::mailbox::{Command, DoorHandle, Inlet, inlet};
pub(super) use crate::http::test_client::{GUARD, Visitor, get, post};
use crate::http::test_client::{length_of, read_head_text};
use crate::sync::clock::NS_PER_S;

pub(super) const NAME: &str = "x-secret-name";
pub(super) const RELAYS_MAX: usize = 20;

/// What the desk was told.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) taken: usize,
    pub(super) relayed: Vec<Why>,
    pub(super) open: usize,
    pub(super) cut: Vec<Cut>,
    pub(super) left: usize,
    pub(super) turned_away: usize,
    pub(super) awaited: usize,
    pub(super) idle: bool,
}

/// Answers with the body that it got; leaves those to the main thread that begin with "relay".
pub(super) struct Echo {
    book: Arc<Mutex<Book>>,
    now_ns: Arc<AtomicU64>,
    turns: Arc<AtomicU64>,
}

impl Desk for Echo {
    type News = Sender<()>;

    fn knows(&self, token: &[u8]) -> bool {
        token == b"known"
    }

    fn take(&mut self, request: &Request<'_>, out: &mut Vec<u8>) -> Taken {
        self.book.lock().unwrap().taken += 1;
        if request.body.starts_with(b"relay") {
            return Taken::Relay(Note { is_paid: true, received_ns: 7 });
        }
        let body = request.body;
        let door = request.door;
        write!(out, "HTTP/1.1 200 OK\r\ndoor: {door:?}\r\nContent-Length: {}\r\n\r\n", body.len())
            .unwrap();
        out.extend_from_slice(body);
        Taken::Answered
    }

    fn relayed(&mut self, why: Why) {
        self.book.lock().unwrap().relayed.push(why);
    }

    fn connections(&mut self, open: usize) {
        self.book.lock().unwrap().open = open;
    }

    fn health(&mut self, health: &Health<'_>, out: &mut Vec<u8>) {
        let body = format!("{health:?}");
        write!(out, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    }

    fn left(&mut self) {
        self.book.lock().unwrap().left += 1;
    }

    fn cut(&mut self, cut: Cut) {
        self.book.lock().unwrap().cut.push(cut);
    }

    fn awaited(&mut self, count: usize) {
        self.book.lock().unwrap().awaited = count;
    }

    fn refused_relay(&mut self) {
        self.book.lock().unwrap().turned_away += 1;
    }

    fn idle(&mut self) {
        self.book.lock().unwrap().idle = true;
    }

    fn news(&mut self, news: Sender<()>) {
        news.send(()).unwrap();
    }

    fn end_turn(&mut self) {
        self.turns.fetch_add(1, Ordering::SeqCst);
    }

    fn wake_in(&self, _now_ns: u64) -> Option<Duration> {
        None
    }

    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::SeqCst)
    }
}

/// A front on a thread of its own.
pub(super) struct House {
    pub(super) handle: DoorHandle<Sender<()>>,
    pub(super) book: Arc<Mutex<Book>>,
    now_ns: Arc<AtomicU64>,
    turns: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

/// Bounds of a front.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) connections: usize,
    pub(super) per_address: usize,
    pub(super) relays: usize,
    pub(super) relays_per_address: usize,
}

pub(super) const LIMITS: Limits = Limits {
    connections: 100,
    per_address: 100,
    relays: RELAYS_MAX,
    relays_per_address: RELAYS_MAX,
};

impl House {
    pub(super) fn open(
        (handle, inlet): (DoorHandle<Sender<()>>, Inlet<Sender<()>>),
        backend: SocketAddr,
        limits: Limits,
        listener: Option<Listening<Sender<()>>>,
    ) -> Self {
        let book = Arc::new(Mutex::new(Book::default()));
        let now_ns = Arc::new(AtomicU64::new(1_000_000_000));
        let turns = Arc::new(AtomicU64::new(0));
        let mut desk = Echo { book: book.clone(), now_ns: now_ns.clone(), turns: turns.clone() };
        let secret_name = NAME.to_string();
        let options = Options {
            backend,
            secret_name,
            front: 3,
            connections_max: limits.connections,
            relays_max: limits.relays,
            relays_per_address: limits.relays_per_address,
            read_timeout_ns: 10 * NS_PER_S,
        };
        if let Some(listener) = listener {
            assert!(handle.send(Command::Listen(Box::new(listener))));
        }
        let thread = std::thread::spawn(move || run(options, &mut desk, inlet).unwrap());
        Self { handle, book, now_ns, turns, thread: Some(thread) }
    }

    /// One that listens, before this server, and where.
    pub(super) fn alone(backend: SocketAddr) -> (Self, SocketAddr) {
        Self::alone_with(backend, LIMITS)
    }

    pub(super) fn alone_with(backend: SocketAddr, limits: Limits) -> (Self, SocketAddr) {
        let (listener, address) = listener(Vec::new(), limits);
        (Self::open(inlet().unwrap(), backend, limits, Some(listener)), address)
    }

    /// Returns when the loop has seen all that happened before: each round is a whole turn, and
    /// one is needed to take a connection, one to read from it, one to write behind.
    pub(super) fn settle(&self) {
        for _ in 0..4 {
            let before = self.turns.load(Ordering::SeqCst);
            let (sender, receiver) = channel();
            assert!(self.handle.send(Command::News(sender)));
            receiver.recv_timeout(GUARD).unwrap();
            while self.turns.load(Ordering::SeqCst) == before {
                std::thread::yield_now();
            }
        }
    }

    pub(super) fn pass(&self, seconds: u64) {
        self.settle();
        self.now_ns.fetch_add(seconds * 1_000_000_000, Ordering::SeqCst);
        self.settle();
    }

    pub(super) fn open_count(&self) -> usize {
        self.settle();
        self.book.lock().unwrap().open
    }

    pub(super) fn relayed(&self) -> Vec<Why> {
        self.settle();
        std::mem::take(&mut self.book.lock().unwrap().relayed)
    }

    pub(super) fn taken(&self) -> usize {
        self.settle();
        std::mem::take(&mut self.book.lock().unwrap().taken)
    }

    /// Returns when the loop is over.
    pub(super) fn join(&mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

/// One for the front that is given it and for these others, and where it listens.
pub(super) fn listener(
    others: Vec<DoorHandle<Sender<()>>>,
    limits: Limits,
) -> (Listening<Sender<()>>, SocketAddr) {
    let any = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(any, others, limits.per_address).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

impl Drop for House {
    fn drop(&mut self) {
        self.handle.send(Command::End);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(std::thread::panicking() || ended.is_ok());
        }
    }
}

/// What the server behind was sent.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Seen {
    pub(super) connection: usize,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

/// A server whose connections a test serves; told of what is seen through a channel.
pub(super) struct Backend {
    pub(super) address: SocketAddr,
    pub(super) seen: Receiver<Seen>,
    pub(super) connections: Arc<AtomicUsize>,
}

/// A connection in the hands of a test.
pub(super) struct Served {
    pub(super) number: usize,
    pub(super) stream: TcpStream,
    reader: BufReader<TcpStream>,
    seen: Sender<Seen>,
}

impl Served {
    /// Reads a request as the simplest of servers would; None where there is no further one.
    pub(super) fn request(&mut self) -> Option<Seen> {
        let head = read_head_text(&mut self.reader)?;
        let mut body = vec![0; length_of(&head)];
        self.reader.read_exact(&mut body).ok()?;
        Some(Seen { connection: self.number, head, body })
    }

    pub(super) fn tell(&self, seen: Seen) {
        // A test that has ended does not listen.
        let _ = self.seen.send(seen);
    }

    pub(super) fn tell_raw(&self, text: &str) {
        self.tell(Seen { connection: self.number, head: text.to_string(), body: Vec::new() });
    }

    pub(super) fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.reader.read(into)
    }

    pub(super) fn say(&mut self, text: &str) {
        // Who left does not hear it.
        let _ = self.stream.write_all(text.as_bytes());
    }

    /// Answers every request with its first line and the size of its body.
    pub(super) fn be_polite(mut self) {
        while let Some(seen) = self.request() {
            let text = format!("{} +{}", seen.head.lines().next().unwrap(), seen.body.len());
            self.tell(seen);
            self.say(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()));
        }
        self.tell_raw("left");
    }
}

impl Backend {
    pub(super) fn start(serve: impl Fn(Served) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, receiver) = channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        let serve = Arc::new(serve);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let number = counted.fetch_add(1, Ordering::SeqCst);
                let reader = BufReader::new(stream.try_clone().unwrap());
                let served = Served { number, stream, reader, seen: seen.clone() };
                let serve = serve.clone();
                std::thread::spawn(move || serve(served));
            }
        });
        Self { address, seen: receiver, connections }
    }

    pub(super) fn polite() -> Self {
        Self::start(Served::be_polite)
    }

    pub(super) fn next(&self) -> Seen {
        self.seen.recv_timeout(GUARD).unwrap()
    }
}
