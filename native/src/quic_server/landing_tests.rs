//! What a client of `touchdown/1` learns of the end of its transactions: verdicts that wait for it,
//! and receipts.

use super::touchdown::{
    API_KEY, frame_of, greeted, hello, listener, opened, receipt, submit, transaction, verdict_of,
};
use super::*;
use crate::quic_server::limits::{
    CONTROL_FRAMES_MAX, FOLLOWERS_PER_ACCOUNT, LANDINGS_PER_CONNECTION,
};
use crate::quic_server::tls::ALPN_TOUCHDOWN;
use crate::quic_server::verdict::{VERDICT_BYTES, Verdict};

#[tokio::test]
async fn verdict_waits_for_the_end_of_its_transaction() {
    let listener = listener();
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    let bytes = transaction(7);
    let flagged = [&[0x42][..], &bytes].concat();
    let first = opened(&connection, &flagged).await;
    let second = opened(&connection, &flagged).await;
    listener.until(|state| state.numbers.followers == 2).await;
    // Another transaction, and one that is not final.
    let receipts = [receipt(ACCOUNT, 6, &transaction(8)), receipt(ACCOUNT, 5, &bytes)].concat();
    listener.with(|state| state.receipts = receipts);
    assert_eq!(submit(&connection, &transaction(9)).await.state, 1);
    assert_eq!(listener.with(|state| state.numbers.followers), 2);
    listener.with(|state| state.receipts = receipt(ACCOUNT, 6, &bytes));
    for incoming in [first, second] {
        let verdict = verdict_of(incoming).await;
        assert_eq!((verdict.state, verdict.code, verdict.bits), (6, 0, 1));
        assert_eq!((verdict.slot, verdict.signature), (358_000_123, [7; 64]));
    }
    listener.until(|state| state.numbers.followers == 0).await;
    // A refusal waits for nothing.
    let invalid = [&[0x42], INVALID, &[9; 100]].concat();
    assert_eq!(submit(&connection, &invalid).await.state, 0);
    assert_eq!(listener.with(|state| state.numbers.landings_unawaited), 0);
}

#[tokio::test]
async fn verdict_that_cannot_wait_comes_at_once() {
    let listener = listener();
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    listener.with(|state| state.is_repeated = true);
    let flagged = [&[0x42][..], &transaction(7)].concat();
    assert_eq!(submit(&connection, &flagged).await.state, 1);
    listener.with(|state| state.is_repeated = false);
    let mut waiting = Vec::new();
    for _ in 0..LANDINGS_PER_CONNECTION {
        waiting.push(opened(&connection, &flagged).await);
    }
    assert_eq!(submit(&connection, &flagged).await.state, 1);
    listener.until(|state| state.numbers.landings_unawaited == 2).await;
    // Others of the edge wait in their own bound.
    let (_endpoint, other) = listener.touchdown(Some(&SEED)).await;
    let theirs = opened(&other, &flagged).await;
    let all = LANDINGS_PER_CONNECTION as u64 + 1;
    listener.until(|state| state.numbers.followers == all).await;
    // A client that no longer wants the verdict, and one that leaves.
    waiting.pop().unwrap().stop(0_u32.into()).unwrap();
    listener.until(|state| state.numbers.followers == all - 1).await;
    connection.close(0_u32.into(), b"");
    listener.until(|state| state.numbers.followers == 1).await;
    // A drain answers the rest.
    listener.with(|state| state.drain = true);
    assert_eq!(verdict_of(theirs).await.state, 1);
    assert_eq!(close_code(&other).await, code(QuicRefusal::Draining));
}

#[tokio::test]
async fn receipts_come_to_the_clients_that_want_them() {
    let listener = listener();
    let (_one, connection) = listener.touchdown(Some(&SEED)).await;
    let (_out, mut incoming) = greeted(&connection, &hello(1, b"")).await;
    let (_two, other) = listener.touchdown(None).await;
    let (_kept, mut unwanted) = greeted(&other, &hello(0, API_KEY)).await;
    assert_eq!(listener.with(|state| state.numbers.followers), 1);
    let bytes = transaction(7);
    let receipts = [receipt(ACCOUNT + 1, 6, &bytes), receipt(ACCOUNT, 5, &bytes)].concat();
    listener.with(|state| state.receipts = receipts);
    let (kind, content) = frame_of(&mut incoming).await;
    let verdict = Verdict::read(&content.try_into().unwrap()).unwrap();
    assert_eq!((kind, verdict.state, verdict.slot), (0x84, 5, 358_000_123));
    assert_eq!((verdict.credit, verdict.microseconds, verdict.signature), (64, 5, [7; 64]));
    listener.with(|state| state.announce_drain = true);
    assert_eq!(frame_of(&mut incoming).await, (0x83, b"other.example.com:8009".to_vec()));
    assert_eq!(frame_of(&mut unwanted).await.0, 0x83);
    // It is served on, and so are those that come.
    assert_eq!(submit(&connection, &transaction(3)).await.state, 1);
    let (_three, third) = listener.touchdown(None).await;
    let (_out, mut incoming) = greeted(&third, &hello(0, API_KEY)).await;
    assert_eq!(frame_of(&mut incoming).await.0, 0x83);
    connection.close(0_u32.into(), b"");
    listener.until(|state| state.numbers.followers == 0).await;
}

