//! Handles: how JavaScript names a connection.
//!
//! A handle is a place in a bounded table and how often that place was used before, 16 bits each,
//! so that a stale handle finds nothing instead of someone else's connection. Never 0.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::limits::PEERS_MAX;
use crate::quic::peer::Peer;

/// The connections of an engine by handle.
#[derive(Default)]
pub struct Table {
    places: RwLock<Places>,
}

#[derive(Default)]
struct Places {
    entries: Vec<Entry>,
    free: Vec<usize>,
}

struct Entry {
    uses: u16,
    peer: Option<Arc<Peer>>,
}

impl Table {
    /// Puts the connection that `make` builds for its handle in a free place; None when full.
    pub fn insert(&self, make: impl FnOnce(u32) -> Arc<Peer>) -> Option<Arc<Peer>> {
        let mut places = self.places.write();
        let place = match places.free.pop() {
            Some(place) => place,
            None if places.entries.len() < PEERS_MAX => {
                places.entries.push(Entry { uses: 0, peer: None });
                places.entries.len() - 1
            }
            None => return None,
        };
        let entry = places.entries.get_mut(place)?;
        entry.uses = entry.uses.wrapping_add(1).max(1);
        let peer = make(u32::from(entry.uses) << 16 | u32::try_from(place).ok()?);
        entry.peer = Some(peer.clone());
        Some(peer)
    }

    /// The connection that a handle names; None when it is gone.
    #[must_use]
    pub fn find(&self, id: u32) -> Option<Arc<Peer>> {
        let places = self.places.read();
        let entry = places.entries.get(place_of(id))?;
        entry.peer.as_ref().filter(|peer| peer.id == id).cloned()
    }

    /// Forgets a connection.
    pub fn remove(&self, id: u32) {
        let mut places = self.places.write();
        let place = place_of(id);
        let Some(entry) = places.entries.get_mut(place) else {
            return;
        };
        if entry.peer.take_if(|peer| peer.id == id).is_some() {
            places.free.push(place);
        }
    }

    /// All connections there are.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Peer>> {
        self.places.read().entries.iter().filter_map(|entry| entry.peer.clone()).collect()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        let places = self.places.read();
        places.entries.len() - places.free.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn place_of(id: u32) -> usize {
    (id & 0xffff) as usize
}
