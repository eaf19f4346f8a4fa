//! Converts JavaScript calls: resolves handles, turns panics and missing objects into codes, and
//! copies numbers and bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use napi::bindgen_prelude::{Float64ArraySlice, Function};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;

use crate::decode::decoder::{DECODERS_MAX, Decoder};
use crate::node::handles::Handles;
use crate::node::limits::{ENGINES_MAX, KEY_TABLES_MAX};
use crate::node::options::EngineOptions;
use crate::node::shared_bytes::writable;
use crate::node::status_codes::{NO_KEY_TABLE, NO_ROOM, PANIC};
use crate::quic::engine::{Engine, Options};
use crate::quic::event_ring::Waker;
use crate::quic::tls::Transport;
use crate::submit::key_table::KeyTable;

pub(crate) static ENGINES: Handles<Engine> = Handles::new(ENGINES_MAX);
pub(crate) static DECODERS: Handles<Decoder> = Handles::new(DECODERS_MAX);
pub(crate) static KEY_TABLES: Handles<KeyTable> = Handles::new(KEY_TABLES_MAX);

/// The result of `act`, or `otherwise` if it panics.
pub(crate) fn guarded<T>(otherwise: T, act: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or(otherwise)
}

/// The same with the engine of a handle; `otherwise` also if there is none.
pub(crate) fn with_engine<T: Copy>(
    handle: u32,
    otherwise: T,
    act: impl FnOnce(&Arc<Engine>) -> T,
) -> T {
    guarded(otherwise, || {
        let engine = ENGINES.find(handle);
        engine.as_ref().map_or(otherwise, act)
    })
}

/// The result of `act` with the key table of a handle; `NO_KEY_TABLE` or `PANIC` otherwise.
pub(crate) fn with_key_table(handle: u32, act: impl FnOnce(&KeyTable) -> i32) -> i32 {
    guarded(PANIC, || KEY_TABLES.find(handle).map_or(NO_KEY_TABLE, |table| act(&table)))
}

/// The handle of what `make` returns; `full` if there are too many.
pub(crate) fn insert_made<T>(handles: &Handles<T>, full: i32, make: impl FnOnce() -> T) -> i32 {
    let made = handles.insert(|_| false, || Ok::<_, ()>(Arc::new(make())));
    made.and_then(|made| made.ok()?.try_into().ok()).unwrap_or(full)
}

/// A waker that calls `wake` on its own thread, from any other. None if Node rejects it.
pub(crate) fn waker(wake: Function<'_, (), ()>) -> Option<Waker> {
    let builder = wake.build_threadsafe_function::<()>().weak::<true>().max_queue_size::<2>();
    let wake = builder.build().ok()?;
    Some(Box::new(move || {
        // A full queue means that a call is pending already; a closed one that Node is exiting.
        let _ = wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }))
}

/// Writes as many of the numbers as fit; returns their count.
pub(crate) fn fill(out: &mut Float64ArraySlice<'_>, numbers: impl IntoIterator<Item = u64>) -> u32 {
    let mut written = 0;
    for (slot, number) in writable(out).iter_mut().zip(numbers) {
        *slot = number as f64;
        written += 1;
    }
    written
}

/// Writes the numbers of `next`, which is called only if they fit; returns 1, 0 if it returns None,
/// or `NO_ROOM`.
pub(crate) fn put<const COUNT: usize>(
    out: &mut Float64ArraySlice<'_>,
    next: impl FnOnce() -> Option<[f64; COUNT]>,
) -> i32 {
    let Some(out) = writable(out).first_chunk_mut::<COUNT>() else {
        return NO_ROOM;
    };
    next().map_or(0, |numbers| {
        *out = numbers;
        1
    })
}

/// The options as the engine's types; None if one is invalid.
pub(crate) fn parse_options(given: &EngineOptions) -> Option<Options> {
    let binds = given.binds.0.as_ref()?;
    let binds = binds.iter().map(|bind| bind.parse().ok()).collect::<Option<Vec<_>>>()?;
    Some(Options {
        binds,
        seed: <[u8; 32]>::try_from(given.seed.as_ref()).ok()?,
        queue_max: given.queue_max as usize,
        in_flight_max: given.in_flight_max as usize,
        admission_timeout: milliseconds(given.admission_timeout_ms),
        busy_poll: Duration::from_micros(u64::from(given.busy_poll_us)),
        transport: Transport {
            idle_timeout: milliseconds(given.idle_timeout_ms),
            keep_alive: milliseconds(given.keep_alive_ms),
            ..Transport::default()
        },
    })
}

pub(crate) fn milliseconds(count: u32) -> Duration {
    Duration::from_millis(u64::from(count))
}
