//! Verifies every signature of a transaction as the leaders do: Ed25519 as in dalek's
//! `verify_strict`, which Agave runs.
//!
//! The rules are checks of bytes and one equation. Bytes (`encoding`): no A or R of small order, S
//! below the order; an R that is not canonical can never pass, and a non-canonical A is rejected
//! too, because the discrete logarithm that would determine whether dalek accepts it is not known.
//! Equation: S B - k A, encoded, equals R byte for byte, without the cofactor. A key with a table
//! (`table_cache`) is verified here; any other by ring, whose equation is the same.
//!
//! Several signatures of one transaction can share the inversion of the encoding, a third of the
//! work. A random combination of their equations would be faster still, but it accepts some
//! signatures that `verify_strict` rejects.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use curve25519_dalek::Scalar;
use ring::digest::{Context, SHA512};
use ring::signature::{ED25519, UnparsedPublicKey};

use crate::ed25519::comb_table::Comb;
use crate::ed25519::curve::{BASE, BATCH_MAX, Point, inverses};
use crate::ed25519::encoding::{
    SignatureError, halves, is_scalar_canonical, is_unsafe_point, signature_error,
};
use crate::ed25519::multi_add::Backend;
use crate::ed25519::picks::Picks;
use crate::ed25519::table_cache::{KeyCounters, KeyTable, TableCache};

/// The shape that `benches/verify.rs` found fastest for the base point: 512 kB for all keys
/// together.
pub type BaseComb = Comb<8>;

/// Multiples of the base point, built once per process in 1 ms.
pub static BASE_COMB: LazyLock<BaseComb> =
    LazyLock::new(|| BaseComb::new(&Point::decompress(&BASE).unwrap_or(Point::NEUTRAL)));

/// Verifies signatures for any number of threads.
pub struct Verifier {
    table_cache: TableCache,
    backend: Backend,
    verified: AtomicU64,
    invalid: AtomicU64,
}

/// The first bad signature of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadSignature {
    /// The signature's index.
    pub index: usize,
    /// Why it is bad.
    pub error: SignatureError,
}

/// The state of one signature before the shared inversion.
enum Check {
    Good,
    Bad,
    /// Good if this point's encoding is R.
    Open(Point, [u8; 32]),
}

impl Verifier {
    /// A verifier with capacity for the tables of `keys` keys; 0 for none.
    #[must_use]
    pub fn new(keys: usize) -> Self {
        Self::with_backend(keys, Backend::best())
    }

    /// The same, with a given backend.
    #[must_use]
    pub fn with_backend(keys: usize, backend: Backend) -> Self {
        Self::with_builder(keys, backend, || {})
    }

    /// The same; the thread that builds tables calls `begin` first.
    #[must_use]
    pub fn with_builder(keys: usize, backend: Backend, begin: fn()) -> Self {
        LazyLock::force(&BASE_COMB);
        Self {
            table_cache: TableCache::with_builder(keys, begin),
            backend,
            verified: AtomicU64::new(0),
            invalid: AtomicU64::new(0),
        }
    }

    /// Rejects a message for the first bad one of its `count` signatures; key i is the signer of
    /// signature i. A signature outside its slice is bad.
    pub fn verify(
        &self,
        message: &[u8],
        keys: &[[u8; 32]],
        signatures: &[[u8; 64]],
        count: usize,
    ) -> Result<(), BadSignature> {
        let Some(index) = self.first_bad(message, keys, signatures, count) else {
            self.verified.fetch_add(count as u64, Ordering::Relaxed);
            return Ok(());
        };
        self.verified.fetch_add(index as u64, Ordering::Relaxed);
        self.invalid.fetch_add(1, Ordering::Relaxed);
        let (key, signature) = signer(keys, signatures, index).unwrap_or((&[0; 32], &[0; 64]));
        Err(BadSignature { index, error: signature_error(key, signature) })
    }

    /// Counts of good and of bad signatures.
    #[must_use]
    pub fn counters(&self) -> [u64; 2] {
        [self.verified.load(Ordering::Relaxed), self.invalid.load(Ordering::Relaxed)]
    }

    /// Counts of table events.
    #[must_use]
    pub fn key_counters(&self) -> KeyCounters {
        self.table_cache.counters()
    }

    /// The tables, for callers that build one immediately.
    #[must_use]
    pub fn table_cache(&self) -> &TableCache {
        &self.table_cache
    }

    /// The index of the first bad signature.
    fn first_bad(
        &self,
        message: &[u8],
        keys: &[[u8; 32]],
        signatures: &[[u8; 64]],
        count: usize,
    ) -> Option<usize> {
        // Points whose encoding must still be compared, with R and their index.
        let mut points = [Point::NEUTRAL; BATCH_MAX];
        let mut claims = [([0; 32], 0); BATCH_MAX];
        let mut open = 0;
        let mut bad = None;
        for index in 0..count {
            let signer = signer(keys, signatures, index);
            let check = signer.map_or(Check::Bad, |(key, sig)| self.check(key, sig, message));
            match (check, points.get_mut(open), claims.get_mut(open)) {
                (Check::Good, _, _) => {}
                (Check::Open(point, r), Some(slot), Some(claim)) => {
                    *slot = point;
                    *claim = (r, index);
                    open += 1;
                }
                _ => {
                    bad = Some(index);
                    break;
                }
            }
        }
        let inverted = inverses(points.get(..open).unwrap_or(&[]));
        let all = points.iter().zip(&claims).zip(&inverted).take(open);
        for ((point, (r, index)), z) in all {
            if point.compress(z) != *r {
                return Some(*index);
            }
        }
        bad
    }

    fn check(&self, key: &[u8; 32], signature: &[u8; 64], message: &[u8]) -> Check {
        let (r, s) = halves(signature);
        if is_unsafe_point(key) || is_unsafe_point(&r) || !is_scalar_canonical(&s) {
            return Check::Bad;
        }
        if let Some(table) = self.table_cache.find(key) {
            return Check::Open(recomputed(self.backend, &table, &r, &s, message), r);
        }
        if UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_err() {
            return Check::Bad;
        }
        self.table_cache.record_verified(key);
        Check::Good
    }
}

/// S B - k A, which is R if the signature is good.
fn recomputed(
    backend: Backend,
    table: &KeyTable,
    r: &[u8; 32],
    s: &[u8; 32],
    message: &[u8],
) -> Point {
    // First the base point's entries: they are fetched into the caches while the message is hashed.
    let mut picks = Picks::new();
    BASE_COMB.pick(s, &mut picks);
    let mut hash = Context::new(&SHA512);
    hash.update(r);
    hash.update(&table.key);
    hash.update(message);
    let mut wide = [0; 64];
    wide.copy_from_slice(hash.finish().as_ref());
    table.comb.pick(&Scalar::from_bytes_mod_order_wide(&wide).to_bytes(), &mut picks);
    backend.sum(&picks)
}

/// The key and the signature with this index.
fn signer<'a>(
    keys: &'a [[u8; 32]],
    signatures: &'a [[u8; 64]],
    index: usize,
) -> Option<(&'a [u8; 32], &'a [u8; 64])> {
    Some((keys.get(index)?, signatures.get(index)?))
}
