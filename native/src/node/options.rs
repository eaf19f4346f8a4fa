//! What engines and fronts are started with.

use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;

use crate::node::shared_bytes::{SharedBytes, Texts};

/// What an engine is started with; every field is present.
#[napi(object, object_to_js = false)]
pub struct EngineOptions {
    /// Local addresses to send from, "ip:port" each, port 0 for any.
    #[napi(ts_type = "Array<string>")]
    pub binds: Texts,
    /// The identity's 32-byte Ed25519 seed.
    pub seed: Uint8Array,
    /// Most copies that wait for one leader.
    pub queue_max: u32,
    /// Most copies of one leader that await its acknowledgement.
    pub in_flight_max: u32,
    /// Most outcomes that wait to be drained.
    pub outcomes_max: u32,
    /// A leader that grants no stream for so long after `peer_open` is given up.
    pub admission_timeout_ms: u32,
    /// Silence after which a connection is given up.
    pub idle_timeout_ms: u32,
    /// Pause after which a ping keeps an idle connection alive.
    pub keep_alive_ms: u32,
    /// Packets that a leader need not acknowledge at once; 0 leaves its own habit.
    pub ack_every: u32,
    /// The longest that a leader shall wait with an acknowledgement.
    pub ack_delay_ms: u32,
    /// How long the I/O thread looks for datagrams before it sleeps; 0: not at all.
    pub busy_poll_us: u32,
}

/// What a front is started with; every field is present.
#[napi(object, object_to_js = false)]
pub struct IngressThreadOptions {
    /// The engine's handle.
    pub engine: u32,
    /// The decoder's.
    pub decoder: u32,
    /// The front's own number, which it tells with each request that it relays.
    pub number: u32,
    /// Whether its thread goes before others.
    pub realtime: bool,
    /// Connections of clients open at once.
    pub connections_max: u32,
    /// And to the server behind.
    pub upstream_connections_max: u32,
    /// And of those for the clients of one address.
    pub upstream_connections_per_address: u32,
    /// How long a client may take for a request's head, and for its body.
    pub read_timeout_ms: u32,
    /// Where the server listens, on loopback, that the front relays to.
    pub upstream_port: u32,
    /// The name of the header line by which it says what it knows of such a request.
    pub forwarded_header: String,
}

/// What a front shares with the main thread: arrays of a `SharedArrayBuffer` each.
#[napi(object, object_to_js = false)]
pub struct IngressThreadMemory {
    /// As `front/records.ts` has it.
    #[napi(ts_type = "Uint8Array")]
    pub records: SharedBytes,
    /// As `front/figures.ts` has it.
    #[napi(ts_type = "Uint8Array")]
    pub figures: SharedBytes,
    /// As `send/shared-routes.ts` has it.
    #[napi(ts_type = "Uint8Array")]
    pub routes: SharedBytes,
    /// As `ingress/seen.ts` has it.
    #[napi(ts_type = "Uint8Array")]
    pub dedup: SharedBytes,
    /// As `ingress/limit-cells.ts` has it.
    #[napi(ts_type = "Uint8Array")]
    pub key_cache: SharedBytes,
}
