//! `touchdown/1` on loopback, with a client made of quinn that reads and writes bytes as
//! `docs/quic.md` describes them.

use quinn::{Connection, Endpoint, RecvStream, SendStream, VarInt};

use super::*;
use crate::quic_server::tls::ALPN_TOUCHDOWN;
use crate::quic_server::verdict::{VERDICT_BYTES, Verdict};

pub(super) const API_KEY: &[u8] = b"example-key-of-this-page";
/// A transaction as the handler takes it: a count, and a signature of these bytes.
pub(super) fn transaction(byte: u8) -> Vec<u8> {
    let mut bytes = vec![byte; 200];
    bytes[0] = 1;
    bytes
}

pub(super) fn listener() -> Listener {
    let listener = Listener::new(|_| {});
    listener.with(|state| {
        state.burst = 100;
        state.accounts.insert(token_key(API_KEY), ACCOUNT);
    });
    listener
}

impl Listener {
    pub(super) async fn touchdown(&self, seed: Option<&[u8; 32]>) -> (Endpoint, Connection) {
        self.connect(client_of(ALPN_TOUCHDOWN, seed)).await.unwrap()
    }
}

pub(super) fn hello(wants: u8, token: &[u8]) -> Vec<u8> {
    let size = (2 + token.len()) as u8;
    [&[0, 1, 0, size, 0, 1, wants], token].concat()
}

/// Opens a stream, sends and finishes it.
pub(super) async fn opened(connection: &Connection, bytes: &[u8]) -> RecvStream {
    let (mut out, incoming) = connection.open_bi().await.unwrap();
    out.write_all(bytes).await.unwrap();
    out.finish().unwrap();
    incoming
}

pub(super) async fn verdict_of(mut incoming: RecvStream) -> Verdict {
    let bytes = tokio::time::timeout(GUARD, incoming.read_to_end(100)).await.unwrap().unwrap();
    Verdict::read(&bytes.try_into().unwrap()).unwrap()
}

pub(super) async fn submit(connection: &Connection, bytes: &[u8]) -> Verdict {
    verdict_of(opened(connection, bytes).await).await
}

/// Type and content of the next frame.
pub(super) async fn frame_of(incoming: &mut RecvStream) -> (u8, Vec<u8>) {
    let read = async {
        let mut head = [0; 4];
        incoming.read_exact(&mut head).await.unwrap();
        let mut content = vec![0; usize::from(u16::from_le_bytes([head[2], head[3]]))];
        incoming.read_exact(&mut content).await.unwrap();
        (head[0], content)
    };
    tokio::time::timeout(GUARD, read).await.unwrap()
}

/// Says hello, and reads the limits and the tips.
pub(super) async fn greeted(connection: &Connection, hello: &[u8]) -> (SendStream, RecvStream) {
    let (mut out, mut incoming) = connection.open_bi().await.unwrap();
    out.write_all(hello).await.unwrap();
    assert_eq!(frame_of(&mut incoming).await.0, 0x81);
    assert_eq!(frame_of(&mut incoming).await.0, 0x82);
    (out, incoming)
}

/// A receipt as the main thread writes it.
pub(super) fn receipt(account: u64, state: u8, bytes: &[u8]) -> Vec<u8> {
    let signature = bytes[1..65].try_into().unwrap();
    let verdict = Verdict {
        state,
        code: 0,
        microseconds: 5,
        credit: 0,
        bits: 1,
        slot: 358_000_123,
        signature,
    };
    [&(account as f64).to_le_bytes()[..], &verdict.bytes()].concat()
}

#[tokio::test]
async fn each_transaction_has_a_verdict() {
    let listener = listener();
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    let bytes = transaction(7);
    let since = Instant::now();
    let verdict = submit(&connection, &bytes).await;
    assert_eq!((verdict.state, verdict.code, verdict.credit), (1, 0, 64));
    assert_eq!((verdict.signature, verdict.slot, verdict.bits), ([7; 64], 0, 0));
    assert!(u128::from(verdict.microseconds) <= since.elapsed().as_micros());
    let invalid = [INVALID, &[9; 100]].concat();
    let verdict = submit(&connection, &invalid).await;
    assert_eq!((verdict.state, verdict.code), (0, INVALID_CODE as u16));
    // An empty one is one too.
    assert_eq!(submit(&connection, &[]).await.signature, [0; 64]);
    // Unidirectional streams have none.
    send(&connection, &transaction(8)).await;
    listener.until(|state| state.submitted.len() == 4).await;
    assert_eq!(listener.with(|state| state.refused.clone()), []);
}

