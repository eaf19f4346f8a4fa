//! Frames of the control stream, as `docs/quic.md` describes them: a head of type, 0 and size, then
//! the content. Numbers are little-endian.

use crate::quic_server::handler::{ClientLimits, Tips};
use crate::quic_server::limits::STREAMS_AHEAD_MAX;
use crate::quic_server::verdict::VERDICT_BYTES;

/// Bytes of a frame's head.
const HEAD_BYTES: usize = 4;
/// The one frame of clients.
const HELLO: u8 = 0x01;
/// The version in it.
const VERSION: u8 = 1;
const WANTS_RECEIPTS: u8 = 1;
const LIMITS: u8 = 0x81;
const TIPS: u8 = 0x82;
const DRAINING: u8 = 0x83;
const RECEIPT: u8 = 0x84;
const LOST: u8 = 0x85;
/// `TOKEN_CHARS_MAX` of `src/core/limits.ts`.
const TOKEN_BYTES_MAX: usize = 128;
/// Largest frame of a client, its head included.
pub const HELLO_BYTES_MAX: usize = HEAD_BYTES + 2 + TOKEN_BYTES_MAX;
/// Largest content of a frame.
const CONTENT_BYTES_MAX: usize = 4096;

/// What a client says first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Hello<'a> {
    /// Whether it wants receipts.
    pub wants_receipts: bool,
    /// Its API key, or what is none; empty without one.
    pub token: &'a [u8],
}

/// Bytes of a client that are no HELLO.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NotHello;

/// The first frame of a client; None while it is not complete.
///
/// # Errors
/// For any other bytes, also behind the frame.
pub fn read_hello(bytes: &[u8]) -> Result<Option<Hello<'_>>, NotHello> {
    let Some((&[kind, zero, size_low, size_high], content)) =
        bytes.split_first_chunk::<HEAD_BYTES>()
    else {
        let is_start = [HELLO, 0].iter().zip(bytes).all(|(expected, found)| expected == found);
        return if is_start { Ok(None) } else { Err(NotHello) };
    };
    let size = usize::from(u16::from_le_bytes([size_low, size_high]));
    let token_size = size.checked_sub(2).ok_or(NotHello)?;
    if kind != HELLO || zero != 0 || token_size > TOKEN_BYTES_MAX || content.len() > size {
        return Err(NotHello);
    }
    if content.len() < size {
        return Ok(None);
    }
    let Some((&[VERSION, wants], token)) = content.split_first_chunk() else {
        return Err(NotHello);
    };
    if wants & !WANTS_RECEIPTS != 0 {
        return Err(NotHello);
    }
    Ok(Some(Hello { wants_receipts: wants & WANTS_RECEIPTS != 0, token }))
}

/// The account's limits and what else bounds a client.
pub(super) fn limits(limits: &ClientLimits, credit: u32, bytes_max: u32) -> Vec<u8> {
    let ClientLimits { rate_per_second, burst } = limits;
    let mut content = rate_per_second.to_le_bytes().to_vec();
    for number in [*burst, credit, STREAMS_AHEAD_MAX, bytes_max] {
        content.extend(number.to_le_bytes());
    }
    frame(LIMITS, &content)
}

/// The least tip, and the accounts of which one must be paid.
pub(super) fn tips(tips: &Tips) -> Vec<u8> {
    let mut content = tips.lamports_min.to_le_bytes().to_vec();
    // As many as fit: an edge has at most 64.
    let accounts_max = (CONTENT_BYTES_MAX - content.len()) / 32;
    for account in tips.accounts.iter().take(accounts_max) {
        content.extend(account);
    }
    frame(TIPS, &content)
}

/// Where to connect instead, perhaps empty.
pub(super) fn draining(address: &str) -> Vec<u8> {
    frame(DRAINING, address.as_bytes())
}

/// A receipt.
pub(super) fn receipt(verdict: &[u8; VERDICT_BYTES]) -> Vec<u8> {
    frame(RECEIPT, verdict)
}

/// So many receipts were dropped.
pub(super) fn lost(count: u32) -> Vec<u8> {
    frame(LOST, &count.to_le_bytes())
}

fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    let content = content.get(..content.len().min(CONTENT_BYTES_MAX)).unwrap_or_default();
    // At most `CONTENT_BYTES_MAX`.
    let [size_low, size_high] = (content.len() as u16).to_le_bytes();
    let mut bytes = Vec::with_capacity(HEAD_BYTES + content.len());
    bytes.extend([kind, 0, size_low, size_high]);
    bytes.extend(content);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"example-key-of-this-page";

    fn hello(wants: u8, token: &[u8]) -> Vec<u8> {
        frame(HELLO, &[&[VERSION, wants], token].concat())
    }

    #[test]
    fn hello_is_read_once_it_is_complete() {
        let bytes = hello(1, KEY);
        assert_eq!(bytes[..6], [1, 0, 0x1a, 0, 1, 1]);
        for size in 0..bytes.len() {
            assert_eq!(read_hello(&bytes[..size]), Ok(None), "{size}");
        }
        assert_eq!(read_hello(&bytes), Ok(Some(Hello { wants_receipts: true, token: KEY })));
        let none = hello(0, b"");
        assert_eq!(read_hello(&none), Ok(Some(Hello { wants_receipts: false, token: b"" })));
        assert_eq!(hello(0, &[b'a'; TOKEN_BYTES_MAX]).len(), HELLO_BYTES_MAX);
    }

    #[test]
    fn token_that_no_api_key_can_be_is_read_all_the_same() {
        for token in [b"a".as_slice(), b"a blank and \x80 are in this one"] {
            let bytes = hello(0, token);
            assert_eq!(read_hello(&bytes), Ok(Some(Hello { wants_receipts: false, token })));
        }
    }

    #[test]
    fn anything_else_is_no_hello() {
        let good = hello(1, KEY);
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            read_hello(&bytes).map(|hello| hello.is_some())
        };
        // Type, zero, size, version, wants.
        for (at, byte) in [(0, 2), (1, 1), (2, 0x19), (3, 1), (4, 2), (5, 2)] {
            assert_eq!(with(at, byte), Err(NotHello), "{at} {byte}");
        }
        assert_eq!(read_hello(&[2]), Err(NotHello));
        assert_eq!(read_hello(&[1, 1]), Err(NotHello));
        assert_eq!(read_hello(&[1, 0, 1, 0]), Err(NotHello));
        assert_eq!(read_hello(&[1, 0, 131, 0]), Err(NotHello), "a key of 129 bytes");
        assert_eq!(read_hello(&[good.as_slice(), &[0]].concat()), Err(NotHello));
    }

    /// As in the exchange of `docs/quic.md`.
    #[test]
    fn frames_have_the_bytes_of_the_page() {
        let client = ClientLimits { rate_per_second: 50.0, burst: 100 };
        let expected = [
            0x81, 0, 0x18, 0, 0, 0, 0, 0, 0, 0, 0x49, 0x40, 0x64, 0, 0, 0, 0x64, 0, 0, 0, 0x40, 0,
            0, 0, 0, 0x10, 0, 0,
        ];
        assert_eq!(limits(&client, 100, 4096), expected);
        let bytes = tips(&Tips { lamports_min: 1_000_000, accounts: Box::new([[7; 32]]) });
        assert_eq!(bytes[..12], [0x82, 0, 0x28, 0, 0x40, 0x42, 0x0f, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[12..], [7; 32]);
        assert_eq!(draining("a:1"), *b"\x83\0\x03\0a:1");
        assert_eq!(draining(""), *b"\x83\0\0\0");
        assert_eq!(receipt(&[9; VERDICT_BYTES])[..5], [0x84, 0, 0x58, 0, 9]);
        assert_eq!(lost(258), [0x85, 0, 4, 0, 2, 1, 0, 0]);
    }

    #[test]
    fn frame_has_no_more_content_than_a_client_must_take() {
        let many = Tips { lamports_min: 1, accounts: vec![[7; 32]; 1024].into() };
        assert_eq!(tips(&many).len(), HEAD_BYTES + 8 + 127 * 32);
        assert_eq!(draining(&"a".repeat(5000)).len(), HEAD_BYTES + CONTENT_BYTES_MAX);
    }
}
