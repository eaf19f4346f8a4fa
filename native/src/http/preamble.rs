//! Finds what may precede a request and belongs to none: empty lines (RFC 9112, 2.2), and a
//! preamble of the PROXY protocol, version 2, which the upstream server ignores too, because anyone
//! can send one.

/// The protocol's signature (PROXY protocol, 2.2, 2020-03-05).
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family, size of the addresses.
const HEADER_BYTES: usize = 16;
/// Largest addresses: two paths of Unix sockets.
const ADDRESS_BYTES_MAX: usize = 216;

/// How many of the first bytes belong to no request; None while that is undecided.
#[must_use]
pub(super) fn preamble_size(bytes: &[u8]) -> Option<usize> {
    if bytes.first() != Some(&b'\r') {
        return Some(0);
    }
    if SIGNATURE.starts_with(bytes) {
        return None;
    }
    if !bytes.starts_with(SIGNATURE) {
        let lines = bytes.chunks(2).take_while(|pair| pair == b"\r\n").count();
        // The last two may be the start of a preamble.
        return Some(2 * lines.saturating_sub(2).max(lines.min(1)));
    }
    let Some(&[.., command, _family, high, low]) = bytes.get(..HEADER_BYTES) else { return None };
    let addresses = usize::from(u16::from_be_bytes([high, low]));
    if command >> 4 != 2 || addresses > ADDRESS_BYTES_MAX {
        // What follows the empty line is no request line.
        return Some(2);
    }
    let size = HEADER_BYTES + addresses;
    (bytes.len() >= size).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preamble_is_recognized_once_it_is_complete() {
        let preamble =
            [SIGNATURE, b"\x21\x11\x00\x0c\x0a\0\0\x01\x0a\0\0\x02\0\x01\0\x02"].concat();
        for size in 1..preamble.len() {
            assert_eq!(preamble_size(&preamble[..size]), None, "{size}");
        }
        let with_request = [&preamble, &b"GET"[..]].concat();
        assert_eq!(preamble_size(&with_request), Some(28));
        for end in [b"\x11\x11\x00\x00", b"\x21\x11\x00\xd9"] {
            assert_eq!(preamble_size(&[SIGNATURE, end].concat()), Some(2));
        }
        let longest = [SIGNATURE, b"\x21\x11\x00\xd8", &[0; 216]].concat();
        assert_eq!(preamble_size(&longest), Some(232));
    }

    #[test]
    fn empty_lines_are_skipped() {
        for (text, size) in [
            ("GET", 0),
            ("\r\nG", 2),
            ("\r\n\r\nG", 2),
            ("\r\n\r\n\r\n\r\nG", 4),
            ("\rG", 0),
            ("", 0),
        ] {
            assert_eq!(preamble_size(text.as_bytes()), Some(size), "{text:?}");
        }
    }
}
