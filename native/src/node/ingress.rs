//! Exports of ingress threads, and of yielding the processor.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, OnceLock};

use napi::Env;
use napi::bindgen_prelude::Function;
use napi_derive::napi;
use ring::rand::{SecureRandom, SystemRandom};
use rustls::server::ProducesTickets;

use crate::http::event_loop;
use crate::http::listener::Listener;
use crate::http::mailbox::{Command, EventLoopHandle};
use crate::http::rpc_body::KeylessMethods;
use crate::http::tls_config::{server_config, ticket_keys};
use crate::node::convert::{DECODERS, ENGINES, KEY_TABLES, guarded, waker};
use crate::node::handles::Handles;
use crate::node::limits::INGRESS_THREADS_MAX;
use crate::node::listening_socket::{duplicate, inherited, into_descriptor, socket_of};
use crate::node::options::{IngressThreadOptions, KeylessResult, QuicListenOptions};
use crate::node::shared_bytes::{SharedBytes, release_shared};
use crate::node::status_codes::*;
use crate::node::submit::dedup_of;
use crate::quic_server::options as quic_options;
use crate::quic_server::server::QuicServer;
use crate::submit::thread::{IngressThread, Options, Shared, StartError};
use crate::sync::clock::NS_PER_MS;

static INGRESS_THREADS: Handles<IngressThread> = Handles::new(INGRESS_THREADS_MAX);

/// Keys of session tickets, of the whole process: clients resume a session on any of its threads,
/// and after a change of the certificate.
static TICKET_KEYS: OnceLock<Option<Arc<dyn ProducesTickets>>> = OnceLock::new();

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
        let (Some(options), Some(dedup)) = (options_of(&options), dedup_of(options.path)) else {
            return INGRESS_THREAD_OPTIONS;
        };
        let shared = Shared { counters: counters.memory(), dedup };
        let started = INGRESS_THREADS
            .insert(|_| false, || IngressThread::start(options, &shared, waker).map(Arc::new));
        let handle = match started {
            None => return INGRESS_THREAD_FULL,
            Some(Err(StartError::Priority)) => return NO_PRIORITY,
            Some(Err(_)) => return INGRESS_THREAD_OPTIONS,
            Some(Ok(handle)) => handle,
        };
        counters.retain(handle);
        // The memory is released with the Node thread that lent it, so the ingress thread must end
        // before.
        if env
            .add_env_cleanup_hook(handle, |handle| {
                let _ = guarded(PANIC, || close_thread(handle));
            })
            .is_err()
        {
            close_thread(handle);
            return INGRESS_THREAD_OPTIONS;
        }
        i32::try_from(handle).unwrap_or(INGRESS_THREAD_FULL)
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
    guarded(PANIC, || {
        let Some(found) = ingress_threads(threads) else { return NO_INGRESS_THREAD };
        let Some((first, others)) = found.split_first() else { return NO_INGRESS_THREAD };
        let others: Vec<_> = others.iter().map(|thread| thread.event_loop().clone()).collect();
        let Some(socket) = duplicate(descriptor) else { return INGRESS_THREAD_LISTEN };
        let listener = Listener::listening(socket, others, per_address as usize);
        let Ok(bound) = listener.local_addr() else { return INGRESS_THREAD_LISTEN };
        first.send(Command::Listen(Box::new(listener)));
        i32::from(bound.port())
    })
}

/// Has these ingress threads present this certificate chain from now on, with `quic` to
/// `touchdown/1` clients, otherwise to HTTP clients, with which they then speak TLS; chain and key
/// are PEM. Call it before they listen, and again with a new certificate; with no thread it only
/// checks. Returns OK, NO_INGRESS_THREAD, INGRESS_THREAD_TLS (not a certificate and its key, or a
/// key of an unknown kind) or PANIC.
#[napi]
pub fn ingress_threads_tls(threads: &[u32], certificate: &[u8], key: &[u8], quic: bool) -> i32 {
    guarded(PANIC, || {
        let Some(found) = ingress_threads(threads) else { return NO_INGRESS_THREAD };
        let tickets = TICKET_KEYS.get_or_init(ticket_keys).clone();
        let config = tickets.and_then(|tickets| server_config(certificate, key, tickets));
        let Some(config) = config else { return INGRESS_THREAD_TLS };
        let command = if quic { Command::QuicTls } else { Command::Tls };
        for thread in found {
            thread.send(command(config.clone()));
        }
        OK
    })
}

/// Has these threads serve QUIC clients too, on one port of the first address of the host that can
/// be bound. With `predecessor_places` the port may be in use by the process that this one
/// replaces. Returns the port, or NO_INGRESS_THREAD, INGRESS_THREAD_LISTEN or PANIC.
#[napi]
pub fn ingress_threads_listen_quic(threads: &[u32], options: QuicListenOptions) -> i32 {
    guarded(PANIC, || {
        let found = ingress_threads(threads).unwrap_or_default();
        if found.is_empty() {
            return NO_INGRESS_THREAD;
        }
        let servers = quic_servers_of(&options, found.len()).unwrap_or_default();
        let bound = servers.first().and_then(|server| server.local_addr().ok());
        let Some(bound) = bound else { return INGRESS_THREAD_LISTEN };
        for (thread, server) in found.iter().zip(servers) {
            thread.send(Command::ListenQuic(Box::new(server)));
        }
        i32::from(bound.port())
    })
}

