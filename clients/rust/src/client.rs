//! A client: it keeps one connection to an edge, and hands transactions to it.
//!
//! ```text
//!            ┌──────────── attempt failed, or connection lost: wait, try again ───────────┐
//!            ▼                                                                            │
//!  Connecting ──▶ Connected ──▶ draining, with a new address: wait, connect there first ──┤
//!      │                                                                                  │
//!      └── `reconnects_max` attempts in a row failed, or the edge refuses for good ──▶ Failed
//! ```
//!
//! A connection is lost also where the edge does not acknowledge a transaction, as after a crash.
//!
//! A transaction waits for a connection, for stream credit and for its verdict, within one timeout.
//! Where the connection is lost meanwhile the client sends it again on the next one: an edge merges
//! repetitions, and a block holds a transaction once.
//!
//! An edge says that it drains to each new client until it ends. So the client does not go back to an
//! address that it left within 5 minutes, nor leaves more than 8 in that time: it stays until the edge
//! closes the connection.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, broadcast, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::config::{Config, Protocol};
use crate::connection::{Connection, Control, Failure};
use crate::error::{ConnectError, SendError};
use crate::event::Event;
use crate::tls::client_config;
use crate::verdict::Verdict;

/// Largest transaction: the network's own limit.
const TRANSACTION_BYTES_MAX: usize = 4096;
/// The flags byte: docs/quic.md, "Streams".
const FLAGS: u8 = 0x40;
const SEND_ONCE: u8 = 0x01;
const WHEN_LANDED: u8 = 0x02;
/// How long an edge delays a verdict at most.
const LANDING_TIMEOUT: Duration = Duration::from_secs(120);
/// How long the client does not follow a DRAINING to an address that it left: longer than an edge
/// drains by default (75 s).
const LEFT_FOR: Duration = Duration::from_secs(5 * 60);
/// Addresses that the client leaves within `LEFT_FOR` at most.
const MOVES_MAX: usize = 8;

/// How a transaction is submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmitOptions {
    /// The edge sends it once and never again. A client that loses the connection before the verdict
    /// submits it once more, perhaps to another edge, which sends it once too.
    pub once: bool,
    /// The verdict on an accepted transaction comes once its end is known.
    pub when_landed: bool,
}

impl SubmitOptions {
    fn flags(self) -> Option<u8> {
        let once = if self.once { SEND_ONCE } else { 0 };
        let landed = if self.when_landed { WHEN_LANDED } else { 0 };
        (once | landed != 0).then_some(FLAGS | once | landed)
    }
}

#[derive(Clone)]
enum State {
    Connecting,
    Connected(Connection),
    Failed(ConnectError),
}

/// Keeps a connection to an edge. Dropping it closes the connection.
pub struct Client {
    config: Arc<Config>,
    state: Arc<watch::Sender<State>>,
    events: broadcast::Sender<Event>,
    /// Opened before the client began, for the first caller of `events`.
    first_events: Mutex<Option<broadcast::Receiver<Event>>>,
    pending: Semaphore,
    task: JoinHandle<()>,
}

impl Client {
    /// Begins to connect, in a task of the current tokio runtime.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Config`] for settings that contradict each other. That an edge cannot be
    /// reached shows later, in [`Client::ready`] and the events.
    pub fn start(config: Config) -> Result<Self, ConnectError> {
        let tls = client_config(&config)?;
        let config = Arc::new(config);
        let state = Arc::new(watch::Sender::new(State::Connecting));
        let (events, first) = broadcast::channel(config.events_max.max(1));
        let keeper =
            Keeper { config: config.clone(), tls, state: state.clone(), events: events.clone() };
        let pending = Semaphore::new(config.pending_max.min(Semaphore::MAX_PERMITS));
        let first_events = Mutex::new(Some(first));
        Ok(Self { config, state, events, first_events, pending, task: tokio::spawn(keeper.run()) })
    }

    /// Waits until the edge has authenticated the client: call it before the first transaction.
    ///
    /// # Errors
    ///
    /// Why the client gave up.
    pub async fn ready(&self) -> Result<(), ConnectError> {
        self.connection().await.map(|_| ())
    }

