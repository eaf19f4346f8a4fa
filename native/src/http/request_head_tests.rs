use super::*;

const NAME: &str = "x-secret-name";

fn complete<'a>(bytes: &'a [u8]) -> CompleteHead<'a> {
    match read_request_head(bytes, NAME) {
        RequestHead::Complete(head) => head,
        other => panic!("{other:?} of {:?}", String::from_utf8_lossy(bytes)),
    }
}

/// A complete head whose request has a known end.
fn framed<'a>(bytes: &'a [u8]) -> CompleteHead<'a> {
    let head = complete(bytes);
    assert!(!head.is_ambiguous, "{:?}", String::from_utf8_lossy(bytes));
    head
}

fn submission(lines: &str) -> String {
    format!("POST {RAW_PATH} HTTP/1.1\r\nhost: a\r\n{lines}\r\n")
}

#[test]
fn submission_is_recognized_by_path_and_has_its_key() {
    let text = submission("Api-X-Token:  key \r\ncontent-length: 12\r\n");
    let head = framed(text.as_bytes());
    assert_eq!(head.size, text.len());
    assert_eq!(head.body_size, 12);
    assert_eq!(head.line_end, text.find('\n').unwrap() + 1);
    let token = Cow::Borrowed(&b"key"[..]);
    assert_eq!(head.ask, Ask::Submission(Submission { endpoint: Endpoint::Raw, token }));
    let text = text.replace(RAW_PATH, RPC_PATH);
    assert_eq!(framed(text.as_bytes()).submission().unwrap().endpoint, Endpoint::JsonRpc);
}

#[test]
fn submission_needs_no_key_and_may_have_any_connection_options() {
    for (lines, closes) in [
        ("connection: Keep-Alive\r\n", false),
        ("connection: close\r\n", true),
        ("connection: keep-alive, Close\r\n", true),
        ("connection: TE\r\nte: trailers\r\n", false),
        ("connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AA\r\n", false),
    ] {
        let text = submission(&format!("content-length: 0\r\n{lines}"));
        let head = framed(text.as_bytes());
        assert_eq!(
            (&*head.submission().unwrap().token, head.closes),
            (&b""[..], closes),
            "{lines}"
        );
    }
}

#[test]
fn submission_may_have_as_many_headers_as_the_upstream_server_takes() {
    let of = |more: usize| submission(&format!("content-length: 3\r\n{}", "a: b\r\n".repeat(more)));
    let most = of(HEADERS_MAX - 2);
    assert!(framed(most.as_bytes()).submission().is_some());
    let too_many = of(HEADERS_MAX - 1);
    assert_eq!(
        read_request_head(too_many.as_bytes(), NAME),
        RequestHead::Malformed(HeadError::TooLarge)
    );
}

#[test]
fn unusual_request_is_framed_but_not_a_submission() {
    let usual = submission("content-length: 3\r\n");
    for text in [
        usual.replace("POST", "PUT"),
        usual.replace("POST", "post"),
        usual.replace(RAW_PATH, &format!("{RAW_PATH}/")),
        usual.replace(RAW_PATH, "/fast/"),
        usual.replace(RAW_PATH, &format!("http://a{RAW_PATH}")),
        usual.replace("host: a\r\n", ""),
        usual.replace("host: a\r\n", "host: \r\n"),
        usual.replace("host: a\r\n", "host: a\r\nhost: b\r\n"),
        submission(""),
        submission("content-length: 3\r\ncontent-length: 3\r\n"),
    ] {
        assert_eq!(framed(text.as_bytes()).submission(), None, "{text}");
    }
}

#[test]
fn json_rpc_has_three_paths_and_a_query_changes_none() {
    for path in [RPC_PATH, "/", "/fast", "/?", "/fast?a=1&b", "/fast?x?y"] {
        let text = submission("content-length: 3\r\n").replace(RAW_PATH, path);
        let head = framed(text.as_bytes());
        assert_eq!(head.submission().unwrap().endpoint, Endpoint::JsonRpc, "{path}");
        assert_eq!((head.form, head.has_query_key), (ResponseForm::JsonRpc, false));
    }
}

