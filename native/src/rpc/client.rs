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

use crate::limits::{ASKING_STACK_BYTES, CONNECTIONS_TO_NODE_MAX, QUESTIONS_MAX};
use crate::rpc::http_post::{Answered, Unanswered, Web};
use crate::rpc::response_filter;
use crate::rpc::statuses;
use crate::sync::thread_priority::give_way;

/// What is asked.
pub enum Question {
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
    Late,
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
pub struct Answer {
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

impl Answer {
    /// The id, the kind, the HTTP status, `retry_after_s` and how many bytes there are.
    #[must_use]
    pub fn numbers(&self) -> [f64; 5] {
        let (kind, status) = (f64::from(self.kind as u8), f64::from(self.status));
        let retry_after_s = f64::from(self.retry_after_s);
        [f64::from(self.id), kind, status, retry_after_s, self.bytes.len() as f64]
    }
}

/// Asks one node.
pub struct Asker {
    shared: Arc<Shared>,
}

struct Shared {
    web: Web,
    /// Tells JavaScript that there are answers.
    wake: Box<dyn Fn() + Send + Sync>,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    answers: VecDeque<Answer>,
    /// Questions whose answer was not taken yet.
    in_hand: usize,
    threads: usize,
    idle: usize,
    closed: bool,
}

struct Waiting {
    id: u32,
    question: Question,
    until: Instant,
}

impl Asker {
    /// Nothing is connected and no thread started before the first question.
    #[must_use]
    pub fn new(web: Web, wake: Box<dyn Fn() + Send + Sync>) -> Self {
        let (state, work) = (Mutex::default(), Condvar::new());
        Self { shared: Arc::new(Shared { web, wake, state, work }) }
    }

    /// Takes a question on; false when it is closed, too much is in hand, or no thread starts.
    pub fn ask(&self, id: u32, question: Question, timeout: Duration) -> bool {
        let shared = &self.shared;
        let mut state = shared.state.lock();
        if state.closed || state.in_hand == QUESTIONS_MAX {
            return false;
        }
        if state.waiting.len() >= state.idle && state.threads < CONNECTIONS_TO_NODE_MAX {
            let shared = Arc::clone(shared);
            let builder = thread::Builder::new().name("touchdown-ask".to_owned());
            let started = builder.stack_size(ASKING_STACK_BYTES).spawn(move || shared.serve());
            match started {
                Ok(_) => state.threads += 1,
                Err(_) if state.threads == 0 => return false,
                // The others will come to it.
                Err(_) => {}
            }
        }
        state.in_hand += 1;
        state.waiting.push_back(Waiting { id, question, until: Instant::now() + timeout });
        shared.work.notify_one();
        true
    }

    /// The oldest answer, for as long as nobody takes it.
    pub fn peek<T>(&self, look: impl FnOnce(&Answer) -> T) -> Option<T> {
        self.shared.state.lock().answers.front().map(look)
    }

    /// Takes the oldest answer.
    #[must_use]
    pub fn take(&self) -> Option<Answer> {
        let mut state = self.shared.state.lock();
        let answer = state.answers.pop_front()?;
        state.in_hand -= 1;
        Some(answer)
    }

    /// Ends connections and threads; questions in hand stay without an answer.
    pub fn close(&self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        state.waiting.clear();
        state.answers.clear();
        drop(state);
        self.shared.work.notify_all();
        self.shared.web.shut_down();
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// A thread's life.
    fn serve(&self) {
        give_way();
        while let Some(waiting) = self.next() {
            let id = waiting.id;
            let asked = catch_unwind(AssertUnwindSafe(|| self.answer(waiting)));
            let answer = asked.unwrap_or_else(|_| self.give_up(id));
            let mut state = self.state.lock();
            if state.closed {
                return;
            }
            state.answers.push_back(answer);
            let is_first = state.answers.len() == 1;
            drop(state);
            if is_first {
                (self.wake)();
            }
        }
    }

    /// Waits for a question; none when there will be no more.
    fn next(&self) -> Option<Waiting> {
        let mut state = self.state.lock();
        state.idle += 1;
        while state.waiting.is_empty() && !state.closed {
            self.work.wait(&mut state);
        }
        state.idle -= 1;
        state.waiting.pop_front()
    }

    /// Such as where no thread starts that looks the host up: ureq panics then.
    fn give_up(&self, id: u32) -> Answer {
        // Locks that it held when it panicked are of no use any more.
        self.web.leave_idle();
        failed(id, Kind::Failed, "the engine failed to ask".into())
    }

    fn answer(&self, Waiting { id, question, until }: Waiting) -> Answer {
        let asked = match &question {
            Question::Json(text) => self.web.post(text, until),
            Question::Statuses(signatures) => self.web.post(&statuses::question(signatures), until),
        };
        match asked {
            Err(Unanswered::Late) => failed(id, Kind::Late, Vec::new()),
            Err(Unanswered::TooLarge) => failed(id, Kind::TooLarge, Vec::new()),
            Err(Unanswered::Broken(why)) => failed(id, Kind::Failed, why.into_bytes()),
            Ok(Answered { status, retry_after_s, body }) => {
                let (kind, bytes) = read(&question, status, body);
                Answer { id, kind, status, retry_after_s, bytes }
            }
        }
    }
}

fn failed(id: u32, kind: Kind, bytes: Vec<u8>) -> Answer {
    Answer { id, kind, status: 0, retry_after_s: 0, bytes }
}

/// Statuses of the usual form are read here, everything else by JavaScript.
fn read(question: &Question, status: u16, body: Vec<u8>) -> (Kind, Vec<u8>) {
    match (question, status) {
        (Question::Statuses(signatures), 200..300) => {
            let count = signatures.len() / statuses::SIGNATURE_BYTES;
            if let Some(statuses) = statuses::read(&body, count) {
                return (Kind::Statuses, statuses.write());
            }
        }
        (Question::Json(text), 200..300) => {
            if let Some(short) = response_filter::shortened(text, &body) {
                return (Kind::Body, short);
            }
        }
        _ => {}
    }
    (Kind::Body, body)
}
