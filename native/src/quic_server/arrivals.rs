//! Clients whose handshake did not begin yet: who is admitted, and whose handshake begins next.

use std::time::Instant;

use quinn_proto::Incoming;

use crate::quic_server::admission::{Permit, Welcome};
use crate::quic_server::connection::ClientConnection;
use crate::quic_server::limits::HANDSHAKE_NS_MAX;
use crate::quic_server::server::QuicServer;
use crate::sync::source_address::source_of;

/// A client whose handshake may begin.
pub(super) struct Arrival {
    incoming: Incoming,
    permit: Permit,
    pub(super) handshake_by_ns: u64,
}

impl QuicServer {
    pub(super) fn on_incoming(&mut self, incoming: Incoming, now_ns: u64, out: &mut Vec<u8>) {
        let source = source_of(incoming.remote_address().ip());
        let is_proved = incoming.remote_address_validated();
        let welcome = match self.drain_by_ns {
            Some(_) => Welcome::Refused,
            None => self.threads.admission.welcome(source, is_proved, now_ns),
        };
        match welcome {
            Welcome::Accepted(permit) => {
                self.clients.numbers.handshakes += 1;
                let handshake_by_ns = now_ns.saturating_add(HANDSHAKE_NS_MAX);
                self.arrivals.push_back(Arrival { incoming, permit, handshake_by_ns });
            }
            Welcome::Unproved => {
                if let Ok(transmit) = self.endpoint.retry(incoming, out) {
                    self.clients.numbers.retries += 1;
                    self.send(&transmit, out);
                }
            }
            Welcome::TooMany => {
                self.clients.numbers.handshakes_delayed += 1;
                self.endpoint.ignore(incoming);
            }
            Welcome::Refused => self.refuse(incoming, out),
        }
    }

    fn refuse(&mut self, incoming: Incoming, out: &mut Vec<u8>) {
        self.clients.numbers.handshakes_refused += 1;
        let transmit = self.endpoint.refuse(incoming, out);
        self.send(&transmit, out);
    }

    /// Begins the handshake of the client that waits for longest, unless its time is over. While
    /// draining it refuses all.
    pub(super) fn take_arrivals(&mut self, now: Instant, now_ns: u64) {
        let mut out = std::mem::take(&mut self.out);
        while let Some(arrival) = self.arrivals.pop_front() {
            out.clear();
            if self.drain_by_ns.is_none() && now_ns < arrival.handshake_by_ns {
                self.begin_handshake(arrival, now, &mut out);
                break;
            }
            self.clients.numbers.handshakes -= 1;
            self.refuse(arrival.incoming, &mut out);
        }
        self.out = out;
    }

    fn begin_handshake(&mut self, arrival: Arrival, now: Instant, out: &mut Vec<u8>) {
        let Arrival { incoming, permit, handshake_by_ns } = arrival;
        let source = source_of(incoming.remote_address().ip());
        match self.endpoint.accept(incoming, now, out, None) {
            Ok((handle, inner)) => {
                let connection = ClientConnection::new(inner, source, permit, handshake_by_ns);
                let mut connection = Box::new(connection);
                self.schedule.list(&mut connection, handle.0);
                if self.connections.len() <= handle.0 {
                    self.connections.resize_with(handle.0 + 1, || None);
                }
                if let Some(place) = self.connections.get_mut(handle.0) {
                    *place = Some(connection);
                }
            }
            Err(error) => {
                self.clients.numbers.handshakes -= 1;
                if let Some(transmit) = error.response {
                    self.send(&transmit, out);
                }
            }
        }
    }
}
