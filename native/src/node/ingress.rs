//! Fronts: threads that take requests by themselves; and what a thread asks of the scheduler.

use napi::Env;
use napi::bindgen_prelude::{Float64ArraySlice, Function};
use napi_derive::napi;

use crate::http::mailbox::Command;
use crate::node::convert::{fill, guarded, waker};
use crate::node::ingress_convert::{
    close_front, listen_for, pass_of, start_front, tell_front, with_front,
};
use crate::node::options::{FrontMemory, FrontOptions};
use crate::node::status_codes::*;
use crate::submit::path::News;

/// Starts a front on memory of `SharedArrayBuffer`s, which is its own until `front_close`. `wake` is
/// called without arguments, on the thread that called this, when it has something: records, places
/// given back, or its end. Returns the front's handle, above 0, or FRONT_OPTIONS, FRONT_FULL,
/// NO_PRIORITY, or PANIC.
#[napi]
pub fn front_start(
    env: Env,
    options: FrontOptions,
    memory: FrontMemory,
    wake: Function<'_, (), ()>,
) -> i32 {
    guarded(PANIC, || {
        let Some(waker) = waker(wake) else { return FRONT_OPTIONS };
        start_front(env, options, memory, waker)
    })
}

/// Listens for these fronts, which get the connections in turn; port 0 takes any free one. One
/// address may hold `per_address` connections, over all of them. Returns the port, or NO_FRONT,
/// FRONT_LISTEN or PANIC.
#[napi]
pub fn fronts_listen(fronts: &[u32], host: String, port: u32, per_address: u32) -> i32 {
    guarded(PANIC, || listen_for(fronts, &host, port, per_address))
}

/// Has the front let this key in by itself, as PASS_NUMBERS numbers say; `ranges` are networks in
/// CIDR notation with commas in between. Returns OK, NO_FRONT, FRONT_OPTIONS or PANIC.
#[napi]
pub fn front_pass(front: u32, token: String, numbers: &[f64], ranges: String) -> i32 {
    with_front(front, |front| match pass_of(numbers, &ranges) {
        Some(pass) => tell_front(front, Command::News(News::Pass(token.into_bytes().into(), pass))),
        None => FRONT_OPTIONS,
    })
}

/// Takes that pass back; `front_returned` tells when it is not used any more. Returns OK, NO_FRONT
/// or PANIC.
#[napi]
pub fn front_pass_over(front: u32, token: String, place: u32) -> i32 {
    with_front(front, |front| {
        tell_front(front, Command::News(News::PassOver(token.into_bytes().into(), place)))
    })
}

/// Writes places of passes that the front uses no more, as many as there is room for. Returns how
/// many, or NO_FRONT or PANIC. Whatever comes after this call wakes again.
#[napi]
pub fn front_returned(front: u32, mut out: Float64ArraySlice<'_>) -> i32 {
    with_front(front, |front| {
        let places = front.told().take_returned(out.len());
        i32::try_from(fill(&mut out, places.into_iter().map(u64::from))).unwrap_or(i32::MAX)
    })
}

/// Has a front relay all (1), take no more connections and end with what is in hand (2), or end at
/// once (3). Returns OK, NO_FRONT, FRONT_OPTIONS or PANIC.
#[napi]
pub fn front_tell(front: u32, what: u32) -> i32 {
    with_front(front, |front| match what {
        1 => tell_front(front, Command::Drain),
        2 => tell_front(front, Command::Stop),
        3 => tell_front(front, Command::End),
        _ => FRONT_OPTIONS,
    })
}

/// Returns 1 while a front runs, 2 once it has ended, 3 where it failed, NO_FRONT or PANIC.
#[napi]
pub fn front_state(front: u32) -> i32 {
    with_front(front, |front| i32::from(front.told().state()))
}

/// Ends a front where it has not, waits for that, and gives its memory back. Returns OK, NO_FRONT or
/// PANIC.
#[napi]
pub fn front_close(front: u32) -> i32 {
    guarded(PANIC, || close_front(front))
}

/// Lets other threads that wait for this processor have their turn first. Returns OK.
#[napi]
pub fn thread_yield() -> i32 {
    std::thread::yield_now();
    OK
}
