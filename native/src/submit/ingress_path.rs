//! Hot path: the path of a transaction as ingress threads use it: what they refuse is counted, and
//! recorded for the main thread.

use crate::decode::decoder::{VALIDATION_NUMBERS, numbers};
use crate::http::rejection::Rejection;
use crate::http::rejection_table::Reason;
use crate::submit::counters::{Counter, Counters};
use crate::submit::fan_out::{EngineHandle, FanOutResult};
use crate::submit::path::{Outcome, RequestMeta, SignatureText, SubmitPath};

pub(super) struct IngressPath<E> {
    pub(super) inner: SubmitPath<E>,
    /// Counters for the main thread.
    pub(super) counters: Counters,
}

impl<E: EngineHandle> IngressPath<E> {
    /// Sends it, or finds that it is a duplicate, and returns its signature. A rejection is counted
    /// and recorded.
    pub(super) fn submit(
        &mut self,
        bytes: &[u8],
        meta: &RequestMeta<'_>,
        sent: &mut FanOutResult,
    ) -> Result<SignatureText, Rejection> {
        let (rejection, validation) = match self.inner.send(bytes, meta, sent) {
            Outcome::Accepted(signature) => {
                self.counters.add(Counter::Accepted, 1.0);
                return Ok(signature);
            }
            Outcome::Invalid(rejected) => {
                (Rejection::undecodable(&rejected), numbers(&Err(rejected)))
            }
            Outcome::LeadersFull => (Rejection::leaders_full(), VALID),
            Outcome::NoLeader => (Rejection::no_leader(), VALID),
            Outcome::Busy => (Rejection::busy(), VALID),
            Outcome::RingFull => (Rejection::ring_full(), VALID),
        };
        self.record_rejection(&rejection, meta, self.inner.fan_out.now_ns(), Some(validation));
        Err(rejection)
    }

    /// Counts and records a rejection of what was not decoded.
    pub(super) fn reject(&mut self, rejection: &Rejection, meta: &RequestMeta<'_>) {
        self.record_rejection(rejection, meta, 0, None);
    }

    /// `answered_ns` is 0 where it is no result of a submission.
    fn record_rejection(
        &mut self,
        rejection: &Rejection,
        meta: &RequestMeta<'_>,
        answered_ns: u64,
        validation: Option<[f64; VALIDATION_NUMBERS]>,
    ) {
        self.counters.reject(rejection.reason);
        let record = meta.record(rejection.message.as_bytes(), answered_ns, answered_ns);
        let is_written = self.inner.records.rejected(&record, rejection.reason, validation);
        self.rejection_written(is_written, answered_ns.max(meta.received_ns));
    }

    /// Counts and records a use of a key that its policy does not allow, with the message for its
    /// account.
    pub(super) fn violated(&mut self, message: &str, meta: &RequestMeta<'_>) {
        self.counters.reject(Reason::Unauthorized);
        let is_written = self.inner.records.violated(&meta.record(message.as_bytes(), 0, 0));
        self.rejection_written(is_written, meta.received_ns);
    }

    fn rejection_written(&mut self, is_written: bool, now_ns: u64) {
        if is_written {
            self.inner.fan_out.recorded(now_ns);
        } else {
            self.counters.add(Counter::RejectionRecordsDropped, 1.0);
        }
    }
}

/// Of a transaction that is valid and was not sent; nothing more is said of it.
const VALID: [f64; VALIDATION_NUMBERS] = {
    let mut numbers = [0.0; VALIDATION_NUMBERS];
    numbers[0] = 1.0;
    numbers
};
