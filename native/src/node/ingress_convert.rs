//! How JavaScript's calls become those of fronts: what `convert` is for all the others.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use napi::Env;

use crate::http::event_loop;
use crate::http::listener::Listener;
use crate::http::mailbox::{Command, DoorHandle, Listening};
use crate::limits::FRONTS_MAX;
use crate::node::convert::{DECODERS, ENGINES, guarded};
use crate::node::handles::Handles;
use crate::node::options::{FrontMemory, FrontOptions};
use crate::node::shared_bytes::keep_no_more;
use crate::node::status_codes::{
    FRONT_FULL, FRONT_LISTEN, FRONT_OPTIONS, NO_FRONT, NO_PRIORITY, OK, PANIC,
};
use crate::quic::event_ring::Waker;
use crate::submit::key_cache::{Pass, network_of};
use crate::submit::path::News;
use crate::submit::rate_limit::Rate;
use crate::submit::thread::{Front, Options, Shared, StartError};
use crate::sync::clock::NS_PER_MS;

static FRONTS: Handles<Front> = Handles::new(FRONTS_MAX);

/// What `act` answers of the front of a handle; `NO_FRONT` or `PANIC` otherwise.
pub(crate) fn with_front(handle: u32, act: impl FnOnce(&Front) -> i32) -> i32 {
    guarded(PANIC, || FRONTS.find(handle).map_or(NO_FRONT, |front| act(&front)))
}

/// As `front_start` answers.
pub(crate) fn start_front(env: Env, given: FrontOptions, lent: FrontMemory, waker: Waker) -> i32 {
    let Some(options) = options_of(&given) else { return FRONT_OPTIONS };
    let shared = Shared {
        records: lent.records.memory(),
        figures: lent.figures.memory(),
        routes: lent.routes.memory(),
        seen: lent.seen.memory(),
        passes: lent.passes.memory(),
    };
    let started = FRONTS.insert(|_| false, || Front::start(options, &shared, waker).map(Arc::new));
    let handle = match started {
        None => return FRONT_FULL,
        Some(Err(StartError::Priority)) => return NO_PRIORITY,
        Some(Err(_)) => return FRONT_OPTIONS,
        Some(Ok(handle)) => handle,
    };
    for bytes in [lent.records, lent.figures, lent.routes, lent.seen, lent.passes] {
        bytes.keep(handle);
    }
    // The memory goes with the thread that has lent it, so the front has to end before.
    if env
        .add_env_cleanup_hook(handle, |handle| {
            let _ = guarded(PANIC, || close_front(handle));
        })
        .is_err()
    {
        close_front(handle);
        return FRONT_OPTIONS;
    }
    i32::try_from(handle).unwrap_or(FRONT_FULL)
}

/// None where something that it names is not there.
fn options_of(given: &FrontOptions) -> Option<Options> {
    let engine = ENGINES.find(given.engine)?;
    let decoder = DECODERS.find(given.decoder)?;
    let behind_port = u16::try_from(given.behind_port).ok().filter(|port| *port > 0)?;
    let door = event_loop::Options {
        backend: SocketAddr::from((Ipv4Addr::LOCALHOST, behind_port)),
        secret_name: given.relay_header.clone(),
        front: given.number,
        connections_max: given.connections_max as usize,
        relays_max: given.relays_max as usize,
        relays_per_address: given.relays_per_address as usize,
        read_timeout_ns: u64::from(given.read_timeout_ms) * NS_PER_MS,
    };
    Some(Options { door, engine: (given.engine, engine), decoder, is_first: given.realtime })
}

/// As `fronts_listen` answers.
pub(crate) fn listen_for(fronts: &[u32], host: &str, port: u32, per_address: u32) -> i32 {
    let found: Option<Vec<_>> = fronts.iter().map(|handle| FRONTS.find(*handle)).collect();
    let Some(found) = found else { return NO_FRONT };
    let Ok(port) = u16::try_from(port) else { return FRONT_LISTEN };
    let Some((first, others)) = found.split_first() else { return NO_FRONT };
    let others: Vec<_> = others.iter().map(|front| front.door().clone()).collect();
    let per_address = per_address as usize;
    let Some(listener) = listen(host, port, &others, per_address) else { return FRONT_LISTEN };
    let Ok(bound) = listener.local_addr() else { return FRONT_LISTEN };
    first.tell(Command::Listen(Box::new(listener)));
    i32::from(bound.port())
}

/// At the first address of the host that can be bound.
fn listen(
    host: &str,
    port: u16,
    others: &[DoorHandle<News>],
    per_address: usize,
) -> Option<Listening<News>> {
    let mut addresses = (host, port).to_socket_addrs().ok()?;
    addresses.find_map(|address| Listener::bind(address, others.to_vec(), per_address).ok())
}

/// As `front_tell` answers.
pub(crate) fn tell_front(front: &Front, command: Command<News>) -> i32 {
    front.tell(command);
    OK
}

/// As `front_close` answers.
pub(crate) fn close_front(handle: u32) -> i32 {
    let Some(front) = FRONTS.find(handle) else { return NO_FRONT };
    front.end();
    FRONTS.remove(handle);
    keep_no_more(handle);
    OK
}

/// A pass in the front's own terms: the numbers are those of `frontPass`.
pub(crate) fn pass_of(numbers: &[f64], ranges: &str) -> Option<Pass> {
    let &[place, rate, burst, is_shared, cell, key_cell, own_rate, own_burst, expires, is_narrow] =
        numbers.first_chunk()?;
    let networks = ranges.split(',').map(network_of).collect::<Option<Vec<_>>>();
    let own = Rate { rate_per_second: own_rate, burst: own_burst };
    Some(Pass {
        rate_per_second: rate,
        burst,
        is_shared: is_shared == 1.0,
        expires_unix_ms: (expires >= 0.0).then_some(expires),
        // Networks that cannot be read let nobody in, and neither do none at all.
        networks: if is_narrow == 0.0 { None } else { Some(networks.unwrap_or_default()) },
        own_limit: (own_rate >= 0.0).then_some(own),
        account_cell: count_of(cell)?,
        key_cell: if key_cell < 0.0 { None } else { Some(count_of(key_cell)?) },
        place: count_of(place)?,
    })
}

fn count_of(number: f64) -> Option<u32> {
    let is_count = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    is_count.then_some(number as u32)
}
