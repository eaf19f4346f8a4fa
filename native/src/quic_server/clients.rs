//! The clients of one thread of a listener: who they are, how many there are, and what they wait
//! for.
//!
//! ```text
//! handshake ─▶ certificate with a known key ─▶ open ─▶ closed
//!     └─▶ `touchdown/1`: HELLO with an API key ──▲
//! ```
//!
//! Until its key is known a client counts as a handshake in progress, in the same bounds and with
//! the same deadline.

use std::time::Instant;

use crate::quic_server::admission::Full;
use crate::quic_server::connection::{ClientConnection, Phase};
use crate::quic_server::control::Greeting;
use crate::quic_server::followers::Followers;
use crate::quic_server::frame;
use crate::quic_server::handler::{QuicClient, QuicNumbers, QuicRefusal, StreamHandler};
use crate::quic_server::landing_waits::LandingWaits;
use crate::quic_server::limits::CLOSED_NS_MAX;
use crate::quic_server::threads::Threads;
use crate::sync::source_address::source_of;

pub(super) struct Clients {
    pub(super) waits: LandingWaits,
    pub(super) followers: Followers,
    pub(super) numbers: QuicNumbers,
    /// Closed connections that are kept.
    pub(super) closed: usize,
    /// Whether this edge has announced to its clients that it will drain.
    is_drain_announced: bool,
    /// The address that the announcement names; empty: none.
    drain_to: Box<str>,
}

impl Clients {
    pub(super) fn new(threads: &Threads, drain_to: Box<str>) -> Self {
        Self {
            waits: LandingWaits::new(threads.landings.clone()),
            followers: Followers::new(threads.followers.clone()),
            numbers: QuicNumbers::default(),
            closed: 0,
            is_drain_announced: false,
            drain_to,
        }
    }

    /// The handshake is complete: finds the client's account, or lets it say who it is.
    pub(super) fn connected<H: StreamHandler>(
        &mut self,
        connection: &mut ClientConnection,
        now: Instant,
        handler: &mut H,
    ) {
        if connection.phase != Phase::Handshake {
            return;
        }
        connection.set_protocol();
        if let Some(permit) = &connection.permit {
            permit.completed();
        }
        let public_key = connection.proved_key();
        let client = public_key.map(|key| connection.client_of(handler.key_of_certificate(&key)));
        let is_known = client.is_some_and(|client| handler.knows(&client));
        if connection.is_touchdown && !is_known {
            return connection.await_hello();
        }
        self.authenticate(connection, client, now, handler);
    }

    /// The client said who it is.
    pub(super) fn greet<H: StreamHandler>(
        &mut self,
        connection: &mut ClientConnection,
        handle: usize,
        greeting: Greeting,
        now: Instant,
        handler: &mut H,
    ) {
        let is_open = connection.client().is_some();
        let (wants_receipts, token) = match greeting {
            Greeting::Hello { wants_receipts, token } if !is_open || token.is_empty() => {
                (wants_receipts, token)
            }
            Greeting::None => return connection.close(QuicRefusal::Unauthorized, now, handler),
            Greeting::Hello { .. } | Greeting::Invalid => {
                return connection.close(QuicRefusal::Frame, now, handler);
            }
        };
        if !is_open {
            // An address to which it moved is not validated yet: anyone may have written it.
            if source_of(connection.inner.remote_address().ip()) != connection.source {
                return connection.close(QuicRefusal::Unauthorized, now, handler);
            }
            let client = handler.key_of_token(&token).map(|key| connection.client_of(key));
            self.authenticate(connection, client, now, handler);
        }
        let Phase::Open { account, .. } = connection.phase else { return };
        if wants_receipts && !self.followers.add(account, handle) {
            return connection.close(QuicRefusal::Followers, now, handler);
        }
        connection.wants_receipts = wants_receipts;
        connection.push_limits(handler);
        if let Some(control) = &mut connection.control {
            control.push(frame::tips(&handler.tips()));
        }
        if self.is_drain_announced {
            connection.push_drain(&self.drain_to);
        }
    }