#[tokio::test]
async fn thousands_of_transactions_of_one_connection_have_one_verdict_each() {
    let listener = listener();
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    let mut pending = Vec::new();
    for number in 0..5000_u32 {
        let mut bytes = transaction(0);
        bytes[1..5].copy_from_slice(&number.to_le_bytes());
        pending.push((number, opened(&connection, &bytes).await));
    }
    for (number, incoming) in pending {
        assert_eq!(verdict_of(incoming).await.signature[..4], number.to_le_bytes());
    }
    assert_eq!(listener.with(|state| state.submitted.len()), 5000);
}

#[tokio::test]
async fn verdict_that_the_window_of_the_connection_cuts_is_completed() {
    let listener = listener();
    let mut config = quinn::TransportConfig::default();
    // Room for one verdict and a part of the next one.
    config.receive_window(VarInt::from_u32(VERDICT_BYTES as u32 + 12));
    let mut client = client_of(ALPN_TOUCHDOWN, Some(&SEED));
    client.transport_config(Arc::new(config));
    let (_endpoint, connection) = listener.connect(client).await.unwrap();
    let one = opened(&connection, &transaction(7)).await;
    let other = opened(&connection, &transaction(8)).await;
    listener.until(|state| state.submitted.len() == 2).await;
    assert_eq!(verdict_of(one).await.signature, [7; 64]);
    assert_eq!(verdict_of(other).await.signature, [8; 64]);
}

#[tokio::test]
async fn api_key_on_the_control_stream_opens_the_connection() {
    let listener = listener();
    // An unregistered certificate does no harm.
    for seed in [None, Some(&[9; 32])] {
        let (_endpoint, connection) = listener.touchdown(seed).await;
        let (mut out, mut incoming) = connection.open_bi().await.unwrap();
        let more = tokio::time::timeout(Duration::from_millis(50), connection.open_bi()).await;
        assert!(more.is_err(), "a second stream of a client that is not known");
        // In pieces.
        let hello = hello(0, API_KEY);
        out.write_all(&hello[..9]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        out.write_all(&hello[9..]).await.unwrap();
        let limits = [
            &50f64.to_le_bytes()[..],
            &100u32.to_le_bytes(),
            &64u32.to_le_bytes(),
            &64u32.to_le_bytes(),
            &4096u32.to_le_bytes(),
        ];
        assert_eq!(frame_of(&mut incoming).await, (0x81, limits.concat()));
        let tips = [&1_000_000u64.to_le_bytes()[..], &[7; 32]].concat();
        assert_eq!(frame_of(&mut incoming).await, (0x82, tips));
        assert_eq!(submit(&connection, &transaction(3)).await.state, 1);
        listener.with(|state| {
            let (client, _) = state.submitted.pop().unwrap();
            assert_eq!(client.key, token_key(API_KEY));
        });
    }
}

#[tokio::test]
async fn new_limits_are_told() {
    let listener = listener();
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    let (_out, mut incoming) = greeted(&connection, &hello(0, b"")).await;
    listener.with(|state| state.burst = 7);
    let (kind, content) = frame_of(&mut incoming).await;
    assert_eq!((kind, &content[8..12]), (0x81, &7u32.to_le_bytes()[..]));
}

#[tokio::test]
async fn client_that_does_not_say_who_it_is_is_closed() {
    let listener = listener();
    let unauthorized = [code(QuicRefusal::Unauthorized), code(QuicRefusal::NoHello)];
    // An unknown key, what can be none, nothing, and a transaction.
    let tokens = [&b"another-key-of-16"[..], b"key", b"none can be \xff", b""];
    for bytes in tokens.iter().map(|token| hello(0, token)).chain([transaction(1)]) {
        let (_endpoint, connection) = listener.touchdown(None).await;
        let (mut out, _incoming) = connection.open_bi().await.unwrap();
        out.write_all(&bytes).await.unwrap();
        out.finish().unwrap();
        assert_eq!(close_code(&connection).await, unauthorized[0]);
    }
    // Nothing, within the time of a handshake.
    let (_endpoint, connection) = listener.touchdown(None).await;
    assert_eq!(close_code(&connection).await, unauthorized[1]);
    listener.until(|state| state.numbers.handshakes == 0).await;
    assert_eq!(listener.with(|state| (state.numbers.connected, state.submitted.len())), (0, 0));
}

#[tokio::test]
async fn unknown_key_before_the_keys_were_read_is_overload() {
    let listener = listener();
    listener.with(|state| state.is_reading_keys = true);
    let (_endpoint, connection) = listener.touchdown(None).await;
    let _control = opened(&connection, &hello(0, b"another-key-of-16")).await;
    assert_eq!(close_code(&connection).await, code(QuicRefusal::KeysUnread));
    let (_endpoint, connection) = listener.connect(solana_client(&[9; 32])).await.unwrap();
    assert_eq!(close_code(&connection).await, code(QuicRefusal::KeysUnread));
    // A known one is none.
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    assert_eq!(submit(&connection, &transaction(3)).await.state, 1);
}

#[tokio::test]
async fn hello_from_another_address_than_the_handshake_closes_the_connection() {
    let listener = listener();
    let (endpoint, connection) = listener.touchdown(None).await;
    let other = std::net::UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).unwrap();
    endpoint.rebind(other).unwrap();
    let _control = opened(&connection, &hello(0, API_KEY)).await;
    assert_eq!(close_code(&connection).await, code(QuicRefusal::Unauthorized));
    assert_eq!(listener.with(|state| state.numbers.connected), 0);
}

