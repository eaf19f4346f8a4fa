//! Makes room for the forwarded header in a head that is about as large as the upstream server
//! reads, by leaving out the headers that nothing there reads.

/// Headers that the upstream server reads: the HTTP library itself, and `src/http`
/// (`test/native/shared-constants.test.ts` compares them).
const READ_HEADERS: [&[u8]; 11] = [
    b"host",
    b"connection",
    b"upgrade",
    b"expect",
    b"content-length",
    b"transfer-encoding",
    b"content-type",
    b"api-x-token",
    b"x-api-key",
    b"authorization",
    b"last-event-id",
];

/// A copy of a head whose lines all end in CRLF, without the headers that are not read; `Expect` is
/// not once it is met.
pub(super) fn without_unread_headers(head: &[u8], is_met: bool) -> Vec<u8> {
    let mut kept = Vec::with_capacity(head.len());
    for (at, line) in head.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        let is_left_out = is_met && name.eq_ignore_ascii_case(b"expect");
        let is_read =
            || !is_left_out && READ_HEADERS.iter().any(|known| name.eq_ignore_ascii_case(known));
        if at == 0 || line == b"\r\n" || is_read() {
            kept.extend_from_slice(line);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_line_and_read_headers_stay() {
        let all = "GET /a:b HTTP/1.1\r\nx: y\r\nHOST: a\r\n: b\r\nhosts: c\r\nExpect: 100-continue\r\n\
             Api-X-Token: k\r\nlast-event-id: 1\r\n\r\n";
        let kept = "GET /a:b HTTP/1.1\r\nHOST: a\r\nExpect: 100-continue\r\n\
             Api-X-Token: k\r\nlast-event-id: 1\r\n\r\n";
        assert_eq!(without_unread_headers(all.as_bytes(), false), kept.as_bytes());
        let kept = kept.replace("Expect: 100-continue\r\n", "");
        assert_eq!(without_unread_headers(all.as_bytes(), true), kept.as_bytes());
    }
}
