//! Clients that begin a handshake and never finish it, from many addresses of loopback.
//!
//! Every other one is silent after its first datagram, as where the address is forged; the others
//! prove their address when the edge asks for it (Retry), and are silent after that.
//!
//! One ClientHello serves them all, so that the flood costs the machine, which it shares with the
//! edge, little beside what the edge does.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Version};
use rustls::{ClientConfig, RootCertStore, Side};
use touchdown_native::quic::tls::ALPN_TPU;
use touchdown_native::sync::clock::{monotonic_ns, NS_PER_S};

/// Addresses that the handshakes come from: 127.1.0.1 and so on.
const ADDRESSES: usize = 200;
/// Least size of a first datagram (RFC 9000 section 14.1).
const DATAGRAM_BYTES: usize = 1200;
const RECEIVED_BYTES_MAX: usize = 1500;
/// The connection id of every client.
const OWN_ID: [u8; 8] = *b"flooding";
/// The transport parameter with that id (RFC 9000 section 18.2).
const SOURCE_ID: u8 = 0x0f;
/// The long header of a Retry, and the size of its tag (RFC 9000 section 17.2.5).
const RETRY: u8 = 0xf0;
const RETRY_TAG_BYTES: usize = 16;
/// The long header of a first packet with a packet number of 4 bytes (section 17.2.2), and that of
/// the frame with a ClientHello (section 19.6).
const INITIAL: u8 = 0xc3;
const NUMBER_BYTES: usize = 4;
const CRYPTO: u8 = 0x06;

/// Sends the packets of `run` to an unread socket, so that a bench measures what this program alone
/// takes of the processors.
pub fn run_unread(rate: u64, seconds: u64) -> Result<(), Box<dyn Error>> {
    let unread = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    run(unread.local_addr()?, rate, seconds)
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
    let hello = client_hello()?;
    let (mut begun, mut proved) = (0u64, 0u64);
    let start_ns = monotonic_ns();
    let gap_ns = NS_PER_S / rate;
    while begun < rate * seconds {
        let due_ns = start_ns + begun * gap_ns;
        let now_ns = monotonic_ns();
        if due_ns > now_ns {
            std::thread::sleep(Duration::from_nanos(due_ns - now_ns));
        }
        let place = begun as usize % ADDRESSES;
        // Every thread of the edge gets some: the first byte names it.
        let to = (begun + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        // A full socket loses it.
        let _ = sockets[place].send_to(&first_packet(&to, &[], 0, &hello)?, address);
        begun += 1;
        if place % 2 == 1 {
            // What arrived since its last turn.
            proved += prove(&sockets[place], address, &hello)?;
        }
    }
    println!("{begun} {proved}");
    Ok(())
}

/// Answers the Retries that wait in this socket; returns how many.
fn prove(socket: &UdpSocket, address: SocketAddr, hello: &[u8]) -> Result<u64, Box<dyn Error>> {
    let mut proved = 0;
    let mut datagram = [0; RECEIVED_BYTES_MAX];
    while let Ok(size) = socket.recv(&mut datagram) {
        let Some((to, token)) = read_retry(&datagram[..size]) else { continue };
        let _ = socket.send_to(&first_packet(to, token, 1, hello)?, address);
        proved += 1;
    }
    Ok(proved)
}

/// The connection id to use from now on, and the token.
fn read_retry(packet: &[u8]) -> Option<(&[u8], &[u8])> {
    if packet.first()? & RETRY != RETRY {
        return None;
    }
    let after_own = packet.get(6 + usize::from(*packet.get(5)?)..)?;
    let (size, rest) = after_own.split_first()?;
    let (to, rest) = rest.split_at_checked(usize::from(*size))?;
    Some((to, rest.get(..rest.len().checked_sub(RETRY_TAG_BYTES)?)?))
}

/// A first packet, sealed with the keys that follow from `to` (RFC 9001 section 5).
fn first_packet(
    to: &[u8],
    token: &[u8],
    number: u8,
    hello: &[u8],
) -> Result<Vec<u8>, Box<dyn Error>> {
    let suite = TLS13_AES_128_GCM_SHA256.tls13().and_then(|suite| suite.quic_suite());
    let keys = suite.ok_or("no suite for QUIC")?.keys(to, Side::Client, Version::V1).local;
    let mut packet = vec![INITIAL, 0, 0, 0, 1, to.len() as u8];
    packet.extend(to);
    packet.push(OWN_ID.len() as u8);
    packet.extend(OWN_ID);
    packet.extend(number_of_two_bytes(token.len()));
    packet.extend(token);
    let tag = keys.packet.tag_len();
    let number_at = packet.len() + 2;
    packet.extend(number_of_two_bytes(DATAGRAM_BYTES - number_at));
    packet.extend([0, 0, 0, number]);
    let mut payload = vec![CRYPTO, 0];
    payload.extend(number_of_two_bytes(hello.len()));
    payload.extend(hello);
    // Padding.
    payload.resize(DATAGRAM_BYTES - packet.len() - tag, 0);
    let tag = keys.packet.encrypt_in_place(number.into(), &packet, &mut payload)?;
    packet.extend(payload);
    packet.extend(tag.as_ref());
    let (head, rest) = packet.split_at_mut(number_at + NUMBER_BYTES);
    let (first, head) = head.split_at_mut(1);
    let sample = &rest[..keys.header.sample_len()];
    keys.header.encrypt_in_place(sample, &mut first[0], &mut head[number_at - 1..])?;
    Ok(packet)
}

/// A variable-length integer below 16,384 (RFC 9000 section 16).
fn number_of_two_bytes(value: usize) -> [u8; 2] {
    (0x4000 | value as u16).to_be_bytes()
}

fn client_hello() -> Result<Vec<u8>, Box<dyn Error>> {
    let mut tls = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN_TPU.to_vec()];
    let mut parameters = vec![SOURCE_ID, OWN_ID.len() as u8];
    parameters.extend(OWN_ID);
    let name = ServerName::try_from("localhost")?;
    let mut client = ClientConnection::new(Arc::new(tls), Version::V1, name, parameters)?;
    let mut hello = Vec::new();
    // Its keys come with the server's answer.
    let _ = client.write_hs(&mut hello);
    Ok(hello)
}
