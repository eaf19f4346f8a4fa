//! Hot path: how an ingress thread answers a submission over HTTP: it checks key and limit, reads the
//! body in either form, takes each transaction along its path (`path`), and writes the response. It
//! records what it rejects.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::decode::limits::TRANSACTION_BYTES_MAX;
use crate::decode::tx::starts_well;
use crate::http::handler::{
    ClientCloseReason, Drain, Endpoint, HandshakeResult, KEYLESS_BODY_BYTES_MAX, Request,
    RequestHandler, UnreadReason,
};
use crate::http::json_rpc::read_call;
use crate::http::json_text::Value;
use crate::http::rejection::Rejection;
use crate::http::rejection_table::Reason;
use crate::http::response::{
    OVERLOADED, ResponseWriter, push_result, push_result_json, push_unhealthy,
};
use crate::http::rpc_body::{
    self, Call, Keyless, KeylessMethods, batch_of, call_id, decode_text, parse_body,
};
use crate::submit::counters::{Counter, Counters};
use crate::submit::fan_out::{EngineHandle, FanOutResult};
use crate::submit::ingress_path::IngressPath;
use crate::submit::key_table::{Key, KeyTable, NotAdmitted};
use crate::submit::path::{RequestMeta, SignatureText, SubmitPath};
use crate::submit::thread_status::{ThreadState, ThreadStatus};

/// The request handler of an ingress thread.
pub struct SubmitHandler<E> {
    pub(super) path: IngressPath<E>,
    /// Which keys are admitted, and what their limits are.
    pub(super) keys: Arc<KeyTable>,
    /// Which methods need no key.
    keyless_methods: Arc<KeylessMethods>,
    /// What the main thread reads of this thread's state.
    status: Arc<ThreadStatus>,
    writer: ResponseWriter,
    transaction: Box<[u8; TRANSACTION_BYTES_MAX]>,
    pub(super) sent: FanOutResult,
}

impl<E: EngineHandle> SubmitHandler<E> {
    /// A handler without submissions so far, of connections that may be idle for this time.
    #[must_use]
    pub fn new(
        inner: SubmitPath<E>,
        keys: Arc<KeyTable>,
        keyless_methods: Arc<KeylessMethods>,
        counters: Counters,
        status: Arc<ThreadStatus>,
        idle_timeout_ns: u64,
    ) -> Self {
        let path = IngressPath { inner, counters };
        let transaction = Box::new([0; TRANSACTION_BYTES_MAX]);
        let writer = ResponseWriter::new(idle_timeout_ns);
        Self {
            path,
            keys,
            keyless_methods,
            status,
            writer,
            transaction,
            sent: FanOutResult::default(),
        }
    }

    fn admit(&mut self, request: &Request<'_>, out: &mut Vec<u8>) {
        let received_ns = self.path.inner.fan_out.now_ns();
        self.path.inner.fan_out.flush_if_due(received_ns);
        let Request { endpoint, token, from, .. } = *request;
        if request.drain == Drain::Refusing {
            if !self.answer_keyless(request, out) {
                self.refuse_as_draining(endpoint, out);
            }
            return;
        }
        match self.keys.admit(token, from, received_ns, unix_ms) {
            Ok(key) => {
                self.respond(request, &key, received_ns, out);
                self.path.counters.add(Counter::Requests, 1.0);
            }
            Err(reason) => {
                let has_key = matches!(reason, NotAdmitted::Limited(..));
                if has_key || !self.answer_keyless(request, out) {
                    let rejection = self.not_admitted(reason, received_ns);
                    self.refuse_without_body(endpoint, &rejection, out);
                }
            }
        }
    }

    /// Counts the rejection of a request that is not admitted, and returns it.
    pub(super) fn not_admitted(&mut self, reason: NotAdmitted, received_ns: u64) -> Rejection {
        match reason {
            NotAdmitted::Limited(key, rejection) => {
                // Before the body is read, so its id and its size do not count.
                let meta = RequestMeta::keyed(&key, received_ns, 0);
                self.path.reject(&rejection, &meta);
                rejection
            }
            NotAdmitted::OutOfPolicy(key, violation) => {
                let meta = RequestMeta::keyed(&key, received_ns, 0);
                self.path.violated(&violation.for_account, &meta);
                Rejection::new(Reason::Unauthorized, violation.for_client)
            }
            NotAdmitted::Unknown(reason) => {
                let rejection = reason.rejection();
                self.path.counters.reject(rejection.reason);
                rejection
            }
        }
    }

