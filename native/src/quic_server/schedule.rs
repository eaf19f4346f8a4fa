//! Which connections of a thread have something to do, and when.

use std::collections::{BTreeSet, VecDeque};

use crate::quic_server::connection::{ClientConnection, Phase};
use crate::sync::clock::NEVER_NS;

#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// When connections have something to do, and their handles.
    pub(super) timers: BTreeSet<(u64, usize)>,
    /// Handles of the connections to drive, in order: those of clients whose key is known.
    pub(super) listed: VecDeque<usize>,
    /// The others, whose handshake is in progress or that have ended.
    pub(super) unknown: VecDeque<usize>,
}

impl Schedule {
    /// The connection is driven after those that are listed already, once.
    pub(super) fn list(&mut self, connection: &mut ClientConnection, handle: usize) {
        if !connection.is_listed {
            connection.is_listed = true;
            match connection.phase {
                Phase::Open { .. } => self.listed.push_back(handle),
                Phase::Handshake | Phase::Closed => self.unknown.push_back(handle),
            }
        }
    }

    /// Whether a connection is to be driven.
    pub(super) fn has_listed(&self) -> bool {
        !(self.listed.is_empty() && self.unknown.is_empty())
    }

    /// The time of the next timer.
    pub(super) fn first_ns(&self) -> Option<u64> {
        self.timers.first().map(|(at_ns, _)| *at_ns)
    }

    /// Takes the next timer that is due, and returns its connection.
    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<usize> {
        self.first_ns().filter(|at_ns| *at_ns <= now_ns)?;
        self.timers.pop_first().map(|(_, handle)| handle)
    }

    /// Sets the one timer of the connection; `NEVER_NS`: it has none.
    pub(super) fn set_timer(
        &mut self,
        connection: &mut ClientConnection,
        handle: usize,
        at_ns: u64,
    ) {
        let was_ns = std::mem::replace(&mut connection.armed_ns, at_ns);
        if was_ns == at_ns {
            return;
        }
        if was_ns != NEVER_NS {
            self.timers.remove(&(was_ns, handle));
        }
        if at_ns != NEVER_NS {
            self.timers.insert((at_ns, handle));
        }
    }
}