    /// Opens the connection of a client, or closes it if its key is not valid or its account or
    /// address has too many.
    fn authenticate<H: StreamHandler>(
        &mut self,
        connection: &mut ClientConnection,
        client: Option<QuicClient>,
        now: Instant,
        handler: &mut H,
    ) {
        let account = client.and_then(|client| handler.account_of(&client));
        let (Some(client), Some(account)) = (client, account) else {
            // The key may be an account's all the same, and expired: the account sees the refusal.
            let is_unread =
                client.is_some_and(|client| !handler.knows(&client)) && !handler.has_read_keys();
            let refusal =
                if is_unread { QuicRefusal::KeysUnread } else { QuicRefusal::Unauthorized };
            let code = handler.refused(client.as_ref(), refusal, 0);
            return connection.close_with(code, refusal, now);
        };
        match connection.permit.as_mut().map(|permit| permit.open(account)) {
            Some(Ok(())) => {}
            Some(Err(Full::Account)) => {
                // Known from here on, so that the account sees the refusal.
                let code = handler.refused(Some(&client), QuicRefusal::AccountConnections, 0);
                return connection.close_with(code, QuicRefusal::AccountConnections, now);
            }
            Some(Err(Full::Address)) | None => {
                self.numbers.handshakes_refused += 1;
                let code = handler.code(QuicRefusal::AccountConnections);
                return connection.close_with(code, QuicRefusal::AccountConnections, now);
            }
        }
        self.numbers.handshakes -= 1;
        self.numbers.connections += 1;
        self.numbers.connected += 1;
        connection.phase = Phase::Open { key: client.key, account };
    }

    /// Whatever ended it: it no longer counts.
    pub(super) fn ended(&mut self, connection: &mut ClientConnection, handle: usize, now_ns: u64) {
        match connection.phase {
            Phase::Closed => return,
            Phase::Handshake => self.numbers.handshakes -= 1,
            Phase::Open { account, .. } => {
                self.numbers.connections -= 1;
                self.followers.remove(account, handle);
            }
        }
        connection.permit = None;
        self.closed += 1;
        connection.until_ns = now_ns.saturating_add(CLOSED_NS_MAX);
        self.numbers.streams_aborted += connection.clear_streams(&mut self.waits) as u64;
        connection.phase = Phase::Closed;
    }

    /// Counts these connections anew, with their handles.
    pub(super) fn recount<'a>(
        &mut self,
        connections: impl Iterator<Item = (usize, &'a mut ClientConnection)>,
    ) {
        self.numbers.panics += 1;
        (self.numbers.connections, self.numbers.handshakes, self.closed) = (0, 0, 0);
        self.waits.clear();
        self.followers.clear();
        for (handle, connection) in connections {
            match connection.phase {
                Phase::Closed => self.closed += 1,
                Phase::Handshake => self.numbers.handshakes += 1,
                Phase::Open { account, .. } => {
                    self.numbers.connections += 1;
                    connection.wait_again(&mut self.waits);
                    if connection.wants_receipts {
                        connection.wants_receipts = self.followers.add(account, handle);
                    }
                }
            }
        }
    }

    /// The announcement names no address from now on: clients stay at that of this edge.
    pub(super) fn name_no_address(&mut self) {
        self.drain_to = Box::default();
    }

    /// Tells these connections that this edge will drain, and those that come.
    pub(super) fn announce_drain<'a>(
        &mut self,
        connections: impl Iterator<Item = &'a mut ClientConnection>,
    ) {
        if !std::mem::replace(&mut self.is_drain_announced, true) {
            connections.for_each(|connection| connection.push_drain(&self.drain_to));
        }
    }

    /// The numbers, with those that wait for receipts.
    pub(super) fn numbers(&self) -> QuicNumbers {
        let followers = (self.followers.count() + self.waits.count()) as u64;
        QuicNumbers { followers, ..self.numbers }
    }
}