    fn refuse_as_draining(&mut self, endpoint: Endpoint, out: &mut Vec<u8>) {
        let rejection = Rejection::draining();
        self.path.counters.reject(rejection.reason);
        self.refuse_without_body(endpoint, &rejection, out);
    }

    fn refuse_without_body(
        &mut self,
        endpoint: Endpoint,
        rejection: &Rejection,
        out: &mut Vec<u8>,
    ) {
        self.path.counters.add(Counter::Requests, 1.0);
        self.writer.rejected(out, endpoint, "null", rejection);
    }

    /// As `RequestHandler::refuse_unread`.
    fn reject_unread(
        &mut self,
        request: &Request<'_>,
        reason: UnreadReason,
        out: &mut Vec<u8>,
    ) -> Reason {
        let &Request { endpoint, token, from, .. } = request;
        let received_ns = self.path.inner.fan_out.now_ns();
        self.path.inner.fan_out.flush_if_due(received_ns);
        let rejection = match reason {
            UnreadReason::KeyUnknown => self.not_admitted(self.keys.not_found(token), received_ns),
            UnreadReason::TooLarge(..) | UnreadReason::NoRoom => {
                match self.keys.admit(token, from, received_ns, unix_ms) {
                    Err(not_admitted) => self.not_admitted(not_admitted, received_ns),
                    Ok(key) => {
                        let rejection = match reason {
                            UnreadReason::TooLarge(found, needed) => {
                                Rejection::body_too_large(found, needed)
                            }
                            _ => Rejection::new(Reason::Overloaded, OVERLOADED.into()),
                        };
                        self.path.reject(&rejection, &RequestMeta::keyed(&key, received_ns, 0));
                        rejection
                    }
                }
            }
        };
        self.refuse_without_body(endpoint, &rejection, out);
        rejection.reason
    }

    /// Calls `act`. After a panic it answers `internal` and returns None.
    fn guard<T>(
        &mut self,
        endpoint: Endpoint,
        out: &mut Vec<u8>,
        act: impl FnOnce(&mut Self, &mut Vec<u8>) -> T,
    ) -> Option<T> {
        let size = out.len();
        let done = catch_unwind(AssertUnwindSafe(|| act(self, out)));
        if done.is_err() {
            let _ = self.path.inner.records.void();
            let rejection = Rejection::internal();
            self.path.counters.add(Counter::HandlerErrors, 1.0);
            self.path.counters.reject(rejection.reason);
            out.truncate(size);
            self.refuse_without_body(endpoint, &rejection, out);
        }
        done.ok()
    }

    /// Answers a request whose calls, alone or in a batch, need no key. False, and nothing is done,
    /// for any other.
    fn answer_keyless(&mut self, request: &Request<'_>, out: &mut Vec<u8>) -> bool {
        let &Request { endpoint, body, .. } = request;
        if endpoint != Endpoint::JsonRpc || body.len() > KEYLESS_BODY_BYTES_MAX {
            return false;
        }
        let Ok(json) = parse_body(body) else { return false };
        let Ok(batch) = batch_of(&json) else { return false };
        let single = [json.root()];
        let mut calls = batch.as_deref().unwrap_or(&single).iter();
        let needs_none = calls.all(|call| self.keyless_methods.include(*call));
        if needs_none {
            self.respond_calls(request, json.root(), batch.as_deref(), None, out);
            self.path.counters.add(Counter::Requests, 1.0);
        }
        needs_none
    }

    fn respond(&mut self, request: &Request<'_>, key: &Key, received_ns: u64, out: &mut Vec<u8>) {
        let Self { path, writer, transaction, sent, .. } = self;
        let body = request.body;
        let meta = RequestMeta::keyed(key, received_ns, body.len());
        match request.endpoint {
            Endpoint::Raw | Endpoint::Text => {
                let is_text = request.endpoint == Endpoint::Text;
                let decoded = is_text.then(|| decode_text(body)).flatten();
                match path.submit(decoded.as_deref().unwrap_or(body), &meta, sent) {
                    Ok(signature) => writer.raw_accepted(out, signature.text()),
                    Err(rejection) => {
                        writer.rejected(out, request.endpoint, "", &rejection);
                    }
                }
            }
            Endpoint::JsonRpc => {
                let call = read_call(body, transaction.as_mut_slice());
                let bytes = call.as_ref().and_then(|call| transaction.get(..call.size));
                // A text of other bytes may be base58, which the parser of any form can detect.
                match (call, bytes.filter(|bytes| starts_well(bytes))) {
                    (Some(call), Some(bytes)) => {
                        // Printable ASCII, as `read_call` returns it.
                        let id = body.get(call.id.0..call.id.1).unwrap_or_default();
                        let id = std::str::from_utf8(id).unwrap_or("null");
                        let meta = RequestMeta { max_retries: call.max_retries, ..meta };
                        write_rpc(writer, out, id, path.submit(bytes, &meta, sent));
                    }
                    _ => self.respond_any_form(request, &Caller { key, meta }, out),
                }
            }
        }
    }