#[test]
fn key_is_that_of_the_first_place_that_has_one() {
    let places = ["api-x-token: first", "X-Api-Key: second", "Authorization: Bearer third"];
    let key_of = |lines: &[&str], query: &str| {
        let text = submission(&format!("content-length: 3\r\n{}\r\n", lines.join("\r\n")));
        let text = text.replace("\r\n\r\n\r\n", "\r\n\r\n").replace(RAW_PATH, query);
        let head = framed(text.as_bytes());
        let token = &head.submission().unwrap().token;
        (String::from_utf8(token.to_vec()).unwrap(), head.has_query_key)
    };
    let query = "/?a=b&api-key=&api-key=fourth&api-key=z";
    for (index, key) in ["first", "second", "third", "fourth"].into_iter().enumerate() {
        let mut lines = places[index..].to_vec();
        assert_eq!(key_of(&lines, query), (key.into(), index == 3));
        lines.reverse();
        assert_eq!(key_of(&lines, query), (key.into(), index == 3));
        // An empty value is none.
        lines.extend(["api-x-token:", "x-api-key: ", "authorization:"].iter().take(index));
        assert_eq!(key_of(&lines, query), (key.into(), index == 3));
    }
    assert_eq!(key_of(&["api-x-token:", "api-x-token: a", "api-x-token: b"], "/").0, "a");
    // As `URLSearchParams` decodes a query.
    for (query, key) in [
        ("/?api-key=a%41%2b%3D", "aA+="),
        ("/?a=b&api-key=a+b&api-key=c", "a b"),
        ("/?api%2dkey=a", "a"),
        ("/?api-key=&api+key=a&api-ke%79=k", "k"),
        ("/?api-key=%zz%4", "%zz%4"),
        ("/?api-key=%C3%9F%ff", "\u{df}\u{fffd}"),
    ] {
        assert_eq!(key_of(&[], query), (key.into(), true), "{query}");
    }
    // What is encoded elsewhere does not matter.
    for query in ["/?a=b+c&api-key=k", "/?a=%41&api-key=k", "/?api-key=k&%41=b"] {
        assert_eq!(key_of(&[], query), ("k".into(), true), "{query}");
    }
    assert_eq!(key_of(&["api-x-token: h"], "/?api-key=%41"), ("h".into(), false));
    assert_eq!(key_of(&[], "/??api-key=k"), ("k".into(), true));
    assert_eq!(key_of(&[], "/???api-key=k"), (String::new(), false));
    for none in ["/?api-key", "/?API-KEY=k", "/?api_key=k", "/?&&=k", "/?xapi-key=k"] {
        assert_eq!(key_of(&[], none), (String::new(), false), "{none}");
    }
}

#[test]
fn key_of_a_bearer_has_no_blanks() {
    for value in ["Bearer k", "bearer   k", "BEARER k"] {
        assert_eq!(bearer_key(value.as_bytes()), b"k", "{value}");
    }
    for value in ["", "k", "Bearer", "Bearer ", "Bearerk", "Bearer\tk", "Bearer a b", "Basic k"] {
        assert_eq!(bearer_key(value.as_bytes()), b"", "{value}");
    }
    assert_eq!(bearer_key(b"Bearer k\xff"), b"");
}

#[test]
fn text_is_recognized_by_its_media_type() {
    for (value, endpoint) in [
        ("text/plain", Endpoint::Text),
        ("Text/PLAIN; charset=UTF-8", Endpoint::Text),
        ("text/plain \t;a", Endpoint::Text),
        ("text/plainer", Endpoint::Raw),
        ("text/plain, a/b", Endpoint::Raw),
        ("text/plai", Endpoint::Raw),
        ("application/octet-stream", Endpoint::Raw),
    ] {
        let text = submission(&format!("content-length: 3\r\ncontent-type: {value}\r\n"));
        assert_eq!(framed(text.as_bytes()).submission().unwrap().endpoint, endpoint, "{value}");
        let text = text.replace(RAW_PATH, "/");
        assert_eq!(framed(text.as_bytes()).submission().unwrap().endpoint, Endpoint::JsonRpc);
    }
}

