//! RPC requests to a node, on threads of their own so that JavaScript's thread never blocks.
//!
//! One of a few threads takes a queued request, sends it and waits for the complete response;
//! responses are queued until JavaScript takes them, and the first one wakes it. Requests and
//! responses pending together are bounded: beyond that a request is rejected. Each request has its
//! own deadline, counted from `send`. Every accepted request gets a response, even if a bug or an
//! exhausted system makes its thread panic.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::rpc::http_post::{HttpClient, HttpError, HttpResponse};
use crate::rpc::limits::{CONNECTIONS_TO_NODE_MAX, RPC_REQUESTS_MAX, RPC_THREAD_STACK_BYTES};
use crate::rpc::response_filter;
use crate::rpc::statuses;
use crate::sync::thread_priority::lower_priority;

/// A request.
pub enum RpcRequest {
    /// Raw JSON.
    Json(Vec<u8>),
    /// The statuses of signatures of 64 bytes each.
    Statuses(Vec<u8>),
}

/// The content of a response's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// An error message.
    Failed,
    /// The deadline passed; no bytes.
    TimedOut,
    /// The response was too large; no bytes.
    TooLarge,
    /// The body of a response with an HTTP status; of a long one only the part that is used
    /// (`response_filter`).
    Body,
    /// Statuses in the format of `Statuses::write`.
    Statuses,
}

/// The result of one request.
#[derive(Debug)]
pub struct RpcResponse {
    /// The caller's id of the request.
    pub id: u32,
    /// The content of `bytes`.
    pub kind: Kind,
    /// The HTTP status; 0 if there is none.
    pub status: u16,
    /// The node's `Retry-After` in seconds; 0 if it sent none.
    pub retry_after_s: u32,
    /// Depends on `kind`.
    pub bytes: Vec<u8>,
}

impl RpcResponse {
    /// The id, the kind, the HTTP status, `retry_after_s` and the number of bytes.
    #[must_use]
    pub fn numbers(&self) -> [f64; 5] {
        let (kind, status) = (f64::from(self.kind as u8), f64::from(self.status));
        let retry_after_s = f64::from(self.retry_after_s);
        [f64::from(self.id), kind, status, retry_after_s, self.bytes.len() as f64]
    }
}

/// Sends requests to one node.
pub struct RpcClient {
    shared: Arc<Shared>,
}

struct Shared {
    http: HttpClient,
    /// Notifies JavaScript that responses are ready.
    wake: Box<dyn Fn() + Send + Sync>,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    queued: VecDeque<QueuedRequest>,
    responses: VecDeque<RpcResponse>,
    /// Requests whose response was not taken yet.
    pending: usize,
    threads: usize,
    idle: usize,
    closed: bool,
}

struct QueuedRequest {
    id: u32,
    request: RpcRequest,
    until: Instant,
}

impl RpcClient {
    /// Connects, and starts threads, only with the first request.
    #[must_use]
    pub fn new(http: HttpClient, wake: Box<dyn Fn() + Send + Sync>) -> Self {
        let (state, work) = (Mutex::default(), Condvar::new());
        Self { shared: Arc::new(Shared { http, wake, state, work }) }
    }

    /// Accepts a request; false when the client is closed, too many are pending, or no thread can
    /// be started.
    pub fn send(&self, id: u32, request: RpcRequest, timeout: Duration) -> bool {
        let shared = &self.shared;
        let mut state = shared.state.lock();
        if state.closed || state.pending == RPC_REQUESTS_MAX {
            return false;
        }
        if state.queued.len() >= state.idle && state.threads < CONNECTIONS_TO_NODE_MAX {
            let shared = Arc::clone(shared);
            let builder = thread::Builder::new().name("touchdown-ask".to_owned());
            let started = builder.stack_size(RPC_THREAD_STACK_BYTES).spawn(move || shared.serve());
            match started {
                Ok(_) => state.threads += 1,
                Err(_) if state.threads == 0 => return false,
                // The running threads will process it.
                Err(_) => {}
            }
        }
        state.pending += 1;
        state.queued.push_back(QueuedRequest { id, request, until: Instant::now() + timeout });
        shared.work.notify_one();
        true
    }