#[tokio::test]
async fn receipts_go_to_a_bounded_number_of_connections_of_an_account() {
    let listener = listener();
    let mut open = Vec::new();
    for _ in 0..FOLLOWERS_PER_ACCOUNT {
        let (endpoint, connection) = listener.touchdown(Some(&SEED)).await;
        open.push((greeted(&connection, &hello(1, b"")).await, connection, endpoint));
    }
    let (_one, further) = listener.touchdown(Some(&SEED)).await;
    let (mut out, _incoming) = further.open_bi().await.unwrap();
    out.write_all(&hello(1, b"")).await.unwrap();
    assert_eq!(close_code(&further).await, code(QuicRefusal::Followers));
    // One that wants none is served, and so is one in the place of another.
    let (_two, other) = listener.touchdown(Some(&SEED)).await;
    greeted(&other, &hello(0, b"")).await;
    drop(open.pop());
    listener.until(|state| state.numbers.followers == FOLLOWERS_PER_ACCOUNT as u64 - 1).await;
    let (_three, third) = listener.touchdown(Some(&SEED)).await;
    greeted(&third, &hello(1, b"")).await;
}

#[tokio::test]
async fn client_that_reads_no_receipts_loses_the_oldest() {
    let listener = listener();
    let (_one, connection) = listener.touchdown(Some(&SEED)).await;
    let mut config = quinn::TransportConfig::default();
    config.stream_receive_window(1024_u32.into());
    let mut client = client_of(ALPN_TOUCHDOWN, None);
    client.transport_config(Arc::new(config));
    let (_two, slow) = listener.connect(client).await.unwrap();
    let (_out, mut incoming) = greeted(&slow, &hello(1, API_KEY)).await;
    let all: Vec<u8> = (0..8 * CONTROL_FRAMES_MAX)
        .flat_map(|number| receipt(ACCOUNT, 6, &transaction(number as u8)))
        .collect();
    listener.with(|state| state.receipts = all);
    listener.until(|state| state.numbers.receipts_dropped > 0).await;
    let dropped = listener.with(|state| state.numbers.receipts_dropped);
    // Others are served meanwhile.
    assert_eq!(submit(&connection, &transaction(3)).await.state, 1);
    let (mut lost, mut read) = (0, 0);
    while read + lost < 8 * CONTROL_FRAMES_MAX as u64 {
        match frame_of(&mut incoming).await {
            (0x85, content) => lost += u64::from(u32::from_le_bytes(content.try_into().unwrap())),
            (kind, content) => {
                assert_eq!((kind, content.len()), (0x84, VERDICT_BYTES));
                read += 1;
            }
        }
    }
    assert_eq!(lost, dropped);
}

#[tokio::test]
async fn verdict_that_the_client_stopped_before_waits_for_no_end() {
    let listener = listener();
    let (_endpoint, connection) = listener.touchdown(Some(&SEED)).await;
    let (mut out, mut incoming) = connection.open_bi().await.unwrap();
    incoming.stop(0_u32.into()).unwrap();
    out.write_all(&[&[0x42][..], &transaction(7)].concat()).await.unwrap();
    out.finish().unwrap();
    assert_eq!(submit(&connection, &transaction(3)).await.state, 1);
    listener.until(|state| state.submitted.len() == 2).await;
    let unawaited = listener.with(|state| state.numbers.landings_unawaited);
    assert_eq!((listener.with(|state| state.numbers.followers), unawaited), (0, 0));
}

#[tokio::test]
async fn panic_keeps_the_receipts_of_other_connections() {
    let listener = listener();
    let (_one, connection) = listener.touchdown(Some(&SEED)).await;
    let (_out, mut incoming) = greeted(&connection, &hello(1, b"")).await;
    let waiting = opened(&connection, &[&[0x42][..], &transaction(7)].concat()).await;
    listener.until(|state| state.numbers.followers == 2).await;
    let (_two, other) = listener.touchdown(None).await;
    greeted(&other, &hello(1, API_KEY)).await;
    send(&other, &[&[0x40], PANIC].concat()).await;
    listener.until(|state| state.numbers.panics == 1).await;
    assert_eq!(listener.with(|state| state.numbers.followers), 2);
    listener.with(|state| state.receipts = receipt(ACCOUNT, 7, &transaction(7)));
    assert_eq!(verdict_of(waiting).await.state, 7);
    assert_eq!(frame_of(&mut incoming).await.0, 0x84);
}

#[tokio::test]
async fn panic_over_a_receipt_ends_no_client() {
    let listener = listener();
    let (_one, connection) = listener.touchdown(Some(&SEED)).await;
    let (_out, mut incoming) = greeted(&connection, &hello(1, b"")).await;
    listener.with(|state| {
        state.panics_over_receipts = true;
        state.receipts = receipt(ACCOUNT, 6, &transaction(7));
    });
    listener.until(|state| state.numbers.panics == 1).await;
    listener.with(|state| state.receipts = receipt(ACCOUNT, 6, &transaction(8)));
    let (_, content) = frame_of(&mut incoming).await;
    // The first one may have been lost.
    let content = if content[24] == 7 { frame_of(&mut incoming).await.1 } else { content };
    assert_eq!(content[24], 8);
}