#[test]
fn conflicting_framing_headers_are_ambiguous() {
    let usual = submission("content-length: 3\r\n");
    let conflicts = [
        "content-length: \r\n",
        "content-length: +3\r\n",
        "content-length: 3, 3\r\n",
        "content-length: 0x3\r\n",
        "content-length: 1234567890\r\n",
        "content-length: 3\r\ncontent-length: 4\r\n",
        "content-length: 3\r\nContent-Length: 03\r\n",
        "transfer-encoding: chunked\r\n",
        "Transfer-Encoding: \r\n",
        "content-length: 3\r\ntransfer-encoding: identity\r\n",
        "X-Secret-Name: 1.2.3.4\r\n",
    ];
    let conflicts = conflicts.iter().map(|lines| submission(lines));
    for text in conflicts.chain([usual.replace("POST", "CONNECT")]) {
        let with_body = format!("{text}abc");
        let head = complete(with_body.as_bytes());
        assert!(head.is_ambiguous && head.closes, "{text:?}");
        assert_eq!((head.size, head.body_size), (text.len(), 0));
        assert_eq!((head.line_end, head.form), (text.find('\n').unwrap() + 1, ResponseForm::Raw));
        assert_eq!(head.ask, Ask::Other);
    }
    let head = complete(b"HEAD /x HTTP/1.1\r\ntransfer-encoding: x\r\n\r\n");
    assert_eq!((head.form, head.is_head_only), (ResponseForm::HeadOnly, true));
}

#[test]
fn head_that_the_upstream_server_would_refuse_is_malformed() {
    let usual = submission("content-length: 3\r\n");
    for (text, error) in [
        (usual.replace("HTTP/1.1", "HTTP/1.0"), HeadError::Version),
        (usual.replace("\r\n", "\n"), HeadError::Version),
        ("\u{16}\u{3}\u{1}".to_string(), HeadError::Version),
        ("GET / HTTP/2.0\r\n\r\n".to_string(), HeadError::Version),
        (usual.replace("\r\n\r\n", "\r\n\n"), HeadError::Syntax),
        (submission("a: b\ncontent-length: 3\r\n"), HeadError::Syntax),
        (submission("a : b\r\n"), HeadError::Syntax),
        (submission("a: b\r\n c\r\n"), HeadError::Syntax),
        (submission("a: b\rc\r\n"), HeadError::Syntax),
        (submission("content-length\r\n"), HeadError::Syntax),
        (submission("a: \0\r\n"), HeadError::Syntax),
        // With `Host` these are 99.
        (submission(&"a: b\r\n".repeat(98)), HeadError::TooLarge),
    ] {
        let head = read_request_head(text.as_bytes(), NAME);
        assert_eq!(head, RequestHead::Malformed(error), "{text:?}");
    }
    let most = submission(&"a: b\r\n".repeat(97));
    assert_eq!(
        (framed(most.as_bytes()).body_size, complete(most.as_bytes()).is_crowded),
        (0, true)
    );
    let fewer = submission(&"a: b\r\n".repeat(96));
    assert!(!framed(fewer.as_bytes()).is_crowded);
}

#[test]
fn head_that_only_the_upstream_server_parses_has_a_known_end() {
    let usual = submission("content-length: 3\r\n");
    for text in [
        usual.replace("POST", "P(ST"),
        usual.replace("host: a", "host: a\r\n: b"),
        usual.replace("host: a", "host: a\r\nb: \x7f"),
        usual.replace("content-length: 3", "content-length: 3\r\na: \x7f"),
    ] {
        let head = framed(text.as_bytes());
        assert_eq!((head.size, head.body_size, head.ask), (text.len(), 3, Ask::Other), "{text:?}");
        for size in 0..text.len() {
            assert_eq!(read_request_head(&text.as_bytes()[..size], NAME), RequestHead::Partial);
        }
    }
    let text = "CONNECT /ping HTTP/1.1\r\nhost: a\r\n\r\n";
    assert_eq!(framed(text.as_bytes()).body_size, 0);
    let odd = "GET / HTTP/1.1\r\na: \x7f\r\ntransfer-encoding: x\r\n\r\n";
    assert!(complete(odd.as_bytes()).is_ambiguous);
}

