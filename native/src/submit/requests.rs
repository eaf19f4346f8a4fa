//! Hot path: how an ingress thread handles an HTTP request: it checks key and limit, reads the body
//! in either form, takes each transaction along its path (`path`), and answers. It records what it
//! rejects. It proxies to the main thread what only that one can answer: some methods, and some
//! keys. It does so before it answers or sends anything, and tells the main thread whether the rate
//! limit was charged.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::decode::limits::TRANSACTION_BYTES_MAX;
use crate::decode::tx::starts_well;
use crate::http::handler::{
    ClientCloseReason, Endpoint, ForwardedMeta, Handled, HandshakeResult, Health,
    KEYLESS_BODY_BYTES_MAX, Request, RequestHandler, UnreadReason,
};
use crate::http::json_rpc::read_call;
use crate::http::json_text::Value;
use crate::http::rejection::Rejection;
use crate::http::rejection_table::Reason;
use crate::http::response::{ResponseWriter, push_result};
use crate::http::rpc_body::{
    self, Call, MAIN_THREAD_METHODS, batch_of, call_id, decode_text, parse_body,
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
    /// What the main thread reads of this thread's state.
    status: Arc<ThreadStatus>,
    writer: ResponseWriter,
    transaction: Box<[u8; TRANSACTION_BYTES_MAX]>,
    pub(super) sent: FanOutResult,
}

/// A request that the main thread answers.
struct OfMainThread;

impl<E: EngineHandle> SubmitHandler<E> {
    /// A handler without submissions so far, of connections that may be idle for this time.
    #[must_use]
    pub fn new(
        inner: SubmitPath<E>,
        keys: Arc<KeyTable>,
        counters: Counters,
        status: Arc<ThreadStatus>,
        idle_timeout_ns: u64,
    ) -> Self {
        let path = IngressPath { inner, counters };
        let transaction = Box::new([0; TRANSACTION_BYTES_MAX]);
        let writer = ResponseWriter::new(idle_timeout_ns);
        Self { path, keys, status, writer, transaction, sent: FanOutResult::default() }
    }

    fn admit(&mut self, request: &Request<'_>, out: &mut Vec<u8>) -> Handled {
        let received_ns = self.path.inner.fan_out.now_ns();
        self.path.inner.fan_out.flush_if_due(received_ns);
        let Request { token, from, .. } = *request;
        let key = match self.keys.admit(token, from, received_ns, unix_ms) {
            Ok(key) => key,
            Err(reason) => return self.refuse(request, reason, received_ns, out),
        };
        match self.respond(request, &key, received_ns, out) {
            Ok(()) => {
                self.path.counters.add(Counter::Requests, 1.0);
                Handled::Answered
            }
            Err(OfMainThread) => {
                self.path.counters.add(Counter::Proxied, 1.0);
                Handled::Proxy(ForwardedMeta { is_limit_charged: true, received_ns })
            }
        }
    }

    /// Answers a request that is not admitted.
    fn refuse(
        &mut self,
        request: &Request<'_>,
        reason: NotAdmitted,
        received_ns: u64,
        out: &mut Vec<u8>,
    ) -> Handled {
        let has_key = matches!(reason, NotAdmitted::Limited(..) | NotAdmitted::Undecided);
        if !has_key && let Some(handled) = self.keyless(request, received_ns, out) {
            return handled;
        }
        let Some(rejection) = self.not_admitted(reason, received_ns) else {
            self.path.counters.add(Counter::Proxied, 1.0);
            return Handled::Proxy(ForwardedMeta { received_ns, ..ForwardedMeta::default() });
        };
        self.refuse_without_body(request.endpoint, &rejection, out);
        Handled::Answered
    }