    /// Answers a JSON-RPC body of any form.
    fn respond_any_form(&mut self, request: &Request<'_>, caller: &Caller<'_>, out: &mut Vec<u8>) {
        let reject = |this: &mut Self, rejection: &Rejection, out: &mut Vec<u8>| {
            this.path.reject(rejection, &caller.meta);
            this.writer.rejected(out, request.endpoint, "null", rejection);
        };
        let json = match parse_body(request.body) {
            Ok(json) => json,
            Err(rejection) => return reject(self, &rejection, out),
        };
        match batch_of(&json) {
            Ok(batch) => {
                self.respond_calls(request, json.root(), batch.as_deref(), Some(caller), out);
            }
            Err(rejection) => reject(self, &rejection, out),
        }
    }

    /// Answers the calls of a batch, or the single call `root`. `caller` is None where they need no
    /// key.
    fn respond_calls(
        &mut self,
        request: &Request<'_>,
        root: Value<'_>,
        batch: Option<&[Value<'_>]>,
        caller: Option<&Caller<'_>>,
        out: &mut Vec<u8>,
    ) {
        let mut body = String::new();
        match batch {
            Some(calls) => self.push_batch(calls, caller, request.drain, &mut body),
            None => {
                let meta = caller.map(|caller| &caller.meta);
                let (id, answer) = self.answer_call(root, meta, request.drain);
                match answer {
                    Answer::Rejected(rejection) => {
                        return self.writer.rejected(out, request.endpoint, &id, &rejection);
                    }
                    answer => answer.push(&mut body, &id),
                }
            }
        }
        self.writer.json(out, body.as_bytes());
    }

    /// Appends the response to a batch, in the order of its calls. Each further call is charged
    /// before it is read.
    fn push_batch(
        &mut self,
        calls: &[Value<'_>],
        caller: Option<&Caller<'_>>,
        drain: Drain,
        body: &mut String,
    ) {
        // The body's bytes, divided among the calls.
        let size = calls.len() as f64;
        let meta = caller.map(|Caller { meta, .. }| {
            let body_bytes = (meta.body_bytes as f64 / size + 0.5).floor() as usize;
            RequestMeta { body_bytes, ..*meta }
        });
        for (index, call) in calls.iter().enumerate() {
            body.push(if index == 0 { '[' } else { ',' });
            if let (1.., Some(caller), Some(meta)) = (index, caller, &meta) {
                let now_ns = self.path.inner.fan_out.now_ns();
                if let Some(limited) = self.keys.charge_again(caller.key, now_ns) {
                    self.path.reject(&limited, meta);
                    limited.push_rpc(body, &call_id(*call));
                    continue;
                }
            }
            let (id, answer) = self.answer_call(*call, meta.as_ref(), drain);
            answer.push(body, &id);
        }
        body.push(']');
    }

    /// Returns the call's id as JSON text, and its answer. `meta` is None where no key is needed.
    fn answer_call(
        &mut self,
        call: Value<'_>,
        meta: Option<&RequestMeta<'_>>,
        drain: Drain,
    ) -> (String, Answer) {
        let (id, call) = rpc_body::read_call(call, &self.keyless_methods);
        let answer = match (call, meta) {
            (Call::Keyless(Keyless::Health), _) if drain == Drain::None => Answer::Healthy,
            (Call::Keyless(Keyless::Health), _) => Answer::Unhealthy,
            (Call::Keyless(Keyless::Result(result)), _) => Answer::Result(result),
            (Call::Rejected(rejection), Some(meta)) => {
                self.path.reject(&rejection, meta);
                Answer::Rejected(rejection)
            }
            (Call::Rejected(rejection), None) => {
                self.path.counters.reject(rejection.reason);
                Answer::Rejected(rejection)
            }
            (Call::Send { bytes, max_retries }, Some(meta)) => {
                let meta = RequestMeta { max_retries, ..*meta };
                match self.path.submit(&bytes, &meta, &mut self.sent) {
                    Ok(signature) => Answer::Accepted(signature),
                    Err(rejection) => Answer::Rejected(rejection),
                }
            }
            // Unreachable: it needs a key.
            (Call::Send { .. }, None) => Answer::Rejected(Rejection::internal()),
        };
        (id, answer)
    }
}

/// Who has sent a request.
struct Caller<'a> {
    key: &'a Key,
    meta: RequestMeta<'a>,
}

/// The answer to a JSON-RPC call.
enum Answer {
    Accepted(SignatureText),
    Healthy,
    Unhealthy,
    /// JSON text.
    Result(Arc<str>),
    Rejected(Rejection),
}

impl Answer {
    /// Appends the response; `id` is JSON text.
    fn push(&self, body: &mut String, id: &str) {
        match self {
            Self::Accepted(signature) => push_result(body, id, signature.text()),
            Self::Healthy => push_result(body, id, HEALTHY),
            Self::Unhealthy => push_unhealthy(body, id),
            Self::Result(result) => push_result_json(body, id, result),
            Self::Rejected(rejection) => rejection.push_rpc(body, id),
        }
    }
}

impl<E: EngineHandle> RequestHandler for SubmitHandler<E> {
    fn has_key(&self, token: &[u8]) -> bool {
        self.keys.has(token)
    }

