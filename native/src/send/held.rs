//! Hot path: copies that a thread keeps for a moment, so that they leave together.
//!
//! A thread that comes upon one transaction after the other holds their copies and releases them
//! when it has no more, or should not wait for longer. Each connection then has all of its copies at
//! once, and sends them in as few datagrams and system calls as it can (`load`, `outbox`). Until then
//! nobody else knows of them.

use std::cell::RefCell;
use std::sync::Arc;

use crate::limits::{HELD_MAX, TURNS_OF_CALLER};
use crate::send::mask::Taken;
use crate::send::peer::{Peer, PeerState, TxCopy};

/// What a release left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backlog {
    /// No copy waits.
    None,
    /// Some do, and another thread is at work for them.
    Moves,
    /// Some wait for a connection, or for the leader's credit.
    Waits,
    /// So many do that a few more releases could find no room, or this one found none for all.
    Full,
}

/// In the order of coming.
struct Held(Vec<(Arc<Peer>, TxCopy)>);

impl Drop for Held {
    /// The thread ends: nobody is left to send them.
    fn drop(&mut self) {
        for (peer, copy) in self.0.drain(..) {
            peer.report_drop(&copy, peer.closed_reason());
        }
    }
}

thread_local! {
    static HELD: RefCell<Held> = const { RefCell::new(Held(Vec::new())) };
}

impl Peer {
    /// Keeps a copy on this thread until `release`, or until there are many.
    pub fn hold(self: &Arc<Self>, copy: TxCopy) -> Taken {
        let state = self.state();
        if state >= PeerState::Closing {
            self.report_drop(&copy, self.closed_reason());
            return Taken::No;
        }
        // Before it is kept and not after: who holds so many is told by its own release what waits.
        if HELD.with_borrow(|held| held.0.len() >= HELD_MAX) {
            release();
        }
        HELD.with_borrow_mut(|held| held.0.push((self.clone(), copy)));
        if state == PeerState::Admitted { Taken::Live } else { Taken::Waiting }
    }
}

/// Sends what this thread holds. The worst that is left behind for any of those leaders.
pub fn release() -> Backlog {
    let mut left = Backlog::None;
    let held = HELD.with_borrow_mut(|held| std::mem::take(&mut held.0));
    let mut peers: Vec<Arc<Peer>> = Vec::new();
    for (peer, copy) in held {
        if !peer.put_down(copy) {
            left = Backlog::Full;
            continue;
        }
        if !peers.iter().any(|known| Arc::ptr_eq(known, &peer)) {
            peers.push(peer);
        }
    }
    for peer in &peers {
        peer.announce(TURNS_OF_CALLER);
    }
    peers.iter().map(|peer| peer.backlog()).fold(left, Ord::max)
}