    /// Counts the rejection of a request that is not admitted, and returns it. None, and nothing is
    /// counted, where only the main thread can judge the key.
    pub(super) fn not_admitted(
        &mut self,
        reason: NotAdmitted,
        received_ns: u64,
    ) -> Option<Rejection> {
        match reason {
            NotAdmitted::Limited(key, rejection) => {
                // Before the body is read, so its id and its size do not count.
                let meta = RequestMeta::keyed(&key, received_ns, 0);
                self.path.reject(&rejection, &meta);
                Some(rejection)
            }
            NotAdmitted::OutOfPolicy(key, violation) => {
                let meta = RequestMeta::keyed(&key, received_ns, 0);
                self.path.violated(&violation.for_account, &meta);
                Some(Rejection::new(Reason::Unauthorized, violation.for_client))
            }
            NotAdmitted::Unknown(reason) => {
                let rejection = reason.rejection();
                self.path.counters.reject(rejection.reason);
                Some(rejection)
            }
            NotAdmitted::Undecided => None,
        }
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
    ) -> Option<Reason> {
        let &Request { endpoint, token, from, .. } = request;
        let received_ns = self.path.inner.fan_out.now_ns();
        self.path.inner.fan_out.flush_if_due(received_ns);
        let not_admitted = match reason {
            UnreadReason::KeyUnknown => self.keys.not_found(token),
            UnreadReason::TooLarge(found, needed) => {
                match self.keys.admit(token, from, received_ns, unix_ms) {
                    Err(not_admitted) => not_admitted,
                    Ok(key) => {
                        let rejection = Rejection::body_too_large(found, needed);
                        self.path.reject(&rejection, &RequestMeta::keyed(&key, received_ns, 0));
                        self.refuse_without_body(endpoint, &rejection, out);
                        return Some(Reason::TooLarge);
                    }
                }
            }
        };
        let rejection = self.not_admitted(not_admitted, received_ns)?;
        self.refuse_without_body(endpoint, &rejection, out);
        Some(rejection.reason)
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

    /// Answers a request without a valid key whose calls, alone or in a batch, need none. None for
    /// any other.
    fn keyless(
        &mut self,
        request: &Request<'_>,
        received_ns: u64,
        out: &mut Vec<u8>,
    ) -> Option<Handled> {
        let &Request { endpoint, body, is_drain_announced, .. } = request;
        if endpoint != Endpoint::JsonRpc || body.len() > KEYLESS_BODY_BYTES_MAX {
            return None;
        }
        let json = parse_body(body).ok()?;
        let batch = batch_of(&json).ok()?;
        let single = [json.root()];
        let calls = batch.as_deref().unwrap_or(&single);
        let calls_one = |call: &Value<'_>, methods: &[&str]| {
            let method = call.member("method");
            method.is_some_and(|method| methods.iter().any(|each| method.is_text(each)))
        };
        let is_of_main_thread = |call: &Value<'_>| calls_one(call, &MAIN_THREAD_METHODS);
        if !calls.iter().all(|call| calls_one(call, &["getHealth"]) || is_of_main_thread(call)) {
            return None;
        }
        if is_drain_announced || calls.iter().any(is_of_main_thread) {
            self.path.counters.add(Counter::Proxied, 1.0);
            return Some(Handled::Proxy(ForwardedMeta { received_ns, ..ForwardedMeta::default() }));
        }
        self.path.counters.add(Counter::Requests, 1.0);
        let Some(calls) = batch else {
            match rpc_body::read_call(json.root()) {
                (id, Call::Rejected(rejection)) => {
                    self.path.counters.reject(rejection.reason);
                    self.writer.rejected(out, endpoint, &id, &rejection);
                }
                (id, _) => self.writer.rpc_result(out, id.as_bytes(), HEALTHY),
            }
            return Some(Handled::Answered);
        };
        let mut responses = String::from("[");
        for (index, call) in calls.into_iter().enumerate() {
            if index > 0 {
                responses.push(',');
            }
            match rpc_body::read_call(call) {
                (id, Call::Rejected(rejection)) => {
                    self.path.counters.reject(rejection.reason);
                    rejection.push_rpc(&mut responses, &id);
                }
                (id, _) => push_result(&mut responses, &id, HEALTHY),
            }
        }
        responses.push(']');
        self.writer.json(out, responses.as_bytes());
        Some(Handled::Answered)
    }

