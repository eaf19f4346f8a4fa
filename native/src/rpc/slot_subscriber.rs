//! Slot notifications: one WebSocket to a node, read on its own thread.
//!
//! The first pending notification wakes JavaScript, which takes them one by one. The queue is
//! bounded: beyond that a slot event is dropped and counted, while subscription responses (at most
//! one pending per subscription) and connection events are always delivered. The connection does
//! not reconnect, and a closed one delivers nothing more.
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

use crate::rpc::limits::{RPC_THREAD_STACK_BYTES, SLOT_NOTIFICATIONS_MAX, SLOT_SUBSCRIBERS_MAX};
use crate::rpc::slot_messages::{self, Event, Kind, LastSlots, ServerMessage, Subscription};
use crate::rpc::websocket::{self, Address, Interrupt, MaybeTlsStream};
use crate::sync::thread_priority::lower_priority;

/// A notification for JavaScript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotNotification {
    /// The node accepted the connection.
    Opened,
    /// Whether the node accepted this subscription.
    Subscribed(Subscription, bool),
    /// A slot event.
    Slot(Event),
    /// The connection ended, or could not be opened; always the last notification.
    Closed,
}

impl SlotNotification {
    /// The type, the subscription's number and the slot; 0 if there is none, NaN for an invalid
    /// slot.
    #[must_use]
    pub fn numbers(self) -> [f64; 3] {
        match self {
            Self::Opened => [1.0, 0.0, 0.0],
            Self::Subscribed(subscription, accepted) => {
                [if accepted { 2.0 } else { 3.0 }, f64::from(subscription as u8), 0.0]
            }
            Self::Slot(Event { subscription, kind, slot }) => {
                let what = if kind == Kind::Start { 4.0 } else { 5.0 };
                [what, f64::from(subscription as u8), slot.map_or(f64::NAN, |slot| slot as f64)]
            }
            Self::Closed => [6.0, 0.0, 0.0],
        }
    }
}

/// A connection, as used by JavaScript's thread.
pub struct SlotSubscriber {
    shared: Arc<Shared>,
}

struct Shared {
    interrupt: Arc<Interrupt>,
    /// Notifies JavaScript that notifications are pending.
    wake: Box<dyn Fn() + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    notifications: VecDeque<SlotNotification>,
    /// Dropped slot events.
    dropped: u64,
    /// Per subscription: the request to send, and whether its response is still pending.
    to_subscribe: [bool; 2],
    subscribing: [bool; 2],
}

/// Running threads, including those of closed connections.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Counts a thread while it runs.
struct Counted;

impl Counted {
    fn new() -> Option<Self> {
        let counted = Self;
        (THREADS.fetch_add(1, Ordering::SeqCst) < SLOT_SUBSCRIBERS_MAX).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::SeqCst);
    }
}

impl SlotSubscriber {
    /// Starts to connect; `timeout` covers everything until the node has accepted the connection.
    /// None if too many connections exist, or the system starts no thread.
    #[must_use]
    pub fn open(
        address: Address,
        timeout: Duration,
        wake: Box<dyn Fn() + Send + Sync>,
    ) -> Option<Self> {
        let counted = Counted::new()?;
        let interrupt = Arc::new(Interrupt::new().ok()?);
        let shared = Arc::new(Shared { interrupt, wake, state: Mutex::default() });
        let until = Instant::now() + timeout;
        let served = Arc::clone(&shared);
        let builder = thread::Builder::new().name("touchdown-feed".to_owned());
        let started = builder.stack_size(RPC_THREAD_STACK_BYTES).spawn(move || {
            let _counted = counted;
            served.serve(address, until);
        });
        started.is_ok().then_some(Self { shared })
    }

    /// Subscribes as soon as the node has accepted the connection. False while the response to the
    /// last such request was not taken.
    pub fn subscribe(&self, subscription: Subscription) -> bool {
        let mut state = self.shared.state.lock();
        let State { to_subscribe, subscribing, .. } = &mut *state;
        let (Some(to_subscribe), Some(subscribing)) = (
            to_subscribe.get_mut(subscription as usize),
            subscribing.get_mut(subscription as usize),
        ) else {
            return false;
        };
        if std::mem::replace(subscribing, true) {
            return false;
        }
        *to_subscribe = true;
        drop(state);
        self.shared.interrupt.signal();
        true
    }