    /// The oldest response, which stays in the queue.
    pub fn peek<T>(&self, read_it: impl FnOnce(&RpcResponse) -> T) -> Option<T> {
        self.shared.state.lock().responses.front().map(read_it)
    }

    /// Removes and returns the oldest response.
    #[must_use]
    pub fn take(&self) -> Option<RpcResponse> {
        let mut state = self.shared.state.lock();
        let response = state.responses.pop_front()?;
        state.pending -= 1;
        Some(response)
    }

    /// Ends connections and threads; pending requests get no response.
    pub fn close(&self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        state.queued.clear();
        state.responses.clear();
        drop(state);
        self.shared.work.notify_all();
        self.shared.http.shut_down();
    }
}

impl Drop for RpcClient {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// The loop of a worker thread.
    fn serve(&self) {
        lower_priority();
        while let Some(queued) = self.next() {
            let id = queued.id;
            let outcome = catch_unwind(AssertUnwindSafe(|| self.response(queued)));
            let response = outcome.unwrap_or_else(|_| self.internal_error(id));
            let mut state = self.state.lock();
            if state.closed {
                return;
            }
            state.responses.push_back(response);
            let is_first = state.responses.len() == 1;
            drop(state);
            if is_first {
                (self.wake)();
            }
        }
    }

    /// Waits for a request; None when the client is closed.
    fn next(&self) -> Option<QueuedRequest> {
        let mut state = self.state.lock();
        state.idle += 1;
        while state.queued.is_empty() && !state.closed {
            self.work.wait(&mut state);
        }
        state.idle -= 1;
        state.queued.pop_front()
    }

    /// The response after a panic. For example, ureq panics when it cannot start the thread that
    /// resolves the host name.
    fn internal_error(&self, id: u32) -> RpcResponse {
        // Locks that it held when it panicked are no longer usable.
        self.http.leave_idle();
        failed(id, Kind::Failed, "the native engine failed to send the request".into())
    }

    fn response(&self, QueuedRequest { id, request, until }: QueuedRequest) -> RpcResponse {
        let outcome = match &request {
            RpcRequest::Json(text) => self.http.post(text, until),
            RpcRequest::Statuses(signatures) => {
                self.http.post(&statuses::request(signatures), until)
            }
        };
        match outcome {
            Err(HttpError::TimedOut) => failed(id, Kind::TimedOut, Vec::new()),
            Err(HttpError::TooLarge) => failed(id, Kind::TooLarge, Vec::new()),
            Err(HttpError::Failed(why)) => failed(id, Kind::Failed, why.into_bytes()),
            Ok(HttpResponse { status, retry_after_s, body }) => {
                let (kind, bytes) = read(&request, status, body);
                RpcResponse { id, kind, status, retry_after_s, bytes }
            }
        }
    }
}

fn failed(id: u32, kind: Kind, bytes: Vec<u8>) -> RpcResponse {
    RpcResponse { id, kind, status: 0, retry_after_s: 0, bytes }
}

/// Parses statuses of the usual form; JavaScript parses everything else.
fn read(request: &RpcRequest, status: u16, body: Vec<u8>) -> (Kind, Vec<u8>) {
    match (request, status) {
        (RpcRequest::Statuses(signatures), 200..300) => {
            let count = signatures.len() / statuses::SIGNATURE_BYTES;
            if let Some(statuses) = statuses::read(&body, count) {
                return (Kind::Statuses, statuses.write());
            }
        }
        (RpcRequest::Json(text), 200..300) => {
            if let Some(short) = response_filter::filtered(text, &body) {
                return (Kind::Body, short);
            }
        }
        _ => {}
    }
    (Kind::Body, body)
}
