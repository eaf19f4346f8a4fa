//! Hot path: what a front does with a submission by itself, the same steps in the same order as
//! `pipeline.ts`, as far as one thread can go alone. The engine has it before the main thread hears
//! of it, and whatever a front is not certain of it leaves to that, nothing of it done.
//!
//! ```text
//! pass? limit? ─▶ seen before? ─▶ decode, verify ─▶ claimed? ─▶ routes open? ─▶ sent ─▶ record ─▶ answer
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::base58::{SIGNATURE_TEXT_MAX, signature_text_at};
use crate::decode::decoder::{Decoder, numbers};
use crate::decode::tx::peek_signature_offset;
use crate::http::handler::{
    Cut, Endpoint, ForwardedMeta, Handled, Health, ProxyReason, Request, RequestHandler,
};
use crate::http::json_rpc::read_call;
use crate::http::response::Replies;
use crate::limits::TRANSACTION_BYTES_MAX;
use crate::submit::counters::{Figure, Figures};
use crate::submit::dedup::{DedupCache, Reservation};
use crate::submit::fan_out::{EngineHandle, FanOut, FanOutResult};
use crate::submit::key_cache::{KeyCache, KeyGrant, NotAdmitted};
use crate::submit::record_ring::{self, Records};
use crate::submit::wakeup::{ThreadState, WakePolicy};

/// What the main thread says of keys.
pub enum KeyUpdate {
    /// The key may be let in from now on.
    Grant(Box<[u8]>, KeyGrant),
    /// And no more, if its pass is the one of that place.
    Revoke(Box<[u8]>, u32),
}

/// What a front's submissions pass through.
pub struct SubmitPath<W> {
    /// Who is let in.
    pub key_cache: KeyCache,
    /// What was accepted a moment ago, by whomever.
    pub dedup: DedupCache,
    /// Judges transactions.
    pub decoder: Arc<Decoder>,
    /// Puts them on the wire.
    pub fan_out: FanOut<W>,
    /// What the main thread reads.
    pub records: Records,
    /// What it counts.
    pub figures: Figures,
    /// Wakes it.
    pub wake_policy: WakePolicy,
}

/// The desk of a front: answers what it is certain of.
pub struct SubmitHandler<W> {
    path: SubmitPath<W>,
    replies: Replies,
    transaction: Box<[u8; TRANSACTION_BYTES_MAX]>,
    sent: FanOutResult,
}

/// What is known of a submission before it is looked at.
struct RequestMeta {
    key_slot: u32,
    received_ns: u64,
    body_bytes: usize,
    max_retries: Option<u64>,
}

/// A signature in base58.
struct SignatureText {
    text: [u8; SIGNATURE_TEXT_MAX],
    size: usize,
}

impl<W: EngineHandle> SubmitHandler<W> {
    /// One that took nothing yet.
    #[must_use]
    pub fn new(path: SubmitPath<W>) -> Self {
        let transaction = Box::new([0; TRANSACTION_BYTES_MAX]);
        Self { path, replies: Replies::new(), transaction, sent: FanOutResult::default() }
    }

    fn admit(&mut self, request: &Request<'_>, out: &mut Vec<u8>) -> Handled {
        let received_ns = self.path.fan_out.now_ns();
        self.path.fan_out.flush_if_due(received_ns);
        let Request { token, from, .. } = *request;
        let key_slot = match self.path.key_cache.admit(token, from, received_ns, unix_ms) {
            Ok(key_slot) => key_slot,
            Err(reason) => {
                self.path.figures.add(figure_of(reason), 1.0);
                return Handled::Proxy(ForwardedMeta { is_paid: false, received_ns });
            }
        };
        match self.respond(request, key_slot, received_ns, out) {
            Ok(()) => {
                self.path.figures.add(Figure::Requests, 1.0);
                self.path.figures.add(Figure::Accepted, 1.0);
                Handled::Answered
            }
            Err(reason) => {
                self.path.figures.add(reason, 1.0);
                Handled::Proxy(ForwardedMeta { is_paid: true, received_ns })
            }
        }
    }