    /// The events since the client started, for the first caller; those from now on for others. A
    /// reader that falls behind by `Config::events_max` misses the oldest.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Event> {
        let first = self.first_events.lock().ok().and_then(|mut first| first.take());
        first.unwrap_or_else(|| self.events.subscribe())
    }

    /// Sends a transaction without a verdict, and returns once the edge has received it. What became
    /// of it is in its receipt.
    ///
    /// # Errors
    ///
    /// As [`SendError`] says.
    pub async fn send(&self, transaction: &[u8]) -> Result<(), SendError> {
        self.attempt(transaction, None, self.config.timeout).await.map(|_| ())
    }

    /// Submits a transaction and returns the edge's verdict, a refusal too.
    ///
    /// # Errors
    ///
    /// [`SendError`] where there is no verdict.
    pub async fn submit(
        &self,
        transaction: &[u8],
        options: SubmitOptions,
    ) -> Result<Verdict, SendError> {
        if self.config.protocol == Protocol::SolanaTpu {
            return Err(SendError::NoVerdicts);
        }
        let more = if options.when_landed { LANDING_TIMEOUT } else { Duration::ZERO };
        let timeout = self.config.timeout.saturating_add(more);
        let verdict = self.attempt(transaction, Some(options), timeout).await?;
        verdict.ok_or(SendError::NoVerdicts)
    }

    /// Closes the connection. Transactions without a verdict yet end with an error.
    pub fn close(&self) {
        self.task.abort();
        if let State::Connected(connection) =
            self.state.send_replace(State::Failed(ConnectError::Closed))
        {
            connection.close();
        }
    }

    /// Sends on one connection after the other; without `options` there is no verdict.
    async fn attempt(
        &self,
        transaction: &[u8],
        options: Option<SubmitOptions>,
        timeout: Duration,
    ) -> Result<Option<Verdict>, SendError> {
        if transaction.is_empty() || transaction.len() > TRANSACTION_BYTES_MAX {
            return Err(SendError::Size(transaction.len()));
        }
        let _permit = self.pending.try_acquire().map_err(|_| SendError::TooMany)?;
        let until_end = async {
            loop {
                let connection = self.connection().await?;
                let sent = match options {
                    Some(options) => {
                        connection.submit(options.flags(), transaction).await.map(Some)
                    }
                    None => connection.send(transaction).await.map(|()| None),
                };
                match sent {
                    Ok(verdict) => return Ok(verdict),
                    Err(Failure::Send(error)) => return Err(error),
                    // The keeper learns of it too, and connects again.
                    Err(Failure::Lost) => self.until_other_than(&connection).await,
                }
            }
        };
        tokio::time::timeout(timeout, until_end).await.unwrap_or(Err(SendError::Timeout))
    }

    async fn connection(&self) -> Result<Connection, ConnectError> {
        let mut state = self.state.subscribe();
        loop {
            match &*state.borrow_and_update() {
                State::Connected(connection) => return Ok(connection.clone()),
                State::Failed(error) => return Err(error.clone()),
                State::Connecting => {}
            }
            state.changed().await.map_err(|_| ConnectError::Closed)?;
        }
    }

    /// Waits until the client has left this connection.
    async fn until_other_than(&self, lost: &Connection) {
        let has_left =
            |state: &State| !matches!(state, State::Connected(current) if current.is(lost));
        // This client holds the sender: the channel is open.
        let _ = self.state.subscribe().wait_for(has_left).await;
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close();
    }
}

/// Opens connections, one after the other.
struct Keeper {
    config: Arc<Config>,
    tls: quinn::ClientConfig,
    state: Arc<watch::Sender<State>>,
    events: broadcast::Sender<Event>,
}

