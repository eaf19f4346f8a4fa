//! One HTTP request: a POST of JSON to a node, and its complete response.
//!
//! ureq implements HTTP and keeps connections alive. This module handles what a node may do to an
//! idle connection: if one is closed at the moment of its use, the request is sent once more on a
//! new one; and when one times out silently, the other connections that were idle are dropped.
//! Error messages name no address, because an address may contain a key.

use std::io::{self, ErrorKind, Read};
use std::mem;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use ureq::http::Uri;
use ureq::unversioned::transport::{Connector, TcpConnector};
use ureq::{Agent, Error};

use crate::rpc::dns_cache::DnsCache;
use crate::rpc::limits::{CONNECTIONS_TO_NODE_MAX, HTTP_ATTEMPTS_MAX, HTTP_BUFFER_BYTES};
use crate::rpc::tls::TlsConnector;

/// A node's HTTP address, and the connections to it.
pub struct HttpClient {
    uri: Uri,
    /// Value of the `authorization` header; empty for none.
    authorization: String,
    bytes_max: usize,
    dns_cache: DnsCache,
    /// None after `shut_down`.
    agent: RwLock<Option<Agent>>,
}

/// A complete response, whatever its status.
#[derive(Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// The HTTP status.
    pub status: u16,
    /// The node's `Retry-After` in seconds; 0 if it sent none.
    pub retry_after_s: u32,
    /// Decompressed.
    pub body: Vec<u8>,
}

/// Why there is no response.
#[derive(Debug, PartialEq, Eq)]
pub enum HttpError {
    /// The deadline passed.
    TimedOut,
    /// The response exceeds the limit.
    TooLarge,
    /// Any other error, as a message.
    Failed(String),
}

impl HttpClient {
    /// Opens no connection yet. None if `url` is not an http: or https: address. A response above
    /// `bytes_max`, decompressed, is an error.
    #[must_use]
    pub fn new(url: &str, authorization: String, bytes_max: usize) -> Option<Self> {
        let uri = url.parse::<Uri>().ok()?;
        let is_known = matches!(uri.scheme_str(), Some("http" | "https"));
        let named = uri.host().is_some_and(|host| !host.is_empty());
        let dns_cache = DnsCache::new();
        let agent = RwLock::new(Some(new_agent(&dns_cache)));
        (is_known && named).then_some(Self { uri, authorization, bytes_max, dns_cache, agent })
    }

    /// Sends a request that is safe to repeat.
    pub fn post(&self, body: &[u8], until: Instant) -> Result<HttpResponse, HttpError> {
        let mut attempts = HTTP_ATTEMPTS_MAX;
        loop {
            attempts -= 1;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(HttpError::TimedOut);
            }
            match self.once(body, left) {
                Err(Error::Timeout(_)) => {
                    self.leave_idle();
                    return Err(HttpError::TimedOut);
                }
                // The node may close an idle connection at the moment of its reuse. Which
                // connection it was is unknown, so the next attempt uses a new one.
                Err(Error::Io(error)) if attempts > 0 && is_reset(&error) => self.leave_idle(),
                Err(error) => {
                    self.dns_cache.invalidate();
                    return Err(http_error(error));
                }
                Ok(response) => return Ok(response),
            }
        }
    }

    /// Closes connections, and sends no more requests. Pending requests fail, except one on a
    /// dropped idle connection: that one ends at its deadline.
    pub fn shut_down(&self) {
        let agent = self.agent.write().take();
        if let Some(agent) = agent {
            agent.shutdown();
        }
    }

    fn once(&self, body: &[u8], left: Duration) -> Result<HttpResponse, Error> {
        let agent = self.agent.read().clone();
        let agent = agent.ok_or_else(|| Error::Io(ErrorKind::NotConnected.into()))?;
        let mut request = agent.post(&self.uri).content_type("application/json");
        if !self.authorization.is_empty() {
            request = request.header("authorization", &self.authorization);
        }
        let request = request.config().timeout_global(Some(left)).build();
        let mut response = request.send(body)?;
        let status = response.status().as_u16();
        let retry_after =
            response.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let retry_after_s = retry_after.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        let mut body = Vec::new();
        // One byte more than allowed, to distinguish a response that is too large from one that
        // just fits.
        let limit_bytes = u64::try_from(self.bytes_max).unwrap_or(u64::MAX).saturating_add(1);
        let reader = response.body_mut().with_config().limit(u64::MAX).reader();
        reader.take(limit_bytes).read_to_end(&mut body).map_err(unwrapped)?;
        if body.len() > self.bytes_max {
            return Err(Error::BodyExceedsLimit(limit_bytes));
        }
        Ok(HttpResponse { status, retry_after_s, body })
    }

    /// Drops the idle connections. What silently killed one connection, such as a gateway that lost
    /// its state, has most likely killed those that were idle meanwhile; each would cost another
    /// deadline.
    pub fn leave_idle(&self) {
        self.dns_cache.invalidate();
        let new = new_agent(&self.dns_cache);
        // Pending requests keep the agent that they started with.
        let left = self.agent.write().as_mut().map(|agent| mem::replace(agent, new));
        drop(left);
    }
}

/// Unwraps ureq's error from the error of its reader.
fn unwrapped(error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(inner) => inner,
        Err(error) => Error::Io(error),
    }
}

fn new_agent(dns_cache: &DnsCache) -> Agent {
    let config = Agent::config_builder()
        .proxy(None)
        .http_status_as_error(false)
        // The operator configures the node's final address.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent("touchdown")
        .accept("")
        .input_buffer_size(HTTP_BUFFER_BYTES)
        .output_buffer_size(HTTP_BUFFER_BYTES)
        .max_idle_connections(CONNECTIONS_TO_NODE_MAX)
        .max_idle_connections_per_host(CONNECTIONS_TO_NODE_MAX)
        .build();
    let connector = ().chain(TcpConnector::default()).chain(TlsConnector::default());
    Agent::with_parts(config, connector, dns_cache.clone())
}

fn is_reset(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), ConnectionReset | ConnectionAborted | BrokenPipe | UnexpectedEof)
}

fn http_error(error: Error) -> HttpError {
    match error {
        Error::Timeout(_) => HttpError::TimedOut,
        Error::BodyExceedsLimit(_) => HttpError::TooLarge,
        Error::BadUri(_) => HttpError::Failed("the URL is not valid".to_owned()),
        Error::HostNotFound => HttpError::Failed("the host name does not resolve".to_owned()),
        Error::Io(error) => HttpError::Failed(error.to_string()),
        other => HttpError::Failed(other.to_string()),
    }
}