#[test]
fn head_is_partial_until_complete_or_too_large() {
    let text = submission("content-length: 3\r\n");
    for size in 0..text.len() {
        assert_eq!(read_request_head(&text.as_bytes()[..size], NAME), RequestHead::Partial);
    }
    let fill = |size: usize| {
        let text = submission("a: ");
        let (start, end) = text.split_at(text.len() - 2);
        format!("{start}{}\r\n{end}", "x".repeat(size - text.len() - 2))
    };
    let is_crowded = |size: usize| {
        let text = fill(size);
        let head = framed(text.as_bytes());
        assert_eq!(head.size, size);
        head.is_crowded
    };
    assert!(!is_crowded(PROXIED_BYTES_MAX));
    assert!(is_crowded(PROXIED_BYTES_MAX + 1));
    assert!(is_crowded(HEAD_BYTES_MAX));
    let too_large = RequestHead::Malformed(HeadError::TooLarge);
    assert_eq!(read_request_head(fill(HEAD_BYTES_MAX + 1).as_bytes(), NAME), too_large);
    // There is no room in a long path.
    let long = |size: usize| format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", "x".repeat(size));
    let rest = long(0).len();
    assert!(!framed(long(PROXIED_BYTES_MAX - rest).as_bytes()).is_crowded);
    assert_eq!(read_request_head(long(PROXIED_BYTES_MAX + 1 - rest).as_bytes(), NAME), too_large);
    let larger = fill(HEAD_BYTES_MAX + 2);
    let part = &larger.as_bytes()[..=HEAD_BYTES_MAX];
    assert_eq!(read_request_head(&part[..HEAD_BYTES_MAX], NAME), RequestHead::Partial);
    assert_eq!(read_request_head(part, NAME), too_large);
}

#[test]
fn head_reports_what_response_framing_needs() {
    assert!(framed(b"HEAD / HTTP/1.1\r\n\r\n").is_head_only);
    assert!(!framed(b"GET / HTTP/1.1\r\n\r\n").is_head_only);
    assert!(framed(b"GET / HTTP/1.1\r\nconnection: a, Close\r\n\r\n").closes);
    assert!(!framed(b"GET / HTTP/1.1\r\nconnection: closed\r\n\r\n").closes);
    assert!(framed(b"GET / HTTP/1.1\r\nexpect: 100-continue\r\n\r\n").expects);
    assert!(!framed(b"GET / HTTP/1.1\r\nupgrade: x\r\n\r\n").expects);
}

#[test]
fn health_checks_are_recognized_by_method_and_path() {
    let get = "GET /ping HTTP/1.1\r\nhost: a\r\n\r\n";
    let post = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\n";
    for (text, ask) in [
        (get.to_string(), Ask::Ping),
        (get.replace("GET", "HEAD"), Ask::Ping),
        (get.replace("host", "api-x-token: x\r\nhost"), Ask::Ping),
        (get.replace("GET", "OPTIONS"), Ask::Other),
        (get.replace("/ping", "/ping?"), Ask::Other),
        (get.replace("host: a", "x: a"), Ask::Other),
        (get.replace("host", "connection: close\r\nhost"), Ask::Ping),
        (get.replace("host", "content-length: 3\r\nhost"), Ask::Other),
        (post.replace("POST", "PUT"), Ask::Other),
        (post.replace("/ ", "/x "), Ask::Other),
        (post.replace("content-length: 3\r\n", ""), Ask::Other),
    ] {
        assert_eq!(framed(text.as_bytes()).ask, ask, "{text}");
    }
}
