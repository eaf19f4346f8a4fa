//! Questions to a node, asked away from JavaScript's thread, and without getting in its way.
//!
//! A question waits for one of a few threads, which asks it and waits for the whole answer; answers
//! wait here until JavaScript takes them, and wake it when the first of them comes. What is in
//! hand, asked or answered, is bounded: beyond that a question is refused. Each question has its
//! own deadline, counted from when it was handed over. Each that is taken on is answered, also
//! where a bug or an exhausted system makes its thread panic.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::limits::{CONNECTIONS_TO_NODE_MAX, RPC_REQUESTS_MAX, RPC_THREAD_STACK_BYTES};
use crate::rpc::http_post::{HttpClient, HttpError, HttpResponse};
use crate::rpc::response_filter;
use crate::rpc::statuses;
use crate::sync::thread_priority::give_way;

/// What is asked.
pub enum RpcRequest {
    /// This JSON.
    Json(Vec<u8>),
    /// What became of signatures of 64 bytes each.
    Statuses(Vec<u8>),
}

/// What an answer's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The words of what went wrong.
    Failed,
    /// The time was up; no bytes.
    TimedOut,
    /// The answer was too large; no bytes.
    TooLarge,
    /// The body of an answer with an HTTP status; of a long one what is read of it
    /// (`response_filter`).
    Body,
    /// Statuses, as `Statuses::write` writes them.
    Statuses,
}

/// What came of one question.
#[derive(Debug)]
pub struct RpcResponse {
    /// The asker's name for the question.
    pub id: u32,
    /// What its bytes are.
    pub kind: Kind,
    /// Of HTTP; 0 where there is none.
    pub status: u16,
    /// For how long the node asks not to be asked again, in seconds; 0 when it does not.
    pub retry_after_s: u32,
    /// As the kind says.
    pub bytes: Vec<u8>,
}

impl RpcResponse {
    /// The id, the kind, the HTTP status, `retry_after_s` and how many bytes there are.
    #[must_use]
    pub fn numbers(&self) -> [f64; 5] {
        let (kind, status) = (f64::from(self.kind as u8), f64::from(self.status));
        let retry_after_s = f64::from(self.retry_after_s);
        [f64::from(self.id), kind, status, retry_after_s, self.bytes.len() as f64]
    }
}

/// Asks one node.
pub struct RpcClient {
    shared: Arc<Shared>,
}

struct Shared {
    http: HttpClient,
    /// Tells JavaScript that there are answers.
    wake: Box<dyn Fn() + Send + Sync>,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    queued: VecDeque<QueuedRequest>,
    responses: VecDeque<RpcResponse>,
    /// Questions whose answer was not taken yet.
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
    /// Nothing is connected and no thread started before the first question.
    #[must_use]
    pub fn new(http: HttpClient, wake: Box<dyn Fn() + Send + Sync>) -> Self {
        let (state, work) = (Mutex::default(), Condvar::new());
        Self { shared: Arc::new(Shared { http, wake, state, work }) }
    }

    /// Takes a question on; false when it is closed, too much is in hand, or no thread starts.
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
                // The others will come to it.
                Err(_) => {}
            }
        }
        state.pending += 1;
        state.queued.push_back(QueuedRequest { id, request, until: Instant::now() + timeout });
        shared.work.notify_one();
        true
    }

    /// The oldest answer, for as long as nobody takes it.
    pub fn peek<T>(&self, read_it: impl FnOnce(&RpcResponse) -> T) -> Option<T> {
        self.shared.state.lock().responses.front().map(read_it)
    }

    /// Takes the oldest answer.
    #[must_use]
    pub fn take(&self) -> Option<RpcResponse> {
        let mut state = self.shared.state.lock();
        let response = state.responses.pop_front()?;
        state.pending -= 1;
        Some(response)
    }

    /// Ends connections and threads; questions in hand stay without an answer.
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
    /// A thread's life.
    fn serve(&self) {
        give_way();
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

    /// Waits for a question; none when there will be no more.
    fn next(&self) -> Option<QueuedRequest> {
        let mut state = self.state.lock();
        state.idle += 1;
        while state.queued.is_empty() && !state.closed {
            self.work.wait(&mut state);
        }
        state.idle -= 1;
        state.queued.pop_front()
    }

    /// Such as where no thread starts that looks the host up: ureq panics then.
    fn internal_error(&self, id: u32) -> RpcResponse {
        // Locks that it held when it panicked are of no use any more.
        self.http.leave_idle();
        failed(id, Kind::Failed, "the engine failed to ask".into())
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

/// Statuses of the usual form are read here, everything else by JavaScript.
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
