//! The feed of slots: one WebSocket to a node, read on a thread of its own.
//!
//! JavaScript is woken for the first of what is news and takes it one by one. What waits for it is
//! bounded: beyond that an event of a slot is dropped and counted, while an answer, of which each
//! feed may have one on the way, and what the connection itself comes to are always told. The
//! connection does not come back by itself, and one that is closed tells nothing any more.
//!
//! Decision: docs/decisions/0031-slot-feed-thread.md

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::PollFlags;
use tungstenite::{Error, Message, WebSocket};

use crate::limits::{ASKING_STACK_BYTES, FEED_EVENTS_MAX, FEEDS_MAX};
use crate::rpc::slot_messages::{self, Event, Feed, Kind, Said, Told};
use crate::rpc::websocket::{self, Address, Bell, Wire};
use crate::sync::thread_priority::give_way;

/// What JavaScript is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The node took the connection.
    Opened,
    /// Whether the node will send this feed's events.
    Answered(Feed, bool),
    /// Something happened to a slot.
    Slot(Event),
    /// The connection ended, or could not be opened; the last of all.
    Closed,
}

impl News {
    /// What it is, the feed's number and the slot; 0 where there is none, NaN for a slot that is
    /// none.
    #[must_use]
    pub fn numbers(self) -> [f64; 3] {
        match self {
            Self::Opened => [1.0, 0.0, 0.0],
            Self::Answered(feed, accepted) => {
                [if accepted { 2.0 } else { 3.0 }, f64::from(feed as u8), 0.0]
            }
            Self::Slot(Event { feed, kind, slot }) => {
                let what = if kind == Kind::Start { 4.0 } else { 5.0 };
                [what, f64::from(feed as u8), slot.map_or(f64::NAN, |slot| slot as f64)]
            }
            Self::Closed => [6.0, 0.0, 0.0],
        }
    }
}

/// A connection, as JavaScript's thread has it.
pub struct SlotFeed {
    shared: Arc<Shared>,
}

struct Shared {
    bell: Arc<Bell>,
    /// Tells JavaScript that there is news.
    wake: Box<dyn Fn() + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    news: VecDeque<News>,
    /// Events of slots that were dropped.
    lost: u64,
    /// By feed: what to ask for, and whether the answer to that was not taken yet.
    to_ask: [bool; 2],
    asked: [bool; 2],
}

/// Threads that live, of feeds that were closed too.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Counts a thread for as long as it is there.
struct Counted;

impl Counted {
    fn new() -> Option<Self> {
        let counted = Self;
        (THREADS.fetch_add(1, Ordering::SeqCst) < FEEDS_MAX).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::SeqCst);
    }
}

impl SlotFeed {
    /// Begins to connect; `timeout` is for all until the node has taken the connection. None where
    /// too many of them are there, or the system gives no thread.
    #[must_use]
    pub fn open(
        address: Address,
        timeout: Duration,
        wake: Box<dyn Fn() + Send + Sync>,
    ) -> Option<Self> {
        let counted = Counted::new()?;
        let bell = Arc::new(Bell::new().ok()?);
        let shared = Arc::new(Shared { bell, wake, state: Mutex::default() });
        let until = Instant::now() + timeout;
        let served = Arc::clone(&shared);
        let builder = thread::Builder::new().name("touchdown-feed".to_owned());
        let started = builder.stack_size(ASKING_STACK_BYTES).spawn(move || {
            let _counted = counted;
            served.serve(address, until);
        });
        started.is_ok().then_some(Self { shared })
    }

    /// Asks the node for a feed as soon as it has taken the connection. False while the answer to
    /// the last such question was not taken.
    pub fn subscribe(&self, feed: Feed) -> bool {
        let mut state = self.shared.state.lock();
        let State { to_ask, asked, .. } = &mut *state;
        let (Some(to_ask), Some(asked)) =
            (to_ask.get_mut(feed as usize), asked.get_mut(feed as usize))
        else {
            return false;
        };
        if std::mem::replace(asked, true) {
            return false;
        }
        *to_ask = true;
        drop(state);
        self.shared.bell.ring();
        true
    }

