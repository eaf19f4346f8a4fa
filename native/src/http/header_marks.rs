//! Keeps the upstream server from reading a header value that the client did not send.
//!
//! Only spaces and tabs around a value do not belong to it (RFC 9110, 5.5). uWebSockets.js strips
//! every byte that is not visible ASCII (2026-11): it reads `452\xff` as 452, and a key followed by
//! a no-break space as the key. So a proxied request gets a mark at the end of such a value. With
//! it the value is no number and no key, and the upstream server rejects it.

/// Occurs in no number; the space occurs in no key.
const MARK: &[u8] = b" ?";
/// Headers that decide where a request ends, and which key it has.
const NAMES: [&[u8]; 4] = [b"content-length", b"api-x-token", b"x-api-key", b"authorization"];

/// Puts the mark into the head, or part of a head, that `request` starts with.
pub(super) fn mark_values(request: &mut Vec<u8>) {
    let end = request.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let (head, rest) = request.split_at(end.unwrap_or(request.len()));
    if !head.iter().any(is_odd) {
        return;
    }
    let mut marked = Vec::with_capacity(request.len() + 2 * NAMES.len() * MARK.len());
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        marked.extend_from_slice(text);
        if is_misread(text) {
            marked.extend_from_slice(MARK);
        }
        marked.extend_from_slice(line.get(text.len()..).unwrap_or_default());
    }
    marked.extend_from_slice(rest);
    *request = marked;
}

fn is_misread(line: &[u8]) -> bool {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return false };
    let (name, value) = line.split_at(colon);
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)) && value.iter().any(is_odd)
}

/// Whether a byte is neither visible, nor blank, nor a line end.
fn is_odd(byte: &u8) -> bool {
    !matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &[u8]) -> Vec<u8> {
        let mut bytes = text.to_vec();
        mark_values(&mut bytes);
        bytes
    }

    #[test]
    fn length_or_key_with_stripped_bytes_is_marked() {
        for odd in [0x80, 0xa0, 0xff, 0x7f, 0x0b] {
            for name in ["Content-Length", "API-x-token", "X-Api-Key", "Authorization"] {
                let with = |value: &[u8]| {
                    [b"POST / HTTP/1.1\r\n", name.as_bytes(), b": ", value, b"\r\na: b"].concat()
                };
                for value in [[b'4', odd], [odd, b'4']] {
                    let whole = [with(&value), b"\r\n\r\n\xff".to_vec()].concat();
                    let mark = [with(&[&value[..], MARK].concat()), b"\r\n\r\n\xff".to_vec()];
                    assert_eq!(marked(&whole), mark.concat());
                }
                // In an incomplete head as well.
                assert_eq!(marked(&with(&[odd])), with(&[&[odd], MARK].concat()));
            }
        }
        assert_eq!(marked(b"content-length: 1\xff\n\n"), b"content-length: 1\xff ?\n\n");
    }

    #[test]
    fn other_headers_stay_unchanged() {
        for text in [
            &b"POST / HTTP/1.1\r\ncontent-length: \t 4 \t\r\n\r\n\xff\r\napi-x-token: \xff\r\n"[..],
            b"GET /\xff HTTP/1.1\r\nx: \xff\r\napi-x-token: k\r\n\r\n",
            b"x-api-x-token: \xff\r\n\r\n",
            b"\xff",
            b"",
        ] {
            assert_eq!(marked(text), text);
        }
    }
}
