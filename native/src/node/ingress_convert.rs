//! Converts JavaScript calls of ingress threads, as `convert` does for all others.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, OnceLock};

use napi::Env;
use ring::rand::{SecureRandom, SystemRandom};
use rustls::server::ProducesTickets;

use crate::http::event_loop;
use crate::http::listener::Listener;
use crate::http::mailbox::{Command, EventLoopHandle};
use crate::http::tls_config::{server_config, ticket_keys};
use crate::node::convert::{DECODERS, ENGINES, KEY_TABLES, guarded};
use crate::node::handles::Handles;
use crate::node::limits::INGRESS_THREADS_MAX;
use crate::node::listening_socket::duplicate;
use crate::node::options::{IngressThreadOptions, QuicListenOptions};
use crate::node::shared_bytes::{SharedBytes, release_shared};
use crate::node::status_codes::{
    INGRESS_THREAD_FULL, INGRESS_THREAD_LISTEN, INGRESS_THREAD_OPTIONS, INGRESS_THREAD_TLS,
    NO_INGRESS_THREAD, NO_PRIORITY, OK, PANIC,
};
use crate::node::submit::dedup_of;
use crate::quic::event_ring::Waker;
use crate::quic_server::options;
use crate::quic_server::server::QuicServer;
use crate::submit::thread::{IngressThread, Options, Shared, StartError};
use crate::sync::clock::NS_PER_MS;

static INGRESS_THREADS: Handles<IngressThread> = Handles::new(INGRESS_THREADS_MAX);

/// The result of `act` with the ingress thread of a handle; `NO_INGRESS_THREAD` or `PANIC`
/// otherwise.
pub(crate) fn with_ingress_thread(handle: u32, act: impl FnOnce(&IngressThread) -> i32) -> i32 {
    guarded(PANIC, || INGRESS_THREADS.find(handle).map_or(NO_INGRESS_THREAD, |thread| act(&thread)))
}

/// Returns what `ingress_thread_start` returns.
pub(crate) fn start_ingress_thread(
    env: Env,
    given: IngressThreadOptions,
    counters: SharedBytes,
    waker: Waker,
) -> i32 {
    let (Some(options), Some(dedup)) = (options_of(&given), dedup_of(given.path)) else {
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
            let _ = guarded(PANIC, || close_ingress_thread(handle));
        })
        .is_err()
    {
        close_ingress_thread(handle);
        return INGRESS_THREAD_OPTIONS;
    }
    i32::try_from(handle).unwrap_or(INGRESS_THREAD_FULL)
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
        ingress_thread: given.number,
        connections_max: given.connections_max as usize,
        upstream_connections_max: given.upstream_connections_max as usize,
        upstream_connections_per_address: given.upstream_connections_per_address as usize,
        read_timeout_ns: u64::from(given.read_timeout_ms) * NS_PER_MS,
        idle_timeout_ns: u64::from(given.idle_timeout_ms) * NS_PER_MS,
    };
    Some(Options { event_loop, engine, decoder, keys, is_realtime: given.realtime })
}

/// Returns what `ingress_threads_listen` returns.
pub(crate) fn listen_for(threads: &[u32], descriptor: u32, per_address: u32) -> i32 {
    let Some(found) = ingress_threads(threads) else { return NO_INGRESS_THREAD };
    let Some((first, others)) = found.split_first() else { return NO_INGRESS_THREAD };
    let others: Vec<_> = others.iter().map(|thread| thread.event_loop().clone()).collect();
    let Some(socket) = duplicate(descriptor) else { return INGRESS_THREAD_LISTEN };
    let listener = Listener::listening(socket, others, per_address as usize);
    let Ok(bound) = listener.local_addr() else { return INGRESS_THREAD_LISTEN };
    first.send(Command::Listen(Box::new(listener)));
    i32::from(bound.port())
}

/// Keys of session tickets, of the whole process: clients resume a session on any of its threads,
/// and after a change of the certificate.
static TICKET_KEYS: OnceLock<Option<Arc<dyn ProducesTickets>>> = OnceLock::new();

/// Returns what `ingress_threads_tls` returns.
pub(crate) fn present(threads: &[u32], certificate: &[u8], key: &[u8], quic: bool) -> i32 {
    let Some(found) = ingress_threads(threads) else { return NO_INGRESS_THREAD };
    let tickets = TICKET_KEYS.get_or_init(ticket_keys).clone();
    let config = tickets.and_then(|tickets| server_config(certificate, key, tickets));
    let Some(config) = config else { return INGRESS_THREAD_TLS };
    let command = if quic { Command::QuicTls } else { Command::Tls };
    for thread in found {
        thread.send(command(config.clone()));
    }
    OK
}

/// Returns what `ingress_threads_listen_quic` returns.
pub(crate) fn listen_quic_for(threads: &[u32], given: &QuicListenOptions) -> i32 {
    let found = ingress_threads(threads).unwrap_or_default();
    if found.is_empty() {
        return NO_INGRESS_THREAD;
    }
    let servers = quic_servers_of(given, found.len()).unwrap_or_default();
    let bound = servers.first().and_then(|server| server.local_addr().ok());
    let Some(bound) = bound else { return INGRESS_THREAD_LISTEN };
    for (thread, server) in found.iter().zip(servers) {
        thread.send(Command::ListenQuic(Box::new(server)));
    }
    i32::from(bound.port())
}

/// Returns what `quic_thread_at` returns.
pub(crate) fn quic_thread_at_place(before: &[u32], threads: u32, place: u32) -> i32 {
    let places = options::places_alone(&numbers(before), threads as usize);
    let thread = places.get(place as usize).copied().unwrap_or(0);
    i32::try_from(thread).unwrap_or(0)
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
        let options = options::Options {
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

/// Returns what `ingress_threads_receipts` returns.
pub(crate) fn offer_receipts(threads: &[u32], batch: &[u8]) -> i32 {
    let Some(found) = ingress_threads(threads) else { return NO_INGRESS_THREAD };
    let loops: Vec<_> = found.iter().map(|thread| thread.event_loop()).collect();
    i32::from(EventLoopHandle::offer_receipts(&loops, &batch.into()))
}

/// The ingress threads of these handles; None if one does not exist.
fn ingress_threads(handles: &[u32]) -> Option<Vec<Arc<IngressThread>>> {
    handles.iter().map(|handle| INGRESS_THREADS.find(*handle)).collect()
}

/// Returns what `ingress_thread_close` returns.
pub(crate) fn close_ingress_thread(handle: u32) -> i32 {
    let Some(thread) = INGRESS_THREADS.find(handle) else { return NO_INGRESS_THREAD };
    thread.end();
    INGRESS_THREADS.remove(handle);
    release_shared(handle);
    OK
}