    /// Takes the oldest notification, as numbers, and the number of events dropped so far.
    #[must_use]
    pub fn next(&self) -> Option<[f64; 4]> {
        let mut state = self.shared.state.lock();
        let notification = state.notifications.pop_front()?;
        if let SlotNotification::Subscribed(subscription, _) = notification
            && let Some(subscribing) = state.subscribing.get_mut(subscription as usize)
        {
            *subscribing = false;
        }
        let [what, subscription, slot] = notification.numbers();
        Some([what, subscription, slot, state.dropped as f64])
    }

    /// Ends the connection and its thread, in any state.
    pub fn close(&self) {
        self.shared.interrupt.close();
    }
}

impl Drop for SlotSubscriber {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// The thread's main function.
    fn serve(&self, address: Address, until: Instant) {
        lower_priority();
        // A panic ends this connection only.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            if let Some(mut socket) = websocket::open(address, &self.interrupt, until) {
                self.push(SlotNotification::Opened);
                // The reason makes no difference.
                let _ = self.listen(&mut socket);
            }
        }));
        self.push(SlotNotification::Closed);
    }

    /// Subscribes and reads until the connection ends.
    fn listen(&self, socket: &mut WebSocket<MaybeTlsStream>) -> Result<(), Error> {
        let mut last_slots = LastSlots::default();
        while !self.interrupt.is_closed() {
            while let Some(subscription) = self.to_subscribe() {
                ignore_would_block(socket.write(Message::text(subscription.request())))?;
            }
            match socket.read() {
                Ok(Message::Text(text)) => self.handle_text(&mut last_slots, &text),
                // Sends the library's pending close frame, if possible without blocking.
                Ok(Message::Close(_)) => return socket.flush(),
                // Only text messages matter, and the library responds to pings.
                Ok(_) => {}
                Err(error) => {
                    ignore_would_block(Err(error))?;
                    let is_sent = ignore_would_block(socket.flush())?;
                    let flags =
                        if is_sent { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
                    self.interrupt.wait(socket.get_ref().socket(), flags, None)?;
                }
            }
        }
        Ok(())
    }

    fn to_subscribe(&self) -> Option<Subscription> {
        let to_subscribe = &mut self.state.lock().to_subscribe;
        let index = to_subscribe.iter().position(|wanted| *wanted)?;
        *to_subscribe.get_mut(index)? = false;
        Subscription::of(u32::try_from(index).ok()?)
    }

    fn handle_text(&self, last_slots: &mut LastSlots, text: &str) {
        match slot_messages::read(text) {
            Some(ServerMessage::Response(subscription, accepted)) => {
                self.push(SlotNotification::Subscribed(subscription, accepted))
            }
            Some(ServerMessage::Event(event)) if last_slots.is_new(event) => {
                self.push(SlotNotification::Slot(event))
            }
            _ => {}
        }
    }

    fn push(&self, notification: SlotNotification) {
        if self.interrupt.is_closed() {
            return;
        }
        let mut state = self.state.lock();
        match notification {
            SlotNotification::Slot(_) if state.notifications.len() >= SLOT_NOTIFICATIONS_MAX => {
                state.dropped += 1;
                return;
            }
            // A node may send an unsolicited response, or more than one.
            SlotNotification::Subscribed(subscription, _) if !state.awaits(subscription) => return,
            _ => state.notifications.push_back(notification),
        }
        let is_first = state.notifications.len() == 1;
        drop(state);
        if is_first {
            (self.wake)();
        }
    }
}

impl State {
    /// Whether a response is still expected.
    fn awaits(&self, subscription: Subscription) -> bool {
        let is_subscribing = self.subscribing.get(subscription as usize) == Some(&true);
        let is_response = |notification: &SlotNotification| match notification {
            SlotNotification::Subscribed(other, _) => *other == subscription,
            _ => false,
        };
        is_subscribing && !self.notifications.iter().any(is_response)
    }
}

/// Whether it completed; false if it would block.
fn ignore_would_block(done: Result<(), Error>) -> Result<bool, Error> {
    match done {
        Ok(()) => Ok(true),
        Err(Error::Io(error)) if would_block(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn would_block(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}
