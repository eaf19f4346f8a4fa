//! Fixed limits of the clients of nodes.

use std::time::Duration;

/// Most pending requests to one node.
pub const RPC_REQUESTS_MAX: usize = 64;
/// Most connections to one node, and threads that wait for its responses.
pub const CONNECTIONS_TO_NODE_MAX: usize = 16;
/// Stack of such a thread: a TLS handshake needs less than half of it.
pub const RPC_THREAD_STACK_BYTES: usize = 512 * 1024;
/// Attempts of a request whose connection closes before the response.
pub const HTTP_ATTEMPTS_MAX: u32 = 2;
/// Most slot subscribers, including closed ones whose thread still runs.
pub const SLOT_SUBSCRIBERS_MAX: usize = 64;
/// Most unread notifications of a slot subscriber; beyond it slot notifications are dropped.
pub const SLOT_NOTIFICATIONS_MAX: usize = 256;
/// Largest WebSocket message; a larger one closes the connection. `WEBSOCKET_MESSAGE_BYTES_MAX` of
/// `src/cluster/limits.ts`.
pub const WEBSOCKET_MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Buffer for each direction of a WebSocket connection, and largest handshake response.
pub const WEBSOCKET_BUFFER_BYTES: usize = 16 * 1024;
/// How long a resolved name is cached.
pub const DNS_CACHE_TTL: Duration = Duration::from_secs(30);
/// Longest lookup while older addresses are known.
pub const DNS_REFRESH_TIMEOUT: Duration = Duration::from_millis(500);
/// Delay before the next lookup after a failed one.
pub const DNS_RETRY_DELAY: Duration = Duration::from_secs(5);
/// Buffer for each direction of a connection to a node.
pub const HTTP_BUFFER_BYTES: usize = 32 * 1024;
