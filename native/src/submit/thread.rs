//! The thread of a front, and what others hold of it.
//!
//! Decision: docs/decisions/0017-realtime-is-opt-in.md

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;

use crate::decode::decoder::Decoder;
use crate::http::event_loop;
use crate::http::mailbox::{Command, DoorHandle, inlet};
use crate::quic::engine::Engine;
use crate::quic::event_ring::Waker;
use crate::submit::counters::Figures;
use crate::submit::dedup::Seen;
use crate::submit::fan_out::{EngineWire, Sending};
use crate::submit::key_cache::Passes;
use crate::submit::path::{FrontDesk, News, Parts};
use crate::submit::rate_limit::LimitCells;
use crate::submit::record_ring::Records;
use crate::submit::route_table::Routes;
use crate::submit::wakeup::{State, Teller, Told};
use crate::sync::shared_memory::Memory;
use crate::sync::thread_priority::go_first;

/// What a front shares with the main thread.
pub struct Shared {
    /// For `record_ring`.
    pub records: Memory,
    /// For `counters`.
    pub figures: Memory,
    /// For `route_table`.
    pub routes: Memory,
    /// For `dedup`.
    pub seen: Memory,
    /// For `rate_limit`.
    pub passes: Memory,
}

/// What a front is started with.
pub struct Options {
    /// Its connections, and where it relays to.
    pub door: event_loop::Options,
    /// The engine, by the handle that its routes name.
    pub engine: (u32, Arc<Engine>),
    /// Judges transactions.
    pub decoder: Arc<Decoder>,
    /// Whether its thread goes before all without a real-time priority.
    pub is_first: bool,
}

/// Why a front does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// Some memory has another size.
    Memory,
    /// The system gives no thread, or nothing to wait by.
    Thread,
    /// The system allows it no real-time priority.
    Priority,
}

/// A front.
pub struct Front {
    door: DoorHandle<News>,
    told: Arc<Told>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Front {
    /// Starts one, which has no connections until somebody listens for it. `waker` is called when
    /// it has something.
    ///
    /// # Errors
    /// See `StartError`.
    pub fn start(options: Options, shared: &Shared, waker: Waker) -> Result<Self, StartError> {
        let told = Arc::new(Told::new(waker));
        let mut desk = desk_of(&options, shared, told.clone()).ok_or(StartError::Memory)?;
        let (door, inlet) = inlet().map_err(|_| StartError::Thread)?;
        let (ready, is_ready) = sync_channel(1);
        let (is_first, tells) = (options.is_first, told.clone());
        let run = move || {
            let goes = !is_first || go_first();
            let is_heard = ready.send(goes).is_ok();
            if !goes || !is_heard {
                return;
            }
            let serve = || event_loop::run(options.door, &mut desk, inlet);
            let is_well = catch_unwind(AssertUnwindSafe(serve)).is_ok_and(|ran| ran.is_ok());
            tells.enter(if is_well { State::Ended } else { State::Failed });
        };
        let thread = Builder::new().name("touchdown-front".into()).spawn(run);
        let thread = thread.map_err(|_| StartError::Thread)?;
        match is_ready.recv() {
            Ok(true) => Ok(Self { door, told, thread: Mutex::new(Some(thread)) }),
            _ => Err(StartError::Priority),
        }
    }

    /// Has it do this.
    pub fn tell(&self, command: Command<News>) {
        self.door.send(command);
    }

    /// By which connections come to it.
    #[must_use]
    pub fn door(&self) -> &DoorHandle<News> {
        &self.door
    }

    /// What it tells.
    #[must_use]
    pub fn told(&self) -> &Told {
        &self.told
    }

    /// Ends it at once, and waits for that: it touches no shared memory any more.
    pub fn end(&self) {
        self.door.send(Command::End);
        // Who comes second waits here for who came first.
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

fn desk_of(options: &Options, shared: &Shared, told: Arc<Told>) -> Option<FrontDesk<EngineWire>> {
    let (handle, engine) = options.engine.clone();
    let wire = EngineWire::new(handle, engine);
    Some(FrontDesk::new(Parts {
        passes: Passes::new(LimitCells::new(&shared.passes)?),
        seen: Seen::open(&shared.seen)?,
        decoder: options.decoder.clone(),
        records: Records::open(&shared.records)?,
        figures: Figures::open(&shared.figures)?,
        teller: Teller::new(told),
        // Last, because it takes a number among the fronts.
        sending: Sending::new(Routes::open(&shared.routes)?, wire),
    }))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::quic::engine;
    use crate::submit::counters::FIGURES_BYTES;
    use crate::submit::dedup::{Sizes, prepared};
    use crate::submit::rate_limit::PASS_MEMORY_BYTES;
    use crate::submit::record_ring::RECORDS_BYTES;
    use crate::submit::route_table::ROUTES_BYTES;

    const GUARD: Duration = Duration::from_secs(20);

    fn shared() -> Shared {
        let [records, figures, routes, passes] =
            [RECORDS_BYTES, FIGURES_BYTES, ROUTES_BYTES, PASS_MEMORY_BYTES].map(Memory::fresh);
        Shared { records, figures, routes, passes, seen: prepared(Sizes::default(), 1).unwrap() }
    }

    fn options() -> Options {
        let binds = vec!["127.0.0.1:0".parse().unwrap()];
        let given = engine::Options { binds, seed: [1; 32], ..engine::Options::default() };
        let engine = Engine::start(given, Box::new(|| {})).unwrap();
        let door = event_loop::Options {
            backend: SocketAddr::from((Ipv4Addr::LOCALHOST, 9)),
            secret_name: "x-name".into(),
            front: 0,
            connections_max: 8,
            relays_max: 8,
            relays_per_address: 8,
            read_timeout_ns: 1,
        };
        let decoder = Arc::new(Decoder::new(&[1; 32], 0.0, true, 1).unwrap());
        Options { door, engine: (1, engine), decoder, is_first: false }
    }

    #[test]
    fn it_runs_says_that_it_is_idle_and_ends() {
        let (sender, woken) = channel();
        let wake = Box::new(move || sender.send(()).unwrap_or_default());
        let front = Front::start(options(), &shared(), wake).unwrap();
        assert_eq!(front.told().state(), State::Runs as u8);
        front.tell(Command::Stop);
        woken.recv_timeout(GUARD).unwrap();
        assert_eq!(front.told().state(), State::Idle as u8);
        assert!(front.told().take_returned(1).is_empty());
        front.end();
        woken.recv_timeout(GUARD).unwrap();
        assert_eq!(front.told().state(), State::Ended as u8);
        // Who comes later finds it ended.
        front.end();
        front.tell(Command::Stop);
    }

    #[test]
    fn it_does_not_start_on_memory_of_another_size() {
        let whole = shared();
        let none = || Memory::fresh(8);
        for index in 0..5 {
            let mut parts =
                [&whole.records, &whole.figures, &whole.routes, &whole.seen, &whole.passes]
                    .map(Clone::clone);
            parts[index] = none();
            let [records, figures, routes, seen, passes] = parts;
            let shared = Shared { records, figures, routes, seen, passes };
            let started = Front::start(options(), &shared, Box::new(|| {}));
            assert_eq!(started.err(), Some(StartError::Memory));
        }
    }
}