#[tokio::test]
async fn key_that_is_not_valid_from_there_is_closed_at_once() {
    let listener = listener();
    listener.with(|state| state.elsewhere = Some(public_key(&[9; 32]).unwrap()));
    let (_endpoint, connection) = listener.touchdown(Some(&[9; 32])).await;
    assert_eq!(close_code(&connection).await, code(QuicRefusal::Unauthorized));
}

#[tokio::test]
async fn clients_that_are_not_known_are_bounded_as_handshakes() {
    let listener = listener();
    let mut silent = Vec::new();
    for _ in 0..32 {
        silent.push(listener.touchdown(None).await);
    }
    // The next one proves its address, and is admitted.
    let (_endpoint, connection) = listener.touchdown(None).await;
    listener.until(|state| state.numbers.handshakes == 33).await;
    assert_eq!(listener.with(|state| state.numbers.retries), 1);
    greeted(&connection, &hello(0, API_KEY)).await;
    assert_eq!(submit(&connection, &transaction(3)).await.state, 1);
}

#[tokio::test]
async fn anything_but_one_hello_closes_the_connection() {
    let listener = listener();
    let mut long = hello(0, b"");
    long.extend([0; 200]);
    let cases: [&[u8]; 5] = [
        &[0, 9],
        &[0, 1, 0, 2, 0, 2, 0],
        &[0, 1, 0, 2, 0, 1, 0, 0],
        &long,
        // With a certificate that is known an API key would be a second identity.
        &hello(0, API_KEY),
    ];
    for bytes in cases {
        let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
        let (mut out, _incoming) = connection.open_bi().await.unwrap();
        out.write_all(bytes).await.unwrap();
        assert_eq!(close_code(&connection).await, code(QuicRefusal::Frame), "{bytes:?}");
    }
    // Half of it, and then the end.
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    opened(&connection, &[0, 1, 0]).await;
    assert_eq!(close_code(&connection).await, code(QuicRefusal::Frame));
    // Half of it, and a reset.
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    let (mut out, _incoming) = connection.open_bi().await.unwrap();
    out.write_all(&[0, 1, 0]).await.unwrap();
    submit(&connection, &transaction(7)).await;
    out.reset(0_u32.into()).unwrap();
    assert_eq!(close_code(&connection).await, code(QuicRefusal::Frame));
    // A frame behind it.
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    let (mut out, _incoming) = greeted(&connection, &hello(0, b"")).await;
    out.write_all(&[1]).await.unwrap();
    assert_eq!(close_code(&connection).await, code(QuicRefusal::Frame));
}

