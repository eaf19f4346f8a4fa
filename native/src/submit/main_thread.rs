//! Hot path: submissions that the HTTP server of the main thread accepts. They pass through the
//! same path as those of ingress threads. Their keys and limits were checked there, before the body
//! was read, and the server writes the response and counts the request itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::decode::decoder::Decoder;
use crate::decode::limits::TRANSACTION_BYTES_MAX;
use crate::decode::tx::{peek_signature_offset, starts_well};
use crate::http::json_rpc::{Call, read_call};
use crate::quic::engine::Engine;
use crate::submit::dedup::{DedupCache, Sizes};
use crate::submit::fan_out::{EngineHandle, EngineRef, FanOut, FanOutResult};
use crate::submit::path::{Outcome, RequestMeta, SubmitPath};
use crate::submit::records::Records;

/// The path as the main thread uses it.
pub struct MainThread<E> {
    pub(super) path: SubmitPath<E>,
    transaction: Box<[u8; TRANSACTION_BYTES_MAX]>,
    sent: FanOutResult,
}

impl MainThread<EngineRef> {
    /// With an empty dedup cache.
    #[must_use]
    pub fn open(engine: Arc<Engine>, decoder: Arc<Decoder>) -> Self {
        let path = SubmitPath {
            dedup: Arc::new(DedupCache::new(Sizes::default())),
            decoder,
            records: Records::new(engine.events().clone()),
            fan_out: FanOut::new(engine.targets().clone(), EngineRef(engine)).without_corking(),
        };
        Self::new(path)
    }
}

impl<E: EngineHandle> MainThread<E> {
    pub(super) fn new(path: SubmitPath<E>) -> Self {
        let transaction = Box::new([0; TRANSACTION_BYTES_MAX]);
        Self { path, transaction, sent: FanOutResult::default() }
    }

    /// The dedup cache, for further threads.
    #[must_use]
    pub fn dedup(&self) -> Arc<DedupCache> {
        self.path.dedup.clone()
    }

    /// As `DedupCache::renew`.
    #[must_use]
    pub fn renew(&self, bytes: &[u8], since_ns: u64, now_ns: u64) -> bool {
        let offset = peek_signature_offset(bytes);
        offset.is_none_or(|offset| self.path.dedup.renew(bytes, offset, since_ns, now_ns))
    }

    /// As `DedupCache::forget`.
    pub fn forget(&self, bytes: &[u8], since_ns: u64) {
        if let Some(offset) = peek_signature_offset(bytes) {
            self.path.dedup.forget(bytes, offset, since_ns);
        }
    }

    /// As `DedupCache::evicted`.
    #[must_use]
    pub fn evicted(&self) -> u32 {
        self.path.dedup.evicted()
    }

    /// As `Records::unread`.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.path.records.unread()
    }

    /// Submits a transaction. None: it panicked, and has no record; it may have been sent.
    pub fn submit(&mut self, bytes: &[u8], meta: &RequestMeta<'_>) -> Option<Outcome> {
        submit(&mut self.path, bytes, meta, &mut self.sent)
    }

    /// Submits the transaction of a JSON-RPC call in its usual form. None for a body of another
    /// form, of which nothing is submitted.
    pub fn submit_call(
        &mut self,
        body: &[u8],
        meta: &RequestMeta<'_>,
    ) -> Option<(Call, Option<Outcome>)> {
        let Self { path, transaction, sent, .. } = self;
        let call = read_call(body, transaction.as_mut_slice())?;
        let bytes = transaction.get(..call.size).unwrap_or_default();
        // It may be base58, which the parser of any form can detect.
        if !starts_well(bytes) {
            return None;
        }
        let meta = RequestMeta { max_retries: call.max_retries, ..*meta };
        let outcome = submit(path, bytes, &meta, sent);
        Some((call, outcome))
    }
}

fn submit<E: EngineHandle>(
    path: &mut SubmitPath<E>,
    bytes: &[u8],
    meta: &RequestMeta<'_>,
    sent: &mut FanOutResult,
) -> Option<Outcome> {
    let decide = AssertUnwindSafe(|| decide(path, bytes, meta, sent));
    let outcome = catch_unwind(decide).ok();
    if outcome.is_none() {
        let _ = path.records.void();
    }
    outcome
}

fn decide<E: EngineHandle>(
    path: &mut SubmitPath<E>,
    bytes: &[u8],
    meta: &RequestMeta<'_>,
    sent: &mut FanOutResult,
) -> Outcome {
    if !path.records.has_room() {
        return Outcome::RingFull;
    }
    let outcome = path.send(bytes, meta, sent);
    // No turn of its own: each transaction leaves at once.
    path.fan_out.end_turn();
    outcome
}
