//! Handles by which JavaScript refers to connections.
//!
//! A handle is an index in a bounded table and the number of earlier uses of that index, 16 bits
//! each, so a stale handle finds nothing instead of another connection. Never 0.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::quic::limits::PEERS_MAX;
use crate::quic::peer::Peer;

/// The connections of an engine by handle.
#[derive(Default)]
pub struct PeerTable {
    slots: RwLock<Slots>,
}

#[derive(Default)]
struct Slots {
    entries: Vec<Entry>,
    free: Vec<usize>,
}

struct Entry {
    uses: u16,
    peer: Option<Arc<Peer>>,
}

impl PeerTable {
    /// Stores the connection that `make` builds for its handle at a free index; None when full.
    pub fn insert(&self, make: impl FnOnce(u32) -> Arc<Peer>) -> Option<Arc<Peer>> {
        let mut slots = self.slots.write();
        let slot = match slots.free.pop() {
            Some(slot) => slot,
            None if slots.entries.len() < PEERS_MAX => {
                slots.entries.push(Entry { uses: 0, peer: None });
                slots.entries.len() - 1
            }
            None => return None,
        };
        let entry = slots.entries.get_mut(slot)?;
        entry.uses = entry.uses.wrapping_add(1).max(1);
        let peer = make(u32::from(entry.uses) << 16 | u32::try_from(slot).ok()?);
        entry.peer = Some(peer.clone());
        Some(peer)
    }

    /// The connection of a handle; None when it is gone.
    #[must_use]
    pub fn find(&self, id: u32) -> Option<Arc<Peer>> {
        let slots = self.slots.read();
        let entry = slots.entries.get(slot_of(id))?;
        entry.peer.as_ref().filter(|peer| peer.id == id).cloned()
    }

    /// Removes a connection.
    pub fn remove(&self, id: u32) {
        let mut slots = self.slots.write();
        let slot = slot_of(id);
        let Some(entry) = slots.entries.get_mut(slot) else {
            return;
        };
        if entry.peer.take_if(|peer| peer.id == id).is_some() {
            slots.free.push(slot);
        }
    }

    /// All connections.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Peer>> {
        self.slots.read().entries.iter().filter_map(|entry| entry.peer.clone()).collect()
    }

    /// The number of connections.
    #[must_use]
    pub fn len(&self) -> usize {
        let slots = self.slots.read();
        slots.entries.len() - slots.free.len()
    }

    /// Whether there are no connections.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn slot_of(id: u32) -> usize {
    (id & 0xffff) as usize
}