impl Keeper {
    async fn run(self) {
        let mut address = self.config.address.clone();
        let mut moves = Moves::default();
        let mut failed = 0;
        loop {
            let since = Instant::now();
            let error = match self.open(&address).await {
                Ok(opened) => self.keep(&address, opened, &mut moves).await,
                Err(error) => error,
            };
            // A connection that ends at once counts as a failed attempt.
            let Config { backoff_max, connect_timeout, .. } = *self.config;
            if since.elapsed() > backoff_max.saturating_add(connect_timeout) {
                failed = 0;
            }
            // An edge that another one named may be the one that cannot be reached.
            address.clone_from(&self.config.address);
            if !error.is_temporary() || failed >= self.config.reconnects_max {
                if self.enter(State::Failed(error.clone())) {
                    let _ = self.events.send(Event::Failed(error));
                }
                return;
            }
            if !self.enter(State::Connecting) {
                return;
            }
            let _ = self.events.send(Event::Disconnected(error));
            sleep(self.backoff(failed)).await;
            failed += 1;
        }
    }

    /// Enters a state, unless the client was closed; returns whether it did.
    fn enter(&self, next: State) -> bool {
        self.state.send_if_modified(|state| {
            let is_open = !matches!(state, State::Failed(ConnectError::Closed));
            if is_open {
                *state = next;
            }
            is_open
        })
    }

    async fn open(&self, address: &str) -> Result<Opened, ConnectError> {
        let (connection, control) = Connection::open(&self.config, &self.tls, address).await?;
        self.enter(State::Connected(connection.clone()));
        let _ = self.events.send(Event::Connected { address: address.to_owned() });
        Ok((connection, control))
    }

    /// Serves a connection to this address until it is over, and goes elsewhere before that where
    /// the edge says so. Returns why it is over.
    async fn keep(&self, address: &str, opened: Opened, moves: &mut Moves) -> ConnectError {
        let mut address = address.to_owned();
        let (mut connection, mut control) = opened;
        // Connections that an edge drains: what is under way on them ends there.
        let mut left: Vec<Serving> = Vec::new();
        loop {
            let (draining, mut drained) = watch::channel(None);
            let run = connection.clone().run(control, self.events.clone(), draining);
            let mut serving = Serving(tokio::spawn(run));
            let next = tokio::select! {
                error = &mut serving.0 => return error.unwrap_or(ConnectError::Closed),
                Ok(next) = drained.wait_for(Option::is_some) => next.clone().unwrap_or_default(),
            };
            if !moves.may_go(&address, &next) {
                return (&mut serving.0).await.unwrap_or(ConnectError::Closed);
            }
            sleep(self.backoff(moves.count())).await;
            match self.open(&next).await {
                Ok(opened) => {
                    moves.left(std::mem::replace(&mut address, next));
                    left.retain(|serving| !serving.0.is_finished());
                    left.push(serving);
                    (connection, control) = opened;
                }
                // The old one serves until the edge closes it.
                Err(_) => return (&mut serving.0).await.unwrap_or(ConnectError::Closed),
            }
        }
    }

    /// The wait after so many failed attempts: doubled each time, and between half and all of it, so
    /// that clients of one edge do not come back together.
    fn backoff(&self, failed: u32) -> Duration {
        let full = self.config.backoff_min.saturating_mul(1 << failed.min(16));
        let full = full.min(self.config.backoff_max);
        full / 2 + full.mul_f64(random_share() / 2.0)
    }
}

type Opened = (Connection, Option<Control>);

/// The addresses that the client left because their edges drained, and when; `MOVES_MAX` at most.
#[derive(Default)]
struct Moves(Vec<(String, Instant)>);

impl Moves {
    /// Whether the client may go from one address to another.
    fn may_go(&mut self, from: &str, to: &str) -> bool {
        self.0.retain(|(_, since)| since.elapsed() < LEFT_FOR);
        let is_known = from == to || self.0.iter().any(|(address, _)| address == to);
        !is_known && self.0.len() < MOVES_MAX
    }

    fn left(&mut self, address: String) {
        self.0.push((address, Instant::now()));
    }

    fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

/// The task that reads a connection's control stream; it ends with its owner.
struct Serving(JoinHandle<ConnectError>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// From 0 to 1.
fn random_share() -> f64 {
    let mut bytes = [0; 2];
    // Without randomness the wait is half as long, which is a wait too.
    let _ = ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes);
    f64::from(u16::from_le_bytes(bytes)) / f64::from(u16::MAX)
}
