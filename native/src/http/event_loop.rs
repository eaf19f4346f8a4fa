//! Hot path: the loop of one front's thread. It waits for sockets, takes connections, and gives
//! each client that has something to do its turn, one after the other.
//!
//! Nothing in here waits but the one look at all sockets, and nobody's turn is longer than a few
//! requests, so one that sends without a pause holds the others up for no longer.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use mio::event::Event;
use mio::{Events, Poll, Token};

use crate::http::client_socket::Guest;
use crate::http::connection::{Client, Hall, Overdue, Turn};
use crate::http::dispatch::REQUEST_BYTES_MAX;
use crate::http::handler::{Cut, Desk};
use crate::http::listener::{LISTENER, Listener};
use crate::http::mailbox::{Command, Inlet, Item, WAKER};
use crate::http::permits::Places;
use crate::sync::clock::{NS_PER_MS, NS_PER_S};

/// Sockets told of at one look.
const EVENTS: usize = 256;
/// What other threads tell that is taken in before clients have their turn again.
const ITEMS_A_TURN: usize = 1024;
/// How often it is looked whether all is quiet, once nothing new comes.
const IDLE_LOOK_NS: u64 = 100 * NS_PER_MS;
/// Clients that are looked at in one turn for that.
const SWEPT_A_TURN: usize = 1024;
/// How often it is looked who keeps others waiting.
const SWEEP_NS: u64 = NS_PER_S;
/// The part of all relays that requests may have which come while they are relayed, and of which
/// nothing says that they are admitted.
const UPLOADS_PART: usize = 4;
/// Tokens before those of clients, of which each has two: its own and its relay's.
const TOKENS_BEFORE: usize = 2;

/// What a front is told when it starts.
#[derive(Debug)]
pub struct Options {
    /// The main thread's server.
    pub backend: SocketAddr,
    /// The header by which that server knows whom a request is from; random, so that no client can
    /// bring it.
    pub secret_name: String,
    /// The number of this front.
    pub front: u32,
    /// Most connections open at once; a further one is closed.
    pub connections_max: usize,
    /// Most of them that have one to that server at the same time.
    pub relays_max: usize,
    /// And most of those of one address.
    pub relays_per_address: usize,
    /// How long a client may take for a head, and for a body.
    pub read_timeout_ns: u64,
}

/// Serves until it is told to end.
///
/// # Errors
/// When sockets cannot be waited for.
pub fn run<D: Desk>(options: Options, desk: &mut D, inlet: Inlet<D::News>) -> io::Result<()> {
    Doorway::new(options, desk, inlet).run()
}

/// Whether the door is open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Life {
    Serves,
    /// Takes no connections, and says when it is idle.
    Stops,
    Ends,
}

struct Doorway<'a, D: Desk> {
    options: Options,
    /// Of the one front that listens for all.
    listener: Option<Listener<D::News>>,
    relays: Places,
    uploads: Places,
    desk: &'a mut D,
    inlet: Inlet<D::News>,
    /// By the index of their tokens.
    clients: Vec<Option<Client>>,
    open: usize,
    /// Those whose body is waited for.
    awaited: usize,
    /// Indices that are free. All that a look told is noted before one is had anew, so that nobody
    /// hears of who had it before.
    free: Vec<usize>,
    /// Clients that have something to do.
    ready: VecDeque<usize>,
    guests: Vec<Guest>,
    scratch: Vec<u8>,
    out: Vec<u8>,
    life: Life,
    is_draining: bool,
    /// Whether other threads have told of more than was taken in.
    has_items: bool,
    sweep_at_ns: u64,
    /// The first client of those that are looked at next.
    sweep_from: usize,
}