    /// Answers, unless the main thread does.
    fn respond(
        &mut self,
        request: &Request<'_>,
        key: &Key,
        received_ns: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), OfMainThread> {
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
                let Some(call) = read_call(body, transaction.as_mut_slice()) else {
                    return self.respond_any_form(request, key, &meta, out);
                };
                let bytes = transaction.get(..call.size).unwrap_or_default();
                // It may be base58, which the parser of any form can detect.
                if !starts_well(bytes) {
                    return self.respond_any_form(request, key, &meta, out);
                }
                // Printable ASCII, as `read_call` returns it.
                let id = body.get(call.id.0..call.id.1).unwrap_or_default();
                let id = std::str::from_utf8(id).unwrap_or("null");
                let meta = RequestMeta { max_retries: call.max_retries, ..meta };
                write_rpc(writer, out, id, path.submit(bytes, &meta, sent));
            }
        }
        Ok(())
    }

    /// Answers a JSON-RPC body of any form.
    fn respond_any_form(
        &mut self,
        request: &Request<'_>,
        key: &Key,
        meta: &RequestMeta<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), OfMainThread> {
        let json = match parse_body(request.body) {
            Ok(json) => json,
            Err(rejection) => {
                self.reject_form(request, "null", &rejection, meta, out);
                return Ok(());
            }
        };
        match batch_of(&json) {
            Ok(None) => self.respond_single(request, json.root(), meta, out),
            Ok(Some(calls)) => {
                let body = self.batch(request, &calls, key, meta)?;
                self.writer.json(out, body.as_bytes());
                Ok(())
            }
            Err(rejection) => {
                self.reject_form(request, "null", &rejection, meta, out);
                Ok(())
            }
        }
    }

    fn respond_single(
        &mut self,
        request: &Request<'_>,
        call: Value<'_>,
        meta: &RequestMeta<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), OfMainThread> {
        let (id, call) = rpc_body::read_call(call);
        match call {
            Call::Health if request.is_drain_announced => return Err(OfMainThread),
            Call::MainThread => return Err(OfMainThread),
            Call::Health => self.writer.rpc_result(out, id.as_bytes(), HEALTHY),
            Call::Rejected(rejection) => self.reject_form(request, &id, &rejection, meta, out),
            Call::Send { bytes, max_retries } => {
                let meta = RequestMeta { max_retries, ..*meta };
                let submitted = self.path.submit(&bytes, &meta, &mut self.sent);
                write_rpc(&mut self.writer, out, &id, submitted);
            }
        }
        Ok(())
    }

    /// Answers a call that is refused for its form.
    fn reject_form(
        &mut self,
        request: &Request<'_>,
        id: &str,
        rejection: &Rejection,
        meta: &RequestMeta<'_>,
        out: &mut Vec<u8>,
    ) {
        self.path.reject(rejection, meta);
        self.writer.rejected(out, request.endpoint, id, rejection);
    }

    /// The response to a batch, in the order of its calls. Each further call is charged before it
    /// is read.
    fn batch(
        &mut self,
        request: &Request<'_>,
        calls: &[Value<'_>],
        key: &Key,
        meta: &RequestMeta<'_>,
    ) -> Result<String, OfMainThread> {
        let calls_method = |name| {
            let is_it = |method: Value<'_>| method.is_text(name);
            calls.iter().any(|call| call.member("method").is_some_and(is_it))
        };
        if request.is_drain_announced && calls_method("getHealth")
            || MAIN_THREAD_METHODS.into_iter().any(calls_method)
        {
            return Err(OfMainThread);
        }
        // The body's bytes, divided among the calls.
        let bytes_each = (meta.body_bytes as f64 / calls.len() as f64 + 0.5).floor() as usize;
        let meta = RequestMeta { body_bytes: bytes_each, ..*meta };
        let mut body = String::from("[");
        for (index, call) in calls.iter().enumerate() {
            if index > 0 {
                body.push(',');
                let now_ns = self.path.inner.fan_out.now_ns();
                if let Some(limited) = self.keys.charge_again(key, now_ns) {
                    self.path.reject(&limited, &meta);
                    limited.push_rpc(&mut body, &call_id(*call));
                    continue;
                }
            }
            self.batch_call(*call, &meta, &mut body);
        }
        body.push(']');
        Ok(body)
    }

    fn batch_call(&mut self, call: Value<'_>, meta: &RequestMeta<'_>, body: &mut String) {
        let (id, call) = rpc_body::read_call(call);
        match call {
            // Unreachable: `batch` leaves such a batch to the main thread.
            Call::MainThread => Rejection::internal().push_rpc(body, &id),
            Call::Health => push_result(body, &id, HEALTHY),
            Call::Rejected(rejection) => {
                self.path.reject(&rejection, meta);
                rejection.push_rpc(body, &id);
            }
            Call::Send { bytes, max_retries } => {
                let meta = RequestMeta { max_retries, ..*meta };
                match self.path.submit(&bytes, &meta, &mut self.sent) {
                    Ok(signature) => push_result(body, &id, signature.text()),
                    Err(rejection) => rejection.push_rpc(body, &id),
                }
            }
        }
    }
}

impl<E: EngineHandle> RequestHandler for SubmitHandler<E> {
    fn has_key(&self, token: &[u8]) -> bool {
        self.keys.has(token)
    }

    fn handle(&mut self, request: &Request<'_>, out: &mut Vec<u8>) -> Handled {
        let act = |this: &mut Self, out: &mut Vec<u8>| this.admit(request, out);
        self.guard(request.endpoint, out, act).unwrap_or(Handled::Answered)
    }

    fn refuse_unread(
        &mut self,
        request: &Request<'_>,
        reason: UnreadReason,
        out: &mut Vec<u8>,
    ) -> Option<Reason> {
        let act = |this: &mut Self, out: &mut Vec<u8>| this.reject_unread(request, reason, out);
        self.guard(request.endpoint, out, act).unwrap_or(Some(Reason::Internal))
    }

    fn refuse_draining(&mut self, endpoint: Endpoint, out: &mut Vec<u8>) {
        self.path.inner.fan_out.flush_if_due(self.path.inner.fan_out.now_ns());
        let rejection = Rejection::draining();
        self.path.counters.reject(rejection.reason);
        self.refuse_without_body(endpoint, &rejection, out);
    }

    fn health(&mut self, health: &Health<'_>, out: &mut Vec<u8>) {
        self.path.counters.add(Counter::Requests, 1.0);
        match *health {
            Health::Ping { is_head_only } => self.writer.ping(out, is_head_only),
            Health::Rpc { id } => self.writer.rpc_result(out, id, HEALTHY),
        }
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

    fn proxy_rejected(&mut self, charged_token: Option<&[u8]>) {
        self.path.counters.reject(Reason::Overloaded);
        if let Some(token) = charged_token {
            self.keys.refund_token(token);
        }
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
