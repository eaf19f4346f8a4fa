//! TLS for ureq's connections. ureq's own accepts the authorities of browsers or a list, not both.
//! The handshake counts against the request's deadline.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use ureq::Error;
use ureq::unversioned::transport::time::Instant;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport,
    TransportAdapter,
};

use crate::rpc::root_store::node_config;

/// Wraps connections to https: addresses, and leaves others unchanged.
#[derive(Debug, Default)]
pub struct TlsConnector {
    /// Shared by all connections, so that a later one resumes the session of an earlier one.
    config: OnceLock<Option<Arc<ClientConfig>>>,
}

impl<In: Transport> Connector<In> for TlsConnector {
    type Out = Either<In, TlsTransport>;

    fn connect(
        &self,
        details: &ConnectionDetails,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        let Some(plain) = chained else { return Ok(None) };
        if !details.needs_tls() {
            return Ok(Some(Either::A(plain)));
        }
        let config = self.config.get_or_init(node_config).clone();
        let config = config.ok_or(Error::Tls("no TLS configuration is available"))?;
        let host = details.uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| Error::Tls("the host is not a valid TLS server name"))?;
        let mut session = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let boxed: Box<dyn Transport> = Box::new(plain);
        let mut stream_ = TransportAdapter::new(boxed, details.current_time.clone());
        stream_.set_timeout(time_left(details));
        session.complete_io(&mut stream_)?;
        let (into, from) =
            (details.config.input_buffer_size(), details.config.output_buffer_size());
        let buffers = LazyBuffers::new(into, from);
        Ok(Some(Either::B(TlsTransport { buffers, stream: StreamOwned::new(session, stream_) })))
    }
}

/// The time left, less what passed since the connection was started.
fn time_left(details: &ConnectionDetails) -> NextTimeout {
    let mut timeout = details.timeout;
    if let Instant::Exact(started) = details.now {
        timeout.after = timeout.after.saturating_sub(started.elapsed()).into();
    }
    timeout
}

/// A connection over TLS.
pub struct TlsTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.sock.set_timeout(timeout);
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        self.stream.write_all(output)?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.sock.set_timeout(timeout);
        let count = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.sock.get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

impl fmt::Debug for TlsTransport {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("TlsTransport").finish_non_exhaustive()
    }
}