#[tokio::test]
async fn client_may_reset_its_side_of_the_control_stream_once_it_said_hello() {
    let listener = listener();
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    let (mut out, mut incoming) = greeted(&connection, &hello(1, b"")).await;
    out.reset(0_u32.into()).unwrap();
    assert_eq!(submit(&connection, &transaction(7)).await.state, 1);
    listener.with(|state| state.receipts = receipt(ACCOUNT, 6, &transaction(7)));
    assert_eq!(frame_of(&mut incoming).await.0, 0x84);
}

#[tokio::test]
async fn hello_has_the_deadline_of_a_stream() {
    let listener = Listener::new(|options| options.stream_timeout_ns = NS_PER_S / 10);
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    let (mut out, _incoming) = connection.open_bi().await.unwrap();
    out.write_all(&[0, 1]).await.unwrap();
    assert_eq!(close_code(&connection).await, code(QuicRefusal::Slow));
    // One refusal, of the two bytes.
    let refused = listener.with(|state| state.refused.clone());
    assert_eq!(refused, [(true, QuicRefusal::Slow, 2)]);
}

#[tokio::test]
async fn second_control_stream_is_refused_alone() {
    let listener = listener();
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    greeted(&connection, &hello(0, b"")).await;
    let (mut out, incoming) = connection.open_bi().await.unwrap();
    out.write_all(&[0]).await.unwrap();
    let verdict = verdict_of(incoming).await;
    assert_eq!(u64::from(verdict.code), code(QuicRefusal::SecondControl));
    let stopped = out.stopped().await.unwrap().map(VarInt::into_inner);
    assert_eq!(stopped, Some(code(QuicRefusal::SecondControl)));
    assert_eq!(submit(&connection, &transaction(3)).await.state, 1);
}

#[tokio::test]
async fn flags_precede_the_transaction_on_either_kind_of_stream() {
    let listener = listener();
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    let with = |flags: u8, size: usize| [&[flags][..], &vec![1; size]].concat();
    assert_eq!(submit(&connection, &with(0x40, 200)).await.state, 1);
    assert_eq!(submit(&connection, &with(0x41, 4096)).await.state, 1);
    send(&connection, &with(0x41, 4096)).await;
    listener.until(|state| state.submitted.len() == 3).await;
    listener.with(|state| {
        assert_eq!(
            state.flags.iter().map(|it| it.is_sent_once).collect::<Vec<_>>(),
            [false, true, true]
        );
        assert!(state.submitted.iter().all(|(_, bytes)| bytes[0] == 1));
    });
    assert_eq!(u64::from(submit(&connection, &with(0x44, 9)).await.code), code(QuicRefusal::Flags));
    send(&connection, &with(0x60, 9)).await;
    listener.until(|state| state.refused.len() == 2).await;
    let refused = (true, QuicRefusal::Flags, 10);
    assert_eq!(listener.with(|state| state.refused.clone()), [refused, refused]);
    // To `solana-tpu` it is the first byte of a transaction.
    let (_endpoint, connection) = listener.client().await;
    send(&connection, &with(0x41, 9)).await;
    listener.until(|state| state.submitted.len() == 4).await;
    assert_eq!(listener.with(|state| state.submitted[3].1.clone()), with(0x41, 9));
}

#[tokio::test]
async fn stream_that_is_too_large_or_too_slow_has_a_verdict_too() {
    let listener = Listener::new(|options| options.stream_timeout_ns = NS_PER_S / 10);
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    let flagged = [&[0x40][..], &[1; 4097]].concat();
    for (bytes, refusal) in [
        (&[1; 4097][..], QuicRefusal::TooLarge),
        (&flagged, QuicRefusal::TooLarge),
        (&[1; 10], QuicRefusal::Slow),
    ] {
        let (mut out, incoming) = connection.open_bi().await.unwrap();
        out.write_all(bytes).await.unwrap();
        let verdict = verdict_of(incoming).await;
        assert_eq!((verdict.state, u64::from(verdict.code)), (0, code(refusal)));
        let stopped = out.stopped().await.unwrap().map(VarInt::into_inner);
        assert_eq!(stopped, Some(code(refusal)));
    }
    assert_eq!(submit(&connection, &transaction(3)).await.state, 1);
}

