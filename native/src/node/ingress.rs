//! Exports of ingress threads, and of yielding the processor.

use napi::Env;
use napi::bindgen_prelude::Function;
use napi_derive::napi;

use crate::http::mailbox::Command;
use crate::node::convert::{guarded, waker};
use crate::node::ingress_convert::{
    close_ingress_thread, listen_for, listen_quic_for, offer_receipts, present,
    quic_thread_at_place, start_ingress_thread, with_ingress_thread,
};
use crate::node::listening_socket::{inherited, into_descriptor, socket_of};
use crate::node::options::{IngressThreadOptions, QuicListenOptions};
use crate::node::shared_bytes::SharedBytes;
use crate::node::status_codes::*;

/// Starts an ingress thread, whose counters are in a `SharedArrayBuffer` until
/// `ingress_thread_close`. `wake` is called without arguments, on the calling thread, when its
/// state has changed. Returns its handle, above 0, or INGRESS_THREAD_OPTIONS, INGRESS_THREAD_FULL,
/// NO_PRIORITY, or PANIC.
#[napi]
pub fn ingress_thread_start(
    env: Env,
    options: IngressThreadOptions,
    #[napi(ts_arg_type = "Uint8Array")] counters: SharedBytes,
    wake: Function<'_, (), ()>,
) -> i32 {
    guarded(PANIC, || {
        let Some(waker) = waker(wake) else { return INGRESS_THREAD_OPTIONS };
        start_ingress_thread(env, options, counters, waker)
    })
}

/// Listens; port 0 uses any free one. Returns the socket as a file descriptor, which the caller
/// closes, or INGRESS_THREAD_LISTEN or PANIC.
#[napi]
pub fn socket_listen(host: String, port: u32) -> i32 {
    guarded(PANIC, || socket_of(&host, port).map_or(INGRESS_THREAD_LISTEN, into_descriptor))
}

/// Takes over a listening TCP socket that this process inherited: the descriptor is closed, and the
/// socket gets another one, which programs started from here do not inherit. Returns that, which
/// the caller closes, or INGRESS_THREAD_LISTEN or PANIC.
#[napi]
pub fn socket_inherit(descriptor: u32) -> i32 {
    guarded(PANIC, || inherited(descriptor).map_or(INGRESS_THREAD_LISTEN, into_descriptor))
}

/// These ingress threads get the connections of a listening socket round-robin. One address may
/// hold `per_address` connections, over all of them. Returns the port, or NO_INGRESS_THREAD,
/// INGRESS_THREAD_LISTEN or PANIC.
#[napi]
pub fn ingress_threads_listen(threads: &[u32], descriptor: u32, per_address: u32) -> i32 {
    guarded(PANIC, || listen_for(threads, descriptor, per_address))
}

/// Has these ingress threads present this certificate chain from now on, with `quic` to
/// `touchdown/1` clients, otherwise to HTTP clients, with which they then speak TLS; chain and key
/// are PEM. Call it before they listen, and again with a new certificate; with no thread it only
/// checks. Returns OK, NO_INGRESS_THREAD, INGRESS_THREAD_TLS (not a certificate and its key, or a
/// key of an unknown kind) or PANIC.
#[napi]
pub fn ingress_threads_tls(threads: &[u32], certificate: &[u8], key: &[u8], quic: bool) -> i32 {
    guarded(PANIC, || present(threads, certificate, key, quic))
}

/// Has these threads serve QUIC clients too, on one port of the first address of the host that can
/// be bound. With `predecessor_places` the port may be in use by the process that this one
/// replaces. Returns the port, or NO_INGRESS_THREAD, INGRESS_THREAD_LISTEN or PANIC.
#[napi]
pub fn ingress_threads_listen_quic(threads: &[u32], options: QuicListenOptions) -> i32 {
    guarded(PANIC, || listen_quic_for(threads, &options))
}

/// Of a process with so many threads that serve QUIC clients: returns the thread of the socket that
/// the kernel has at this place, once the process before it, whose sockets are those of the threads
/// in `before`, has closed them; 0 where there is none; or PANIC.
#[napi]
pub fn quic_thread_at(before: &[u32], threads: u32, place: u32) -> i32 {
    guarded(PANIC, || quic_thread_at_place(before, threads, place))
}

/// Passes receipts on to the QUIC clients of these threads that want them: the number of the
/// account as 8 bytes of a float, little-endian, and the 88 bytes of a verdict, for each. Returns
/// 1; 0 if a thread does not keep up, and nothing was passed on; or NO_INGRESS_THREAD or PANIC.
#[napi]
pub fn ingress_threads_receipts(threads: &[u32], batch: &[u8]) -> i32 {
    guarded(PANIC, || offer_receipts(threads, batch))
}

/// Has the thread refuse submissions and proxy other requests (1), accept no connections and finish
/// pending requests (2), end immediately (3), proxy health checks (4), accept no connections and
/// close each with its next response (5), distribute the datagrams of QUIC clients among the threads
/// again, because a successor has ended (6), or close each connection with its next response (7).
/// Returns OK, NO_INGRESS_THREAD, INGRESS_THREAD_OPTIONS or PANIC.
#[napi]
pub fn ingress_thread_command(thread: u32, command: u32) -> i32 {
    with_ingress_thread(thread, |thread| {
        let command = match command {
            1 => Command::Drain,
            2 => Command::Stop,
            3 => Command::Exit,
            4 => Command::AnnounceDrain,
            5 => Command::Retire,
            6 => Command::TakeBack,
            7 => Command::DisableKeepAlive,
            _ => return INGRESS_THREAD_OPTIONS,
        };
        thread.send(command);
        OK
    })
}

/// Returns the `ThreadState`: 1 running, 2 exited, 3 panicked, 4 idle; or NO_INGRESS_THREAD or
/// PANIC. Each change wakes.
#[napi]
pub fn ingress_thread_state(thread: u32) -> i32 {
    with_ingress_thread(thread, |thread| i32::from(thread.status().state()))
}

/// Ends an ingress thread if it runs, waits for that, and releases its memory. Returns OK,
/// NO_INGRESS_THREAD or PANIC.
#[napi]
pub fn ingress_thread_close(thread: u32) -> i32 {
    guarded(PANIC, || close_ingress_thread(thread))
}

/// Yields the processor to other threads that wait for it. Returns OK.
#[napi]
pub fn thread_yield() -> i32 {
    std::thread::yield_now();
    OK
}
