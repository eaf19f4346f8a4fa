//! Clients that begin a handshake and never finish it, from many addresses of loopback.
//!
//! Every other one is silent after its first datagram, as where the address is forged; the others
//! prove their address when the edge asks for it (Retry), and are silent after that.

use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::{Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig};
use touchdown_native::quic::tls::{client_config, Transport};
use touchdown_native::sync::clock::{monotonic_ns, NS_PER_S};

/// Addresses that the handshakes come from: 127.1.0.1 and so on.
const ADDRESSES: usize = 200;
/// Handshakes that still may prove their address; the oldest is forgotten.
const PENDING_MAX: usize = 4096;
const DATAGRAM_BYTES: usize = 1500;
/// The long header of a Retry (RFC 9000 section 17.2.5).
const RETRY: u8 = 0xf0;
const SEED: [u8; 32] = [6; 32];

struct Attempt {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
}

/// Begins `rate` handshakes a second for so long, and prints how many, and how many proved their
/// address.
pub fn run(address: SocketAddr, rate: u64, seconds: u64) -> Result<(), Box<dyn Error>> {
    let sockets = (0..ADDRESSES).map(|number| {
        let source = Ipv4Addr::new(127, 1, (number / 250) as u8, (number % 250 + 1) as u8);
        let socket = UdpSocket::bind((source, 0))?;
        socket.set_nonblocking(true)?;
        Ok::<_, std::io::Error>(socket)
    });
    let sockets: Vec<UdpSocket> = sockets.collect::<Result<_, _>>()?;
    let config = client_config(&SEED, &Transport::default())?;
    let (mut begun, mut proved) = (0u64, 0u64);
    let mut attempts: HashMap<Vec<u8>, Attempt> = HashMap::new();
    let mut order = VecDeque::new();
    let start_ns = monotonic_ns();
    let gap_ns = NS_PER_S / rate;
    let mut buffer = Vec::with_capacity(DATAGRAM_BYTES);
    while begun < rate * seconds {
        let due_ns = start_ns + begun * gap_ns;
        let now_ns = monotonic_ns();
        if due_ns > now_ns {
            std::thread::sleep(Duration::from_nanos(due_ns - now_ns));
        }
        let socket = &sockets[begun as usize % ADDRESSES];
        let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, false, None);
        let (handle, mut connection) =
            endpoint.connect(Instant::now(), config.clone(), address, "localhost")?;
        send(socket, address, &mut connection, &mut buffer);
        if begun % 2 == 1 {
            let own_id = source_id(&buffer);
            order.push_back(own_id.clone());
            attempts.insert(own_id, Attempt { endpoint, handle, connection });
            if order.len() > PENDING_MAX {
                order.pop_front().and_then(|oldest| attempts.remove(&oldest));
            }
        }
        begun += 1;
        // What arrived from any address since its last turn; the rest stays in the socket.
        proved += prove(socket, address, &mut attempts, &mut buffer);
    }
    println!("{begun} {proved}");
    Ok(())
}

/// Answers the Retries that wait in this socket; returns how many.
fn prove(
    socket: &UdpSocket,
    address: SocketAddr,
    attempts: &mut HashMap<Vec<u8>, Attempt>,
    buffer: &mut Vec<u8>,
) -> u64 {
    let mut proved = 0;
    let mut datagram = [0; DATAGRAM_BYTES];
    while let Ok(size) = socket.recv(&mut datagram) {
        let received = &datagram[..size];
        if size < 7 || received[0] & RETRY != RETRY {
            continue;
        }
        let own_id = received[6..(6 + usize::from(received[5])).min(size)].to_vec();
        let Some(mut attempt) = attempts.remove(&own_id) else { continue };
        let event = attempt.endpoint.handle(
            Instant::now(),
            address,
            None,
            None,
            received.into(),
            &mut Vec::new(),
        );
        if let Some(DatagramEvent::ConnectionEvent(handle, event)) = event {
            assert_eq!(handle, attempt.handle, "an endpoint has one connection");
            attempt.connection.handle_event(event);
            send(socket, address, &mut attempt.connection, buffer);
            proved += 1;
        }
    }
    proved
}

/// Sends the connection's next datagram, which stays in `buffer`. A full socket loses it.
fn send(socket: &UdpSocket, to: SocketAddr, connection: &mut Connection, buffer: &mut Vec<u8>) {
    buffer.clear();
    if connection.poll_transmit(Instant::now(), 1, buffer).is_some() {
        let _ = socket.send_to(buffer, to);
    }
}

/// The source connection id of a packet with a long header (RFC 9000 section 17.2).
fn source_id(packet: &[u8]) -> Vec<u8> {
    let at = 6 + usize::from(packet[5]);
    packet[at + 1..at + 1 + usize::from(packet[at])].to_vec()
}
