//! Datagrams for a new connection, from `fuzz/corpus/datagram` or a fuzzer: for each a byte of
//! flags, two of its size, and the datagram.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::{DatagramEvent, Endpoint, EndpointConfig};
use touchdown_native::quic::tls::{Transport, client_config};

/// Flag: writes the connection's own ids where a long header has them.
const NAMED: u8 = 1;
/// Flag: one second passes before the datagram.
const LATER: u8 = 2;
/// A connection that responds with more datagrams than this to a few is an amplifier.
const ANSWERS_MAX: usize = 64;

/// Passes all datagrams to a connection; returns the number of response datagrams.
pub fn feed(mut bytes: &[u8]) -> usize {
    let server: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8009));
    let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, true, None);
    let config = client_config(&[7; 32], &Transport::default()).expect("a certificate");
    let mut now = Instant::now();
    let connected = endpoint.connect(now, config, server, "127.0.0.1.sol");
    let (handle, mut connection) = connected.expect("a connection");
    let mut out = Vec::new();
    let mut answers = 0;
    assert!(connection.poll_transmit(now, 1, &mut out).is_some(), "no initial packet");
    let initial = std::mem::take(&mut out);
    let own = own_id(&initial).to_vec();
    for _ in 0..DATAGRAMS_MAX {
        let [flags, high, low, rest @ ..] = bytes else { break };
        let size = (usize::from(*high) << 8 | usize::from(*low)).min(rest.len());
        let (datagram, after) = rest.split_at(size);
        bytes = after;
        let mut datagram = datagram.to_vec();
        if flags & NAMED != 0 && datagram.len() > 6 {
            datagram.splice(5..6, [&[own.len() as u8], own.as_slice()].concat());
        }
        if flags & LATER != 0 {
            now += Duration::from_secs(1);
            connection.handle_timeout(now);
        }
        let datagram = BytesMut::from(datagram.as_slice());
        let event = endpoint.handle(now, server, None, None, datagram, &mut Vec::new());
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
            connection.handle_event(event);
        }
        while connection.poll().is_some() {}
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = endpoint.handle_event(handle, event) {
                connection.handle_event(event);
            }
        }
        while connection.poll_transmit(now, 1, &mut out).is_some() {
            out.clear();
            answers += 1;
            assert!(answers <= ANSWERS_MAX, "too many response datagrams");
        }
    }
    answers
}

/// The source id of a long header: the destination id of a server's packets.
fn own_id(initial: &[u8]) -> &[u8] {
    let after = initial.get(6 + usize::from(initial[5])..).unwrap_or_default();
    after.split_first().and_then(|(size, rest)| rest.get(..usize::from(*size))).unwrap_or_default()
}

const DATAGRAMS_MAX: usize = 32;
