use super::*;

fn parse(bytes: &[u8]) -> Result<Option<(usize, String)>, HeadError> {
    let mut headers = [httparse::EMPTY_HEADER; 3];
    let head = parse_upstream_head(bytes, &mut headers)?;
    Ok(head.map(|head| {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let mut all = format!("{} {}", text(head.method), text(head.path));
        for header in headers.iter().take(head.headers) {
            all += &format!("|{}={}", header.name, text(header.value));
        }
        (head.size, all)
    }))
}

#[test]
fn head_is_parsed_once_it_is_complete() {
    let text = "G(T /a?b HTTP/1.1\r\nHost:  x y\t \r\n: a\r\nb:\r\n\r\n";
    for size in 0..text.len() {
        assert_eq!(parse(&text.as_bytes()[..size]), Ok(None), "{size}");
    }
    let with_body = format!("{text}abc");
    let all = "G(T /a?b|Host=x y|=a|b=".to_string();
    assert_eq!(parse(with_body.as_bytes()), Ok(Some((text.len(), all))));
    // Bytes above ASCII, and a delete, belong to a value and to a path.
    let odd = b"GET /\xe9\x7f HTTP/1.1\r\na: \xa0b\x7f\r\n\r\n";
    assert_eq!(parse(odd), Ok(Some((odd.len(), "GET /\u{fffd}\x7f|a=\u{fffd}b\x7f".to_string()))));
}

#[test]
fn request_line_of_another_form_is_another_version() {
    for line in [
        "\x16\x03\x01hello",
        "GET / HTTP/1.0\r\n",
        "GET / HTTP/1.1\n",
        "GET / http/1.1\r\n",
        "GET /a b HTTP/1.1\r\n",
        "GET  / HTTP/1.1\r\n",
        "GET a HTTP/1.1\r\n",
        "GET\t/ HTTP/1.1\r\n",
        "GET /\0 HTTP/1.1\r\n",
        "CONNECT x:1 HTTP/1.1\r\n",
        "PRI * HTTP/2.0\r\n",
        "\r\nGET / HTTP/1.1\r\n",
    ] {
        assert_eq!(parse(line.as_bytes()), Err(HeadError::Version), "{line:?}");
    }
    assert_eq!(parse(b"G\xe9T / HTTP/1.1\r\n"), Err(HeadError::Version));
}

#[test]
fn malformed_header_line_is_refused() {
    for line in [
        "abc\r\n",
        "a : b\r\n",
        " a: b\r\n",
        "a: b\r\n c\r\n",
        "a/b: c\r\n",
        "a: b\nc: d\r\n",
        "a: b\rc\r\n",
        "a: \0\r\n",
        "a: \x01\r\n",
        "\n",
        "a: b\r\n\n",
        "a: b\r\n\rc",
    ] {
        let text = format!("GET / HTTP/1.1\r\n{line}\r\n");
        assert_eq!(parse(text.as_bytes()), Err(HeadError::Syntax), "{line:?}");
    }
    let text = b"GET / HTTP/1.1\r\n\xe9: b\r\n\r\n";
    assert_eq!(parse(text), Err(HeadError::Syntax));
}

#[test]
fn more_headers_than_there_is_room_for_are_too_large() {
    let with = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(count));
    assert!(matches!(parse(with(3).as_bytes()), Ok(Some(_))));
    assert_eq!(parse(with(4).as_bytes()), Err(HeadError::TooLarge));
}