    fn respond(
        &mut self,
        request: &Request<'_>,
        key_slot: u32,
        received_ns: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Figure> {
        let Self { path, replies, transaction, sent } = self;
        let body = request.body;
        let meta = RequestMeta { key_slot, received_ns, body_bytes: body.len(), max_retries: None };
        match request.endpoint {
            Endpoint::Raw => {
                let signature = path.submit(body, &meta, sent)?;
                replies.raw_accepted(out, signature.text());
            }
            Endpoint::JsonRpc => {
                let call =
                    read_call(body, transaction.as_mut_slice()).ok_or(Figure::ProxiedOther)?;
                let bytes = transaction.get(..call.size).ok_or(Figure::ProxiedOther)?;
                let id = body.get(call.id.0..call.id.1).ok_or(Figure::ProxiedOther)?;
                let meta = RequestMeta { max_retries: call.max_retries, ..meta };
                let signature = path.submit(bytes, &meta, sent)?;
                replies.rpc_result(out, id, signature.text());
            }
        }
        Ok(())
    }
}

impl<W: EngineHandle> SubmitPath<W> {
    /// Sends it, or finds that it was: its name. Else why it is left to the main thread.
    fn submit(
        &mut self,
        bytes: &[u8],
        meta: &RequestMeta,
        sent: &mut FanOutResult,
    ) -> Result<SignatureText, Figure> {
        if !self.records.has_room() {
            return Err(Figure::ProxiedRecordRing);
        }
        if let Some(offset) = peek_signature_offset(bytes)
            && self.dedup.query(bytes, offset, meta.received_ns)
        {
            return self.repeated(bytes, meta, offset);
        }
        let validation = self.decoder.decode(bytes);
        let offset = match &validation {
            Ok(accepted) => accepted.signature_offset,
            Err(_) => return Err(Figure::ProxiedOther),
        };
        let decoded_ns = self.fan_out.now_ns();
        // Another thread may have had it since it was asked for, or has it now: then whether it is
        // accepted is not known yet.
        match self.dedup.reserve(bytes, offset, decoded_ns) {
            Reservation::Duplicate => return self.repeated(bytes, meta, offset),
            Reservation::Pending => return Err(Figure::ProxiedOther),
            Reservation::New => {}
        }
        if !self.fan_out.send(bytes, sent) {
            self.dedup.rollback(bytes, offset);
            return Err(Figure::ProxiedLeaders);
        }
        let sent_ns = self.fan_out.now_ns();
        let record = meta.record(bytes, decoded_ns, sent_ns);
        self.records.sent(&record, numbers(&validation), sent);
        self.dedup.commit(bytes, offset);
        let (needs_immediate_wake, is_wake_pending) =
            (self.fan_out.needs_immediate_wake(), self.fan_out.is_wake_pending());
        self.wake_policy.record_written(
            self.records.depth(),
            needs_immediate_wake,
            is_wake_pending,
            sent_ns,
        );
        signature_text_of(bytes, offset)
    }

    fn repeated(
        &mut self,
        bytes: &[u8],
        meta: &RequestMeta,
        offset: usize,
    ) -> Result<SignatureText, Figure> {
        let signature = signature_text_of(bytes, offset)?;
        let now_ns = self.fan_out.now_ns();
        self.records.repeated(&meta.record(bytes, now_ns, now_ns), offset);
        self.wake_policy.record_written(self.records.depth(), false, false, now_ns);
        Ok(signature)
    }
}

impl RequestMeta {
    fn record<'a>(
        &self,
        bytes: &'a [u8],
        decoded_ns: u64,
        sent_ns: u64,
    ) -> record_ring::SubmissionRecord<'a> {
        let &Self { key_slot, received_ns, body_bytes, max_retries } = self;
        record_ring::SubmissionRecord {
            bytes,
            key_slot,
            received_ns,
            decoded_ns,
            sent_ns,
            body_bytes,
            max_retries,
        }
    }
}