impl<'a, D: Desk> Doorway<'a, D> {
    fn new(options: Options, desk: &'a mut D, inlet: Inlet<D::News>) -> Self {
        Self {
            relays: Places::new(options.relays_max, options.relays_per_address),
            uploads: Places::new(
                (options.relays_max / UPLOADS_PART).max(1),
                (options.relays_per_address / UPLOADS_PART).max(1),
            ),
            options,
            listener: None,
            desk,
            inlet,
            clients: Vec::new(),
            open: 0,
            awaited: 0,
            free: Vec::new(),
            ready: VecDeque::new(),
            guests: Vec::new(),
            scratch: vec![0; REQUEST_BYTES_MAX],
            out: Vec::with_capacity(2 * REQUEST_BYTES_MAX),
            life: Life::Serves,
            is_draining: false,
            has_items: true,
            sweep_at_ns: 0,
            sweep_from: 0,
        }
    }

    fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        loop {
            let now_ns = self.desk.now_ns();
            let timeout = self.timeout(now_ns);
            look(&mut self.inlet.poll, &mut events, timeout)?;
            let now_ns = self.desk.now_ns();
            for event in &events {
                self.note(event);
            }
            self.take_items(now_ns)?;
            self.accept(now_ns);
            self.take_turns(now_ns);
            self.sweep(now_ns);
            self.desk.end_turn();
            match self.life {
                Life::Serves => {}
                Life::Stops => self.tell_idle(now_ns),
                Life::Ends => return Ok(()),
            }
        }
    }

    /// How long there is nothing to do but wait for sockets and other threads.
    fn timeout(&self, now_ns: u64) -> Option<Duration> {
        if self.has_items || !self.ready.is_empty() {
            return Some(Duration::ZERO);
        }
        let listener = self.listener.as_ref();
        let accept = listener.and_then(|listener| listener.due_in_ns(now_ns));
        let sweep = (self.open > 0).then(|| self.sweep_at_ns.saturating_sub(now_ns));
        let look = (self.life == Life::Stops).then_some(IDLE_LOOK_NS);
        let own = accept.into_iter().chain(sweep).chain(look).min().map(Duration::from_nanos);
        own.into_iter().chain(self.desk.wake_in(now_ns)).min()
    }

    fn note(&mut self, event: &Event) {
        match event.token() {
            WAKER => self.has_items = true,
            LISTENER => {
                if let Some(listener) = &mut self.listener {
                    listener.can_accept = true;
                }
            }
            Token(token) => {
                let token = token - TOKENS_BEFORE;
                let (index, is_relay) = (token / 2, token % 2 == 1);
                if let Some(client) = client_at(&mut self.clients, index) {
                    client.note(event, is_relay);
                    self.list(index);
                }
            }
        }
    }

    fn list(&mut self, index: usize) {
        let client = client_at(&mut self.clients, index);
        if client.is_some_and(|client| !std::mem::replace(&mut client.is_listed, true)) {
            self.ready.push_back(index);
        }
    }

    fn tell_idle(&mut self, now_ns: u64) {
        let mut clients = self.clients.iter().flatten();
        if self.ready.is_empty() && !clients.any(|client| client.is_busy(now_ns)) {
            self.desk.idle();
        }
    }

    fn take_items(&mut self, now_ns: u64) -> io::Result<()> {
        if !self.has_items {
            return Ok(());
        }
        for _ in 0..ITEMS_A_TURN {
            match self.inlet.next() {
                None => {
                    self.has_items = false;
                    return Ok(());
                }
                Some(Item::Guest(guest)) => self.welcome(guest, now_ns),
                Some(Item::Command(command)) => self.obey(command)?,
            }
        }
        Ok(())
    }

    fn obey(&mut self, command: Command<D::News>) -> io::Result<()> {
        match command {
            Command::News(news) => self.desk.news(news),
            Command::Listen(listening) => {
                let mut listener = Listener::new(*listening);
                if self.life == Life::Serves {
                    listener.register(self.inlet.poll.registry())?;
                    self.listener = Some(listener);
                }
            }
            Command::Drain => {
                self.is_draining = true;
                self.clients.iter_mut().flatten().for_each(Client::drain);
            }
            Command::Stop => {
                self.listener = None;
                self.life = if self.life == Life::Ends { Life::Ends } else { Life::Stops };
            }
            Command::End => self.life = Life::Ends,
        }
        Ok(())
    }

    fn accept(&mut self, now_ns: u64) {
        let Some(listener) = &mut self.listener else { return };
        let mut guests = std::mem::take(&mut self.guests);
        for _ in 0..listener.accept(now_ns, &mut guests) {
            self.desk.cut(Cut::Address);
        }
        for guest in guests.drain(..) {
            self.welcome(guest, now_ns);
        }
        self.guests = guests;
    }

    fn welcome(&mut self, guest: Guest, now_ns: u64) {
        if self.life != Life::Serves {
            return;
        }
        if self.open >= self.options.connections_max {
            self.desk.cut(Cut::Full);
            return;
        }
        let index = self.free.pop().unwrap_or(self.clients.len());
        let registry = self.inlet.poll.registry();
        let client = Client::new(guest, registry, client_token(index), now_ns).ok();
        if client.is_none() {
            self.free.push(index);
        } else {
            self.open += 1;
        }
        match self.clients.get_mut(index) {
            Some(place) => *place = client,
            None => self.clients.push(client),
        }
        self.desk.connections(self.open);
    }

    fn close(&mut self, index: usize) {
        if let Some(client) = self.clients.get_mut(index).and_then(Option::take) {
            self.open -= 1;
            if client.is_awaited() {
                self.count_awaited(true, false);
                self.desk.left();
            }
            self.free.push(index);
            self.desk.connections(self.open);
        }
    }

    /// Counts a client whose body was waited for, or is now.
    fn count_awaited(&mut self, was: bool, is: bool) {
        if was == is {
            return;
        }
        self.awaited = if is { self.awaited + 1 } else { self.awaited - 1 };
        self.desk.awaited(self.awaited);
    }

    /// One turn for each that has something to do now.
    fn take_turns(&mut self, now_ns: u64) {
        if self.life == Life::Ends {
            return;
        }
        for _ in 0..self.ready.len() {
            let Some(index) = self.ready.pop_front() else { return };
            let Some(client) = client_at(&mut self.clients, index) else { continue };
            client.is_listed = false;
            let was_awaited = client.is_awaited();
            let mut hall = Hall {
                desk: &mut *self.desk,
                registry: self.inlet.poll.registry(),
                backend: self.options.backend,
                secret_name: &self.options.secret_name,
                front: self.options.front,
                scratch: &mut self.scratch,
                out: &mut self.out,
                relay_token: relay_token(index),
                now_ns,
                is_draining: self.is_draining,
                relays: &self.relays,
                uploads: &self.uploads,
            };
            let turn = client.turn(&mut hall);
            let is_awaited = client.is_awaited();
            self.count_awaited(was_awaited, is_awaited);
            match turn {
                Turn::Ends => self.close(index),
                Turn::More => self.list(index),
                Turn::Waits => {}
            }
        }
    }

    fn sweep(&mut self, now_ns: u64) {
        if self.open == 0 || now_ns < self.sweep_at_ns {
            return;
        }
        let end = self.clients.len().min(self.sweep_from + SWEPT_A_TURN);
        let rest = std::mem::replace(&mut self.sweep_from, end)..end;
        if end == self.clients.len() {
            self.sweep_from = 0;
            self.sweep_at_ns = now_ns.saturating_add(SWEEP_NS);
        }
        for index in rest {
            let Some(client) = client_at(&mut self.clients, index) else { continue };
            match client.overdue(now_ns, self.options.read_timeout_ns) {
                None => continue,
                Some(Overdue::Slow) => self.desk.cut(Cut::Slow),
                Some(Overdue::Idle) => {}
            }
            self.close(index);
        }
    }
}

fn look(poll: &mut Poll, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
    match poll.poll(events, timeout) {
        // There are no events then.
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
        looked => looked,
    }
}

fn client_at(clients: &mut [Option<Client>], index: usize) -> Option<&mut Client> {
    clients.get_mut(index)?.as_mut()
}

fn client_token(index: usize) -> Token {
    Token(TOKENS_BEFORE + 2 * index)
}

fn relay_token(index: usize) -> Token {
    Token(TOKENS_BEFORE + 2 * index + 1)
}

#[cfg(test)]
#[path = "event_loop_tests.rs"]
mod tests;