/// Of a process with so many threads that serve QUIC clients: returns the thread of the socket that
/// the kernel has at this place, once the process before it, whose sockets are those of the threads
/// in `before`, has closed them; 0 where there is none; or PANIC.
#[napi]
pub fn quic_thread_at(before: &[u32], threads: u32, place: u32) -> i32 {
    guarded(PANIC, || {
        let places = quic_options::places_alone(&numbers(before), threads as usize);
        let thread = places.get(place as usize).copied().unwrap_or(0);
        i32::try_from(thread).unwrap_or(0)
    })
}

/// Passes receipts on to the QUIC clients of these threads that want them: the number of the
/// account as 8 bytes of a float, little-endian, and the 88 bytes of a verdict, for each. Returns
/// 1; 0 if a thread does not keep up, and nothing was passed on; or NO_INGRESS_THREAD or PANIC.
#[napi]
pub fn ingress_threads_receipts(threads: &[u32], batch: &[u8]) -> i32 {
    guarded(PANIC, || {
        let Some(found) = ingress_threads(threads) else { return NO_INGRESS_THREAD };
        let loops: Vec<_> = found.iter().map(|thread| thread.event_loop()).collect();
        i32::from(EventLoopHandle::offer_receipts(&loops, &batch.into()))
    })
}

/// Has the thread refuse submissions (1), accept no connections and finish pending requests (2), end
/// immediately (3), answer `getHealth` as unhealthy (4), accept no connections and
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
    guarded(PANIC, || close_thread(thread))
}

/// Yields the processor to other threads that wait for it. Returns OK.
#[napi]
pub fn thread_yield() -> i32 {
    std::thread::yield_now();
    OK
}

/// The result of `act` with the ingress thread of a handle; `NO_INGRESS_THREAD` or `PANIC`
/// otherwise.
fn with_ingress_thread(handle: u32, act: impl FnOnce(&IngressThread) -> i32) -> i32 {
    guarded(PANIC, || INGRESS_THREADS.find(handle).map_or(NO_INGRESS_THREAD, |thread| act(&thread)))
}

/// None if the engine, the decoder or the key table does not exist.
fn options_of(given: &IngressThreadOptions) -> Option<Options> {
    let engine = ENGINES.find(given.engine)?;
    let decoder = DECODERS.find(given.decoder)?;
    let keys = KEY_TABLES.find(given.keys)?;
    let upstream_port = u16::try_from(given.upstream_port).ok().filter(|port| *port > 0)?;
    let event_loop = event_loop::Options {
        upstream: SocketAddr::from((Ipv4Addr::LOCALHOST, upstream_port)),
        forwarded_header_name: given.forwarded_header.clone(),
        connections_max: given.connections_max as usize,
        upstream_connections_max: given.upstream_connections_max as usize,
        upstream_connections_per_address: given.upstream_connections_per_address as usize,
        read_timeout_ns: u64::from(given.read_timeout_ms) * NS_PER_MS,
        idle_timeout_ns: u64::from(given.idle_timeout_ms) * NS_PER_MS,
    };
    let results = given.keyless_results.iter();
    let results = results.map(|KeylessResult { method, json }| (method.clone(), json.clone()));
    let keyless_methods = Arc::new(KeylessMethods::new(results));
    let is_realtime = given.realtime;
    Some(Options { event_loop, engine, decoder, keys, keyless_methods, is_realtime })
}

fn numbers(given: &[u32]) -> Box<[usize]> {
    given.iter().map(|number| *number as usize).collect()
}

/// A listener on the first address of the host that can be bound, with a certificate of its own:
/// the parts of so many threads.
fn quic_servers_of(given: &QuicListenOptions, threads: usize) -> Option<Vec<QuicServer>> {
    let port = u16::try_from(given.port).ok()?;
    let mut seed = [0; 32];
    SystemRandom::new().fill(&mut seed).ok()?;
    (given.host.as_str(), port).to_socket_addrs().ok()?.find_map(|listen| {
        let options = quic_options::Options {
            listen,
            predecessor_places: numbers(&given.predecessor_places),
            process_number: given.process_number,
            seed,
            connections_max: given.connections_max as usize,
            connections_per_address: given.connections_per_address as usize,
            connections_per_account: given.connections_per_account as usize,
            stream_timeout_ns: u64::from(given.stream_timeout_ms) * NS_PER_MS,
            drain_to: given.drain_to.as_str().into(),
        };
        QuicServer::listen(&options, threads).ok()
    })
}

/// The ingress threads of these handles; None if one does not exist.
fn ingress_threads(handles: &[u32]) -> Option<Vec<Arc<IngressThread>>> {
    handles.iter().map(|handle| INGRESS_THREADS.find(*handle)).collect()
}

fn close_thread(handle: u32) -> i32 {
    let Some(thread) = INGRESS_THREADS.find(handle) else { return NO_INGRESS_THREAD };
    thread.end();
    INGRESS_THREADS.remove(handle);
    release_shared(handle);
    OK
}