impl SignatureText {
    fn text(&self) -> &[u8] {
        self.text.get(..self.size).unwrap_or_default()
    }
}

impl<W: EngineHandle> RequestHandler for SubmitHandler<W> {
    type Update = KeyUpdate;

    fn knows(&self, token: &[u8]) -> bool {
        self.path.key_cache.knows(token)
    }

    fn handle(&mut self, request: &Request<'_>, out: &mut Vec<u8>) -> Handled {
        let size = out.len();
        let handled = catch_unwind(AssertUnwindSafe(|| self.admit(request, out)));
        handled.unwrap_or_else(|_| {
            self.path.figures.add(Figure::HandlerErrors, 1.0);
            out.truncate(size);
            Handled::Proxy(ForwardedMeta::default())
        })
    }

    fn health(&mut self, health: &Health<'_>, out: &mut Vec<u8>) {
        self.path.figures.add(Figure::Requests, 1.0);
        match *health {
            Health::Ping { is_head_only } => self.replies.ping(out, is_head_only),
            Health::Rpc { id } => self.replies.rpc_result(out, id, b"ok"),
        }
    }

    fn proxied(&mut self, _reason: ProxyReason) {
        self.path.fan_out.flush_if_due(self.path.fan_out.now_ns());
        self.path.figures.add(Figure::ProxiedOther, 1.0);
    }

    fn connections(&mut self, open: usize) {
        self.path.figures.set(Figure::Connections, open as f64);
    }

    fn bodies_pending(&mut self, count: usize) {
        self.path.figures.set(Figure::RequestsOpen, count as f64);
    }

    fn proxy_rejected(&mut self) {
        self.path.figures.add(Figure::Overloaded, 1.0);
    }

    fn idle(&mut self) {
        let status = self.path.wake_policy.status();
        if status.state() == ThreadState::Running as u8 {
            status.enter(ThreadState::Idle);
        }
    }

    fn client_left(&mut self) {
        self.path.figures.add(Figure::Aborted, 1.0);
    }

    fn cut(&mut self, cut: Cut) {
        let figure = match cut {
            Cut::Full => Figure::ConnectionsRejected,
            Cut::Address => Figure::ConnectionsCrowded,
            Cut::Slow => Figure::ConnectionsSlow,
        };
        self.path.figures.add(figure, 1.0);
    }

    fn update(&mut self, update: KeyUpdate) {
        match update {
            KeyUpdate::Grant(token, grant) => {
                // Where it cannot be kept, the requests of that key go on being relayed.
                self.path.key_cache.put(&token, grant);
            }
            KeyUpdate::Revoke(token, key_slot) => {
                self.path.key_cache.revoke(&token, key_slot);
                self.path.wake_policy.status().release_key_slot(key_slot);
            }
        }
    }

    fn end_turn(&mut self) {
        let SubmitPath { fan_out, records, wake_policy, .. } = &mut self.path;
        fan_out.end_turn();
        if fan_out.take_stalled() {
            wake_policy.wake_now();
        }
        wake_policy.end_turn(records.depth(), || fan_out.now_ns());
    }

    fn wake_in(&self, now_ns: u64) -> Option<Duration> {
        self.path.wake_policy.wake_in(now_ns)
    }
}

fn figure_of(reason: NotAdmitted) -> Figure {
    match reason {
        NotAdmitted::Key => Figure::ProxiedKey,
        NotAdmitted::Limit => Figure::ProxiedLimit,
    }
}

fn signature_text_of(bytes: &[u8], offset: usize) -> Result<SignatureText, Figure> {
    let mut text = [0; SIGNATURE_TEXT_MAX];
    let size = signature_text_at(bytes, offset, &mut text).ok_or(Figure::ProxiedOther)?;
    Ok(SignatureText { text, size })
}

fn unix_ms() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs_f64() * 1e3
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