#[tokio::test]
async fn reset_is_answered_with_a_reset() {
    let listener = listener();
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    let (mut out, mut incoming) = connection.open_bi().await.unwrap();
    out.write_all(&[1; 10]).await.unwrap();
    assert_eq!(submit(&connection, &transaction(3)).await.state, 1);
    out.reset(7_u32.into()).unwrap();
    let ended = tokio::time::timeout(GUARD, incoming.read_to_end(100)).await.unwrap();
    let expected = quinn::ReadToEndError::Read(quinn::ReadError::Reset(7_u32.into()));
    assert_eq!(ended, Err(expected));
    listener.until(|state| state.numbers.streams_aborted == 1).await;
}

#[tokio::test]
async fn revoked_key_closes_clients_of_either_protocol() {
    let listener = listener();
    let (_one, by_key) = listener.touchdown(None).await;
    greeted(&by_key, &hello(1, API_KEY)).await;
    let (_two, by_certificate) = listener.touchdown(Some(&SEED)).await;
    assert_eq!(submit(&by_certificate, &transaction(3)).await.state, 1);
    listener.with(|state| state.accounts.clear());
    for connection in [&by_key, &by_certificate] {
        assert_eq!(close_code(connection).await, code(QuicRefusal::Unauthorized));
    }
    listener.until(|state| state.numbers.followers == 0).await;
}

#[tokio::test]
async fn bidirectional_streams_are_granted_as_the_limits_admit() {
    let listener = listener();
    listener.with(|state| (state.credit, state.costs_credit) = (3, true));
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    greeted(&connection, &hello(0, b"")).await;
    let credits = [
        submit(&connection, &transaction(1)).await.credit,
        submit(&connection, &transaction(2)).await.credit,
        submit(&connection, &transaction(3)).await.credit,
    ];
    assert_eq!(credits, [2, 1, 0]);
    let more = tokio::time::timeout(Duration::from_millis(100), connection.open_bi()).await;
    assert!(more.is_err(), "a stream above the limit");
    listener.with(|state| state.credit = 1);
    assert_eq!(submit(&connection, &transaction(4)).await.credit, 0);
}

#[tokio::test]
async fn unfinished_bidirectional_streams_count_against_those_ahead() {
    let listener = listener();
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    let mut open = Vec::new();
    // One of them is for the control stream.
    for _ in 0..65 {
        let (mut out, incoming) = connection.open_bi().await.unwrap();
        out.write_all(&[1; 3]).await.unwrap();
        open.push((out, incoming));
    }
    let more = tokio::time::timeout(Duration::from_millis(100), async {
        for _ in 0..2 {
            connection.open_bi().await.unwrap().0.write_all(&[1]).await.unwrap();
        }
    });
    assert!(more.await.is_err(), "more than 64 unfinished streams");
}

#[tokio::test]
async fn drain_waits_until_a_verdict_has_arrived() {
    let listener = listener();
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    let (mut out, incoming) = connection.open_bi().await.unwrap();
    out.write_all(&[1; 10]).await.unwrap();
    assert_eq!(submit(&connection, &transaction(3)).await.state, 1);
    listener.with(|state| state.drain = true);
    out.write_all(&[1; 100]).await.unwrap();
    out.finish().unwrap();
    assert_eq!(verdict_of(incoming).await.state, 1);
    assert_eq!(close_code(&connection).await, code(QuicRefusal::Draining));
    assert_eq!(listener.with(|state| state.refused.clone()), []);
}

