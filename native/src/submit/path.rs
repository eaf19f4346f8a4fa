//! Hot path: the path of a transaction through the engine, on whatever thread accepted it:
//! `requests` for those of an ingress thread's HTTP clients, `streams` for those of its QUIC
//! clients, and `main_thread`. The record for accounting is published before the transaction's
//! first byte leaves.
//!
//! ```text
//! duplicate? ─▶ decode, verify ─▶ reserve ─▶ record ─▶ send ─▶ commit
//!                     └─▶ rejected ─▶ record
//! ```

use std::sync::Arc;

use crate::decode::base58::{SIGNATURE_TEXT_MAX, signature_text_at};
use crate::decode::decoder::{Decoder, numbers};
use crate::decode::diagnosis::diagnose;
use crate::decode::errors::Rejected;
use crate::decode::tx::{Accepted, peek_signature_offset};
use crate::quic::landed_shares::Offer;
use crate::submit::dedup::{DedupCache, Reservation};
use crate::submit::fan_out::{EngineHandle, FanOut, FanOutOutcome, FanOutResult};
use crate::submit::key_table::Key;
use crate::submit::records::{Records, SubmissionRecord, Submitter};

/// What a submission passes through.
pub struct SubmitPath<E> {
    /// Recently accepted transactions of all threads.
    pub dedup: Arc<DedupCache>,
    /// Validates transactions.
    pub decoder: Arc<Decoder>,
    /// Sends them.
    pub fan_out: FanOut<E>,
    /// Records for the main thread.
    pub records: Records,
}

/// Metadata of a submission.
#[derive(Clone, Copy)]
pub struct RequestMeta<'a> {
    /// Whose it is.
    pub submitter: Submitter<'a>,
    /// When the request's body was complete.
    pub received_ns: u64,
    /// Of the request, where its record is to count it.
    pub body_bytes: usize,
    /// The client's `maxRetries`, where the body does not say it.
    pub max_retries: Option<u64>,
}

/// What became of a transaction.
pub enum Outcome {
    /// It is sent, or was sent recently; its signature.
    Accepted(SignatureText),
    /// It is not valid.
    Invalid(Rejected),
    /// Every leader's queue is full of transactions of the same or a higher rank.
    LeadersFull,
    /// No leader is connected.
    NoLeader,
    /// Nothing is decided: another thread does not finish sending it. It is valid.
    Busy,
    /// Nothing is decided: the event ring has no room for its record, and the main thread does not
    /// read it.
    RingFull,
}

/// A signature in base58.
pub struct SignatureText {
    text: [u8; SIGNATURE_TEXT_MAX],
    size: usize,
}

impl<E: EngineHandle> SubmitPath<E> {
    /// Sends it, or finds that it is a duplicate. Waits for other threads for a few ms at most.
    pub(super) fn send(
        &mut self,
        bytes: &[u8],
        meta: &RequestMeta<'_>,
        sent: &mut FanOutResult,
    ) -> Outcome {
        if let Some(offset) = peek_signature_offset(bytes)
            && self.dedup.query(bytes, offset, meta.received_ns)
        {
            return self.duplicate(bytes, meta, offset);
        }
        let validation = self.decoder.decode(bytes);
        let offset = match &validation {
            Ok(accepted) => accepted.signature_offset,
            Err(rejected) => return Outcome::Invalid(diagnose(bytes, *rejected)),
        };
        while !self.records.has_room() {
            if !self.fan_out.pause() {
                return Outcome::RingFull;
            }
        }
        let decoded_ns = self.fan_out.now_ns();
        // Another thread may have accepted it since the query, or has reserved it and not decided
        // yet.
        loop {
            match self.dedup.reserve(bytes, offset, decoded_ns) {
                Reservation::Duplicate => return self.duplicate(bytes, meta, offset),
                Reservation::Pending if self.fan_out.pause() => {}
                Reservation::Pending => return Outcome::Busy,
                Reservation::New => break,
            }
        }
        let undecided = self.dedup.undecided(bytes, offset);
        let offer = Offer {
            account: meta.submitter.account_number(),
            lamports: validation.as_ref().map_or(0.0, offered_lamports),
        };
        let record = meta.record(bytes, decoded_ns, decoded_ns);
        let records = &mut self.records;
        let publish =
            |targets: &FanOutResult| records.submitted(&record, numbers(&validation), targets);
        let outcome = self.fan_out.send(bytes, offer, sent, publish);
        undecided.decided();
        if outcome != FanOutOutcome::Sent {
            self.void_record(decoded_ns);
            self.dedup.rollback(bytes, offset);
        }
        match outcome {
            FanOutOutcome::Sent => {}
            FanOutOutcome::LeadersFull => return Outcome::LeadersFull,
            FanOutOutcome::NoLeader => return Outcome::NoLeader,
            // The room that was there is another thread's now.
            FanOutOutcome::Unpublished => return Outcome::RingFull,
        }
        let sent_ns = self.fan_out.now_ns();
        self.records.complete(sent_ns, sent);
        self.dedup.commit(bytes, offset);
        self.fan_out.sent_recorded(sent_ns);
        Outcome::Accepted(SignatureText::of(bytes, offset))
    }

    fn duplicate(&mut self, bytes: &[u8], meta: &RequestMeta<'_>, offset: usize) -> Outcome {
        let now_ns = self.fan_out.now_ns();
        while !self.records.duplicate(&meta.record(bytes, now_ns, now_ns), offset) {
            if !self.fan_out.pause() {
                return Outcome::RingFull;
            }
        }
        self.fan_out.recorded(now_ns);
        Outcome::Accepted(SignatureText::of(bytes, offset))
    }

    /// Nothing was sent of what is published, if anything is; the reader skips it.
    fn void_record(&mut self, now_ns: u64) {
        if self.records.void() {
            self.fan_out.recorded(now_ns);
        }
    }
}

impl<'a> RequestMeta<'a> {
    /// Of a request with this key.
    pub(super) fn keyed(key: &'a Key, received_ns: u64, body_bytes: usize) -> Self {
        let submitter = Submitter::Key(key);
        Self { submitter, received_ns, body_bytes, max_retries: None }
    }

    pub(super) fn record(
        &self,
        bytes: &'a [u8],
        decoded_ns: u64,
        sent_ns: u64,
    ) -> SubmissionRecord<'a> {
        let &Self { submitter, received_ns, body_bytes, max_retries, .. } = self;
        SubmissionRecord {
            bytes,
            submitter,
            received_ns,
            decoded_ns,
            sent_ns,
            body_bytes,
            max_retries,
        }
    }
}

impl SignatureText {
    /// Of a transaction whose first signature starts at `offset`.
    fn of(bytes: &[u8], offset: usize) -> Self {
        let mut text = [0; SIGNATURE_TEXT_MAX];
        let size = signature_text_at(bytes, offset, &mut text).unwrap_or_default();
        Self { text, size }
    }

    /// Its characters.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        self.text.get(..self.size).unwrap_or_default()
    }
}

/// Priority fee and tip: `offeredLamports` of `src/core/flow.ts`.
fn offered_lamports(accepted: &Accepted) -> f64 {
    accepted.priority_fee_lamports as f64 + accepted.tip_lamports as f64
}
