//! Hot path: `rank_of`. The share of each account's recent transactions that landed, as the main
//! thread publishes it with each plan; a delivery's rank is what it offers times that share.
//!
//! An update replaces the whole table, so that every reader sees one version of all shares. The
//! lock is held for one lookup or for the exchange of a pointer.
//!
//! Decision: docs/decisions/0048-rank-by-landed-share.md

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

/// What a transaction pays if it lands, and whose it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Offer {
    /// The account's number: `accountNumber` of `src/send/native/account-number.ts`.
    pub account: u64,
    /// Priority fee and tip, in lamports. Below 0: it goes after all that offer something.
    pub lamports: f64,
}

/// The share of an account without history: `SHARE_START` of `src/landing/landing-shares.ts`.
pub const SHARE_START: f64 = 0.5;
/// Most accounts with a share of their own: `SHARE_ACCOUNTS_MAX` of the same file.
pub const SHARE_ACCOUNTS_MAX: usize = 10_000;

/// The shares of all accounts.
#[derive(Default)]
pub struct LandedShares {
    shares: RwLock<Arc<HashMap<u64, f64>>>,
    version: AtomicU64,
}

impl LandedShares {
    /// Sets shares: `pairs` holds an account and its share each. An account with `SHARE_START`
    /// needs no entry, and beyond `SHARE_ACCOUNTS_MAX` entries further accounts have that share.
    pub fn update(&self, pairs: &[f64]) {
        let (pairs, _) = pairs.as_chunks::<2>();
        if pairs.is_empty() {
            return;
        }
        let mut shares = HashMap::clone(&self.shares.read());
        for [account, _] in pairs {
            shares.remove(&(*account as u64));
        }
        for &[account, share] in pairs {
            if share != SHARE_START && shares.len() < SHARE_ACCOUNTS_MAX {
                shares.insert(account as u64, share);
            }
        }
        *self.shares.write() = Arc::new(shares);
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Rises with each update.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// What the offer counts: the higher, the earlier it goes.
    #[must_use]
    pub fn rank_of(&self, offer: Offer) -> f64 {
        offer.lamports * self.shares.read().get(&offer.account).copied().unwrap_or(SHARE_START)
    }
}

#[cfg(test)]
mod tests {
    use super::{LandedShares, Offer, SHARE_ACCOUNTS_MAX};

    #[test]
    fn a_rank_is_the_offer_times_the_share_of_its_account() {
        let shares = LandedShares::default();
        let rank = |account| shares.rank_of(Offer { account, lamports: 100.0 });
        assert_eq!((rank(1), shares.version()), (50.0, 0));
        shares.update(&[1.0, 0.25, 2.0, 1.0]);
        assert_eq!((rank(1), rank(2), rank(3), shares.version()), (25.0, 100.0, 50.0, 1));
        // An account that starts anew leaves no entry.
        shares.update(&[1.0, 0.5]);
        assert_eq!((rank(1), rank(2), shares.shares.read().len()), (50.0, 100.0, 1));
        shares.update(&[]);
        assert_eq!(shares.version(), 2);
    }

    #[test]
    fn accounts_beyond_the_maximum_rank_as_new_ones() {
        let shares = LandedShares::default();
        let pairs: Vec<f64> =
            (0..=SHARE_ACCOUNTS_MAX).flat_map(|account| [account as f64, 0.75]).collect();
        shares.update(&pairs);
        let rank = |account| shares.rank_of(Offer { account, lamports: 4.0 });
        let last = SHARE_ACCOUNTS_MAX as u64;
        assert_eq!((rank(0), rank(last - 1), rank(last)), (3.0, 3.0, 2.0));
        // An update that frees a place may use it.
        shares.update(&[last as f64, 0.75, 0.0, 0.5]);
        assert_eq!((rank(0), rank(last)), (2.0, 3.0));
    }
}