    /// Takes the oldest news, as numbers, and how many events were lost so far.
    #[must_use]
    pub fn next(&self) -> Option<[f64; 4]> {
        let mut state = self.shared.state.lock();
        let news = state.news.pop_front()?;
        if let News::Answered(feed, _) = news
            && let Some(asked) = state.asked.get_mut(feed as usize)
        {
            *asked = false;
        }
        let [what, feed, slot] = news.numbers();
        Some([what, feed, slot, state.lost as f64])
    }

    /// Ends the connection and its thread, at whatever they are.
    pub fn close(&self) {
        self.shared.bell.close();
    }
}

impl Drop for SlotFeed {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// The thread's life.
    fn serve(&self, address: Address, until: Instant) {
        give_way();
        // A bug that panics ends this connection alone.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            if let Some(mut socket) = websocket::open(address, &self.bell, until) {
                self.tell(News::Opened);
                // Why it ended makes no difference.
                let _ = self.listen(&mut socket);
            }
        }));
        self.tell(News::Closed);
    }

    /// Asks and reads until the connection ends.
    fn listen(&self, socket: &mut WebSocket<Wire>) -> Result<(), Error> {
        let mut told = Told::default();
        while !self.bell.is_closed() {
            while let Some(feed) = self.to_ask() {
                patient(socket.write(Message::text(feed.question())))?;
            }
            match socket.read() {
                Ok(Message::Text(text)) => self.hear(&mut told, &text),
                // The goodbye that the library has ready goes out, if it can at once.
                Ok(Message::Close(_)) => return socket.flush(),
                // What is no text says nothing, and pings are answered by the library.
                Ok(_) => {}
                Err(error) => {
                    patient(Err(error))?;
                    let is_sent = patient(socket.flush())?;
                    let flags =
                        if is_sent { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
                    self.bell.wait(socket.get_ref().socket(), flags, None)?;
                }
            }
        }
        Ok(())
    }

    fn to_ask(&self) -> Option<Feed> {
        let to_ask = &mut self.state.lock().to_ask;
        let place = to_ask.iter().position(|wanted| *wanted)?;
        *to_ask.get_mut(place)? = false;
        Feed::of(u32::try_from(place).ok()?)
    }

    fn hear(&self, told: &mut Told, text: &str) {
        match slot_messages::read(text) {
            Some(Said::Answer(feed, accepted)) => self.tell(News::Answered(feed, accepted)),
            Some(Said::Event(event)) if told.is_news(event) => self.tell(News::Slot(event)),
            _ => {}
        }
    }

    fn tell(&self, news: News) {
        if self.bell.is_closed() {
            return;
        }
        let mut state = self.state.lock();
        match news {
            News::Slot(_) if state.news.len() >= FEED_EVENTS_MAX => {
                state.lost += 1;
                return;
            }
            // A node may answer what was not asked, or more than once.
            News::Answered(feed, _) if !state.awaits(feed) => return,
            _ => state.news.push_back(news),
        }
        let is_first = state.news.len() == 1;
        drop(state);
        if is_first {
            (self.wake)();
        }
    }
}

impl State {
    /// Whether an answer was asked for and did not come.
    fn awaits(&self, feed: Feed) -> bool {
        let was_asked = self.asked.get(feed as usize) == Some(&true);
        let has_come = |news: &News| matches!(news, News::Answered(other, _) if *other == feed);
        was_asked && !self.news.iter().any(has_come)
    }
}

/// Whether it was done; not when it would block.
fn patient(done: Result<(), Error>) -> Result<bool, Error> {
    match done {
        Ok(()) => Ok(true),
        Err(Error::Io(error)) if would_block(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn would_block(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}
