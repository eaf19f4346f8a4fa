use super::*;

/// Parses it in pieces of every size: the result must always be the same.
fn sizes(text: &str, is_head_only: bool) -> (usize, bool, bool) {
    let mut found = None;
    for piece in 1..=text.len() {
        let mut response = ResponseFraming::new(is_head_only);
        let mut size = 0;
        for part in text.as_bytes().chunks(piece) {
            let taken = response.take(part).unwrap();
            size += taken;
            if taken < part.len() {
                assert!(response.is_complete());
                break;
            }
        }
        let now = (size, response.is_complete(), response.closes());
        assert_eq!(*found.get_or_insert(now), now, "in pieces of {piece}: {text:?}");
    }
    found.unwrap()
}

const NEXT: &str = "HTTP/1.1 200 OK\r\n\r\n";

#[test]
fn response_ends_where_its_head_declares() {
    for (text, is_head_only) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", true),
        ("HTTP/1.1 204 No Content\r\n\r\n", false),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n\
             1A;name=5\r\nabcdefghijklmnopqrstuvwxyz\r\n003\r\n\r\n\n\r\n0\r\na: b\r\nc: d\r\n\r\n",
            false,
        ),
    ] {
        let more = format!("{text}{NEXT}");
        assert_eq!(sizes(&more, is_head_only), (text.len(), true, false), "{text:?}");
    }
}

#[test]
fn response_may_close_the_connection() {
    let text = "HTTP/1.1 400 Bad Request\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nno";
    assert_eq!(sizes(text, false), (text.len(), true, true));
    let text = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nno";
    assert_eq!(sizes(text, false), (text.len(), true, true));
    // The end of the connection is its end.
    for text in ["HTTP/1.1 400 No\r\n\r\n<h1>no", "HTTP/1.1 101 Switching\r\n\r\nwhatever"] {
        assert_eq!(sizes(text, false), (text.len(), false, true));
    }
}

#[test]
fn malformed_response_is_an_error() {
    for text in [
        "GET / HTTP/1.1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11112222333344445\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
    ] {
        assert_eq!(
            ResponseFraming::new(false).take(text.as_bytes()),
            Err(MalformedResponse),
            "{text:?}"
        );
    }
    let endless = format!("HTTP/1.1 200 OK\r\na: {}", "x".repeat(RESPONSE_HEAD_BYTES_MAX));
    assert_eq!(ResponseFraming::new(false).take(endless.as_bytes()), Err(MalformedResponse));
}
