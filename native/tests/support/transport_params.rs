//! The server side of a handshake with transport parameters that quinn would not announce.

use std::sync::Arc;

use quinn::crypto::rustls::QuicServerConfig;
use quinn::crypto::{Keys, ServerConfig, Session, UnsupportedVersion};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side};

/// Values to announce, by the parameter's id of RFC 9000 section 18.2.
pub type Params = &'static [(u8, u64)];

pub struct WithParams {
    pub inner: Arc<QuicServerConfig>,
    pub params: Params,
}

impl ServerConfig for WithParams {
    fn initial_keys(&self, version: u32, id: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.inner.initial_keys(version, id)
    }

    fn retry_tag(&self, version: u32, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, id, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        params: &TransportParameters,
    ) -> Box<dyn Session> {
        let mut written = Vec::new();
        params.write(&mut written);
        let mut edited = Vec::new();
        let mut rest = written.as_slice();
        while let [id, size, ..] = rest {
            // Ids above 63 take more than one byte and are not used here.
            let (id_bytes, size) = match id >> 6 {
                0 => (1, usize::from(*size)),
                class => (1 << class, usize::from(rest[1 << class])),
            };
            let whole = id_bytes + 1 + size;
            if id_bytes > 1 || !self.params.iter().any(|(other, _)| other == id) {
                edited.extend(&rest[..whole]);
            }
            rest = &rest[whole..];
        }
        for (id, value) in self.params {
            // The shortest form, as quinn requires: RFC 9000 section 16.
            let class = [6, 14, 30].iter().filter(|bits| value >> *bits > 0).count();
            let size = 1 << class;
            let whole = (value | (class as u64) << (size * 8 - 2)).to_be_bytes();
            edited.extend([*id, size as u8]);
            edited.extend(&whole[8 - size..]);
        }
        let read = TransportParameters::read(Side::Client, &mut edited.as_slice());
        let other = read.unwrap_or_else(|error| panic!("{:?}: {error}", self.params));
        self.inner.clone().start_session(version, &other)
    }
}
