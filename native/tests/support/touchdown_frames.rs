//! What a client of `touchdown/1` may send, read as the listener does, and checked against the page
//! that describes it.

use touchdown_native::quic_server::first_byte::split_flags;
use touchdown_native::quic_server::frame::{HELLO_BYTES_MAX, Hello, read_hello};
use touchdown_native::quic_server::verdict::{VERDICT_BYTES, Verdict};

/// Reads the bytes as the start of a transaction's stream, as a control stream, whole and in pieces,
/// and as a verdict. Returns whether they are a HELLO.
pub fn feed(bytes: &[u8]) -> bool {
    let has_flags = bytes.first().is_some_and(|first| (0x40..0x80).contains(first));
    let is_known = bytes.first().is_some_and(|first| (0x40..0x44).contains(first));
    match split_flags(bytes) {
        Some((_, rest)) => assert_eq!(rest, if is_known { &bytes[1..] } else { bytes }),
        None => assert!(has_flags && !is_known),
    }
    let whole = read_hello(bytes);
    for size in 0..bytes.len().min(HELLO_BYTES_MAX + 1) {
        match (read_hello(&bytes[..size]), whole) {
            // What is wrong stays wrong, and only the whole of a HELLO is one.
            (Err(_), whole) => assert!(whole.is_err(), "{size}"),
            (Ok(Some(_)), whole) => assert!(whole.is_err(), "{size}"),
            (Ok(None), _) => {}
        }
    }
    if let Some(verdict) = bytes.first_chunk::<VERDICT_BYTES>().and_then(Verdict::read) {
        assert_eq!(verdict.bytes()[..], bytes[..VERDICT_BYTES]);
    }
    let Ok(Some(Hello { wants_receipts, token })) = whole else { return false };
    let size = (2 + token.len()) as u8;
    let written = [&[1, 0, size, 0, 1, u8::from(wants_receipts)], token].concat();
    assert_eq!(written, bytes);
    assert!(token.len() <= 128);
    true
}
