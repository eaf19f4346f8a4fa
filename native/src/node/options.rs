//! Options of engines, ingress threads and paths.

use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;

use crate::node::shared_bytes::Texts;

/// Options of an engine; every field is present.
#[napi(object, object_to_js = false)]
pub struct EngineOptions {
    /// Local addresses to send from, "ip:port" each, port 0 for any.
    #[napi(ts_type = "Array<string>")]
    pub binds: Texts,
    /// The identity's 32-byte Ed25519 seed.
    pub seed: Uint8Array,
    /// Most queued deliveries of one leader.
    pub queue_max: u32,
    /// Most deliveries of one leader that await acknowledgement.
    pub in_flight_max: u32,
    /// A leader that grants no stream within this time after `peer_open` is abandoned.
    pub admission_timeout_ms: u32,
    /// Silence after which a connection is closed.
    pub idle_timeout_ms: u32,
    /// Pause after which a ping keeps an idle connection alive.
    pub keep_alive_ms: u32,
    /// How long the I/O thread polls for datagrams before it sleeps; 0: not at all.
    pub busy_poll_us: u32,
}

/// A method of JSON-RPC that needs no key, and its result.
#[napi(object, object_to_js = false)]
pub struct KeylessResult {
    /// Its name.
    pub method: String,
    /// JSON text.
    pub json: String,
}

/// Options of an ingress thread; every field is present.
#[napi(object, object_to_js = false)]
pub struct IngressThreadOptions {
    /// The engine's handle.
    pub engine: u32,
    /// The decoder's.
    pub decoder: u32,
    /// The key table's.
    pub keys: u32,
    /// That of the path with the dedup cache.
    pub path: u32,
    /// The methods besides `getHealth` that need no key.
    pub keyless_results: Vec<KeylessResult>,
    /// Whether the thread gets a real-time priority.
    pub realtime: bool,
    /// Most open client connections.
    pub connections_max: u32,
    /// Most connections to the upstream server.
    pub upstream_connections_max: u32,
    /// Most of those for clients of one address.
    pub upstream_connections_per_address: u32,
    /// How long a client may take for a request's head, and for its body.
    pub read_timeout_ms: u32,
    /// How long a connection may be idle.
    pub idle_timeout_ms: u32,
    /// Loopback port of the upstream server.
    pub upstream_port: u32,
    /// Name of the header that carries what is known of a proxied request.
    pub forwarded_header: String,
}

/// Where and how ingress threads serve QUIC clients; every field is present.
#[napi(object, object_to_js = false)]
pub struct QuicListenOptions {
    /// Host name or address.
    pub host: String,
    /// 0: any free port.
    pub port: u32,
    /// The thread of each socket of the process that this one replaces, which may still listen
    /// there, in the order in which the kernel has them; empty: it does not.
    pub predecessor_places: Vec<u32>,
    /// How many processes it succeeds, one after the other.
    pub process_number: u32,
    /// Most connections, handshakes in progress included.
    pub connections_max: u32,
    /// Most of those of one address.
    pub connections_per_address: u32,
    /// Most connections of one account.
    pub connections_per_account: u32,
    /// How long a stream may take from its first byte to its last.
    pub stream_timeout_ms: u32,
    /// Where clients are sent when this edge drains; empty: nowhere.
    pub drain_to: String,
}