#[tokio::test]
async fn drain_answers_a_client_that_has_stopped_its_control_stream() {
    // After its frames, and before its own.
    for is_greeted in [true, false] {
        let listener = listener();
        let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
        let (mut out, mut incoming) = match is_greeted {
            true => greeted(&connection, &hello(0, b"")).await,
            false => connection.open_bi().await.unwrap(),
        };
        incoming.stop(0_u32.into()).unwrap();
        if !is_greeted {
            out.write_all(&hello(0, b"")).await.unwrap();
        }
        out.finish().unwrap();
        submit(&connection, &transaction(3)).await;
        let waiting = opened(&connection, &[&[0x42][..], &transaction(7)].concat()).await;
        listener.until(|state| state.numbers.followers == 1).await;
        listener.with(|state| state.drain = true);
        assert_eq!(verdict_of(waiting).await.state, 1);
        assert_eq!(close_code(&connection).await, code(QuicRefusal::Draining));
    }
}

#[tokio::test]
async fn process_that_is_replaced_names_no_other_edge() {
    let listener = listener();
    let (_endpoint, connection) = listener.touchdown(None).await;
    let (_out, mut frames) = greeted(&connection, &hello(0, API_KEY)).await;
    let (mut out, incoming) = connection.open_bi().await.unwrap();
    out.write_all(&[1; 10]).await.unwrap();
    submit(&connection, &transaction(3)).await;
    listener.with(|state| state.retire = true);
    assert_eq!(frame_of(&mut frames).await, (0x83, Vec::new()));
    out.finish().unwrap();
    verdict_of(incoming).await;
    assert_eq!(close_code(&connection).await, code(QuicRefusal::Draining));
}

/// What a hostile client may write on its first stream: a HELLO or a transaction with bytes
/// changed, left out or added.
#[tokio::test]
async fn random_bytes_on_streams_end_no_other_client() {
    let listener = Listener::new(|options| options.stream_timeout_ns = NS_PER_S / 20);
    listener.with(|state| state.accounts.extend([(token_key(API_KEY), ACCOUNT)]));
    let (_good, good) = listener.touchdown(Some(&SEED)).await;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    let starts = [hello(1, API_KEY), hello(0, b""), transaction(3), vec![0x42; 80]];
    for _ in 0..100 {
        let seed = (below(2) == 0).then_some(&SEED);
        let (_endpoint, connection) = listener.touchdown(seed).await;
        for _ in 0..4 {
            let mut bytes = starts[below(starts.len())].clone();
            for _ in 0..below(4) {
                let at = below(bytes.len());
                bytes[at] = below(256) as u8;
            }
            bytes.truncate(1 + below(bytes.len() + 40));
            let Ok(Ok((mut out, _incoming))) =
                tokio::time::timeout(Duration::from_millis(20), connection.open_bi()).await
            else {
                break;
            };
            let _ = out.write_all(&bytes).await;
            match below(4) {
                0 => drop(out.reset(1_u32.into())),
                1 => std::mem::forget(out),
                _ => drop(out.finish()),
            }
        }
        connection.close(0_u32.into(), b"");
    }
    assert_eq!(submit(&good, &transaction(3)).await.state, 1);
    listener.until(|state| (state.numbers.connections, state.numbers.handshakes) == (1, 0)).await;
    assert_eq!(listener.with(|state| state.numbers.panics), 0);
}

#[tokio::test]
async fn thousands_of_empty_and_half_streams_cost_their_client_alone() {
    let listener = listener();
    listener.with(|state| (state.credit, state.costs_credit) = (2000, true));
    let (_one, hostile) = listener.touchdown(Some(&SEED)).await;
    let (_two, good) = listener.touchdown(None).await;
    greeted(&good, &hello(0, API_KEY)).await;
    for number in 0..1500_u32 {
        let (mut out, incoming) = hostile.open_bi().await.unwrap();
        match number % 3 {
            0 => drop(out.finish()),
            1 => drop(out.reset(1_u32.into())),
            _ => {
                out.write_all(&[1]).await.unwrap();
                out.reset(1_u32.into()).unwrap();
            }
        }
        drop(incoming);
        if number % 100 == 0 {
            assert_eq!(submit(&good, &transaction(3)).await.state, 1);
        }
    }
    assert_eq!(submit(&good, &transaction(3)).await.state, 1);
    listener.until(|state| state.numbers.streams_aborted >= 500).await;
}
