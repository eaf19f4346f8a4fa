//! An ingress thread, and the handle that other threads hold.
//!
//! Decision: docs/decisions/0017-realtime-is-opt-in.md

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;

use crate::decode::decoder::Decoder;
use crate::http::event_loop;
use crate::http::mailbox::{Command, EventLoopHandle, mailbox};
use crate::http::rpc_body::KeylessMethods;
use crate::quic::engine::Engine;
use crate::quic::event_ring::Waker;
use crate::submit::counters::Counters;
use crate::submit::dedup::DedupCache;
use crate::submit::fan_out::{EngineRef, FanOut};
use crate::submit::key_table::KeyTable;
use crate::submit::path::SubmitPath;
use crate::submit::records::Records;
use crate::submit::requests::SubmitHandler;
use crate::submit::thread_status::{ThreadState, ThreadStatus};
use crate::sync::shared_memory::Memory;
use crate::sync::thread_priority::{set_realtime, shorten_slice};

/// What an ingress thread shares with the main thread.
pub struct Shared {
    /// For `counters`.
    pub counters: Memory,
    /// That of the main thread.
    pub dedup: Arc<DedupCache>,
}

/// Options of an ingress thread.
pub struct Options {
    /// Its connection limits, and the upstream server.
    pub event_loop: event_loop::Options,
    /// The engine.
    pub engine: Arc<Engine>,
    /// Validates transactions.
    pub decoder: Arc<Decoder>,
    /// Every key.
    pub keys: Arc<KeyTable>,
    /// Which methods need none.
    pub keyless_methods: Arc<KeylessMethods>,
    /// Whether the thread gets a real-time priority.
    pub is_realtime: bool,
}

/// Why an ingress thread does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// Some memory has another size.
    Memory,
    /// The system provides no thread, or no poll.
    Thread,
    /// The system does not allow a real-time priority.
    Priority,
}

/// A running ingress thread.
pub struct IngressThread {
    event_loop: EventLoopHandle,
    status: Arc<ThreadStatus>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl IngressThread {
    /// Starts a thread without connections; `Command::Listen` makes it accept some. `waker` wakes
    /// the main thread.
    ///
    /// # Errors
    /// See `StartError`.
    pub fn start(options: Options, shared: &Shared, waker: Waker) -> Result<Self, StartError> {
        let status = Arc::new(ThreadStatus::new(waker));
        let mut handler = handler_of(&options, shared, status.clone()).ok_or(StartError::Memory)?;
        let (event_loop, mailbox) = mailbox().map_err(|_| StartError::Thread)?;
        let (ready, is_ready) = sync_channel(1);
        let (is_realtime, status_writer) = (options.is_realtime, status.clone());
        let run = move || {
            shorten_slice();
            let has_priority = !is_realtime || set_realtime();
            let is_reported = ready.send(has_priority).is_ok();
            if !has_priority || !is_reported {
                return;
            }
            let serve = || event_loop::run(options.event_loop, &mut handler, mailbox);
            let is_ok = catch_unwind(AssertUnwindSafe(serve)).is_ok_and(|ran| ran.is_ok());
            status_writer.enter(if is_ok { ThreadState::Exited } else { ThreadState::Panicked });
        };
        let thread = Builder::new().name("td-ingress".into()).spawn(run);
        let thread = thread.map_err(|_| StartError::Thread)?;
        match is_ready.recv() {
            Ok(true) => Ok(Self { event_loop, status, thread: Mutex::new(Some(thread)) }),
            _ => Err(StartError::Priority),
        }
    }

    /// Sends it a command.
    pub fn send(&self, command: Command) {
        self.event_loop.send(command);
    }

    /// The handle by which it gets connections.
    #[must_use]
    pub fn event_loop(&self) -> &EventLoopHandle {
        &self.event_loop
    }

    /// State that it reports.
    #[must_use]
    pub fn status(&self) -> &ThreadStatus {
        &self.status
    }

    /// Ends it immediately and waits for that: afterwards it does not touch the shared memory.
    pub fn end(&self) {
        self.event_loop.send(Command::Exit);
        // A second caller waits here for the first.
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

fn handler_of(
    options: &Options,
    shared: &Shared,
    status: Arc<ThreadStatus>,
) -> Option<SubmitHandler<EngineRef>> {
    let engine = options.engine.clone();
    let path = SubmitPath {
        dedup: shared.dedup.clone(),
        decoder: options.decoder.clone(),
        records: Records::new(engine.events().clone()),
        fan_out: FanOut::new(engine.targets().clone(), EngineRef(engine)),
    };
    let counters = Counters::open(&shared.counters)?;
    let idle_timeout_ns = options.event_loop.idle_timeout_ns;
    let (keys, keyless_methods) = (options.keys.clone(), options.keyless_methods.clone());
    Some(SubmitHandler::new(path, keys, keyless_methods, counters, status, idle_timeout_ns))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::quic::engine;
    use crate::submit::counters::COUNTERS_BYTES;
    use crate::submit::dedup::Sizes;

    const GUARD: Duration = Duration::from_secs(20);

    fn shared() -> Shared {
        let counters = Memory::fresh(COUNTERS_BYTES);
        Shared { counters, dedup: Arc::new(DedupCache::new(Sizes::default())) }
    }

    fn options() -> Options {
        let binds = vec!["127.0.0.1:0".parse().unwrap()];
        let given = engine::Options { binds, seed: [1; 32], ..engine::Options::default() };
        let engine = Engine::start(given, Box::new(|| {})).unwrap();
        let event_loop = event_loop::Options {
            upstream: SocketAddr::from((Ipv4Addr::LOCALHOST, 9)),
            forwarded_header_name: "x-name".into(),
            connections_max: 8,
            upstream_connections_max: 8,
            upstream_connections_per_address: 8,
            read_timeout_ns: 1,
            idle_timeout_ns: 1,
        };
        let decoder = Arc::new(Decoder::new(&[1; 32], 0.0, true, 1).unwrap());
        let keys = Arc::default();
        let keyless_methods = Arc::default();
        Options { event_loop, engine, decoder, keys, keyless_methods, is_realtime: false }
    }

    #[test]
    fn thread_reports_running_idle_and_exited() {
        let (sender, woken) = channel();
        let wake = Box::new(move || sender.send(()).unwrap_or_default());
        let thread = IngressThread::start(options(), &shared(), wake).unwrap();
        assert_eq!(thread.status().state(), ThreadState::Running as u8);
        thread.send(Command::Stop);
        woken.recv_timeout(GUARD).unwrap();
        assert_eq!(thread.status().state(), ThreadState::Idle as u8);
        thread.end();
        woken.recv_timeout(GUARD).unwrap();
        assert_eq!(thread.status().state(), ThreadState::Exited as u8);
        // Ending it again has no effect.
        thread.end();
        thread.send(Command::Stop);
    }

    #[test]
    fn memory_of_another_size_prevents_the_start() {
        let shared = Shared { counters: Memory::fresh(8), ..shared() };
        let started = IngressThread::start(options(), &shared, Box::new(|| {}));
        assert_eq!(started.err(), Some(StartError::Memory));
    }
}