    fn handle(&mut self, request: &Request<'_>, out: &mut Vec<u8>) {
        self.guard(request.endpoint, out, |this, out| this.admit(request, out));
    }

    fn refuse_unread(
        &mut self,
        request: &Request<'_>,
        reason: UnreadReason,
        out: &mut Vec<u8>,
    ) -> Reason {
        let act = |this: &mut Self, out: &mut Vec<u8>| this.reject_unread(request, reason, out);
        self.guard(request.endpoint, out, act).unwrap_or(Reason::Internal)
    }

    fn refuse_draining(&mut self, endpoint: Endpoint, out: &mut Vec<u8>) {
        self.path.inner.fan_out.flush_if_due(self.path.inner.fan_out.now_ns());
        self.refuse_as_draining(endpoint, out);
    }

    fn ping(&mut self, is_head_only: bool, out: &mut Vec<u8>) {
        self.path.counters.add(Counter::Requests, 1.0);
        self.writer.ping(out, is_head_only);
    }

    fn proxied(&mut self) {
        self.path.inner.fan_out.flush_if_due(self.path.inner.fan_out.now_ns());
        self.path.counters.add(Counter::Proxied, 1.0);
    }

    fn connections(&mut self, open: usize) {
        self.path.counters.set(Counter::Connections, open as f64);
    }

    fn bodies_pending(&mut self, count: usize) {
        self.path.counters.set(Counter::RequestsOpen, count as f64);
    }

    fn overloaded(&mut self) {
        self.path.counters.reject(Reason::Overloaded);
    }

    fn idle(&mut self) {
        let status = &self.status;
        if status.state() == ThreadState::Running as u8 {
            status.enter(ThreadState::Idle);
        }
    }

    fn client_left(&mut self) {
        self.path.counters.add(Counter::Aborted, 1.0);
    }

    fn handshake_ended(&mut self, result: HandshakeResult) {
        let counter = match result {
            HandshakeResult::Full => Counter::HandshakesFull,
            HandshakeResult::Resumed => Counter::HandshakesResumed,
            HandshakeResult::Failed => Counter::HandshakesFailed,
            HandshakeResult::NotTls => Counter::HandshakesNotTls,
            HandshakeResult::TimedOut => Counter::HandshakesTimedOut,
            HandshakeResult::Aborted => Counter::HandshakesAborted,
        };
        self.path.counters.add(counter, 1.0);
    }

    fn connection_closed(&mut self, reason: ClientCloseReason) {
        let counter = match reason {
            ClientCloseReason::TooMany => Counter::ConnectionsRejected,
            ClientCloseReason::Evicted => Counter::ConnectionsEvicted,
            ClientCloseReason::Address => Counter::ConnectionsOverAddressLimit,
            ClientCloseReason::ReadTimeout => Counter::ConnectionsReadTimeout,
            ClientCloseReason::Framing => Counter::Closed,
        };
        self.path.counters.add(counter, 1.0);
    }

    fn end_turn(&mut self) {
        self.path.inner.fan_out.end_turn();
    }
}

/// Writes the response to a JSON-RPC call of `sendTransaction`.
fn write_rpc(
    writer: &mut ResponseWriter,
    out: &mut Vec<u8>,
    id: &str,
    submitted: Result<SignatureText, Rejection>,
) {
    match submitted {
        Ok(signature) => writer.rpc_result(out, id.as_bytes(), signature.text()),
        Err(rejection) => writer.rejected(out, Endpoint::JsonRpc, id, &rejection),
    }
}

/// The result of `getHealth`; a test compares the responses.
const HEALTHY: &[u8] = b"ok";

pub(super) fn unix_ms() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs_f64() * 1e3
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod tests;
