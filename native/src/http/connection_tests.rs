use std::io::Write;
use std::net::Shutdown;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::*;
use crate::http::dispatch::REQUEST_BYTES_MAX;
use crate::http::test_server::{Backend, House, Visitor, get, post};

#[test]
fn a_submission_is_answered_here_and_all_else_behind() {
    let backend = Backend::polite();
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    visitor.say(&post("known", "hello"));
    assert_eq!(visitor.hear(), "hello");
    visitor.say(&post("known", "hello").replace("Raw", ""));
    assert_eq!(visitor.hear(), "hello");
    assert_eq!((house.taken(), house.relayed()), (2, vec![]));
    visitor.say(&get("/pages"));
    assert_eq!(visitor.hear(), "GET /pages HTTP/1.1 +0");
    visitor.say(&post("known", "relay this"));
    assert_eq!(visitor.hear(), "POST /api/v1/sendRawTransaction HTTP/1.1 +10");
    assert_eq!((house.taken(), house.relayed()), (1, vec![Why::Other]));
    let first = backend.next();
    assert_eq!(
        first.head,
        "GET /pages HTTP/1.1\r\nx-secret-name: 127.0.0.1 3 0 0\r\nHost: a\r\n\r\n"
    );
    let second = backend.next();
    assert!(second.head.contains("HTTP/1.1\r\nx-secret-name: 127.0.0.1 3 1 7\r\nHost: a\r\n"));
    assert_eq!(second.body, b"relay this");
    // Over the same connection.
    assert_eq!((first.connection, second.connection), (0, 0));
}

#[test]
fn answers_come_in_the_order_of_the_requests() {
    let backend = Backend::polite();
    let (_house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    let mut text = String::new();
    let mut answers = Vec::new();
    for number in 0..50 {
        if number % 3 == 0 {
            text += &get(&format!("/{number}"));
            answers.push(format!("GET /{number} HTTP/1.1 +0"));
        } else if number % 3 == 1 {
            text += &post("known", &format!("body {number}"));
            answers.push(format!("body {number}"));
        } else {
            let body = format!("relay {number}");
            text += &post("", &body);
            answers.push(format!("POST /api/v1/sendRawTransaction HTTP/1.1 +{}", body.len()));
        }
    }
    visitor.say(&text);
    for answer in answers {
        assert_eq!(visitor.hear(), answer);
    }
}

#[test]
fn more_requests_than_a_turn_has_are_all_answered() {
    let backend = Backend::polite();
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    let count = 5 * REQUESTS_A_TURN + 1;
    visitor.say(&(0..count).map(|number| post("", &number.to_string())).collect::<String>());
    for number in 0..count {
        assert_eq!(visitor.hear(), number.to_string());
    }
    assert_eq!(house.taken(), count);
}

#[test]
fn a_request_may_come_in_two_pieces_cut_anywhere() {
    let backend = Backend::polite();
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    for (text, answer) in [
        (post("known", "hello"), "hello"),
        (post("known", "relay"), "POST /api/v1/sendRawTransaction HTTP/1.1 +5"),
        (post("unknown", "relay"), "POST /api/v1/sendRawTransaction HTTP/1.1 +5"),
        (get("/a"), "GET /a HTTP/1.1 +0"),
        (post("", "hello").replace("POST", "PUT"), "PUT /api/v1/sendRawTransaction HTTP/1.1 +5"),
    ] {
        for at in 1..text.len() {
            let (begin, end) = text.split_at(at);
            visitor.say(begin);
            house.settle();
            visitor.say(end);
            assert_eq!(visitor.hear(), answer, "{text:?} at {at}");
        }
    }
}

#[test]
fn the_largest_request_is_answered_here_and_a_larger_one_behind() {
    let backend = Backend::polite();
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    let size = REQUEST_BYTES_MAX - post("known", "").len() - "16000".len() + 1;
    let most = post("known", &"x".repeat(size));
    assert_eq!(most.len(), REQUEST_BYTES_MAX);
    visitor.say(&most);
    assert_eq!(visitor.hear().len(), size);
    assert_eq!(house.relayed(), vec![]);
    visitor.say(&post("known", &"x".repeat(size + 1)));
    assert!(visitor.hear().ends_with(&format!("+{}", size + 1)));
    assert_eq!(house.relayed(), vec![Why::Large]);
    // And the connection is as good as before.
    visitor.say(&post("known", "hello"));
    assert_eq!(visitor.hear(), "hello");
}

#[test]
fn a_client_that_reads_no_answers_is_answered_no_further() {
    let backend = Backend::polite();
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    let body = "x".repeat(15_000);
    let text = post("known", &body);
    visitor.stream.set_nonblocking(true).unwrap();
    let (mut sent, mut idle) = (0, 0);
    // Until neither side takes any more.
    while idle < 20 {
        let part = &text.as_bytes()[sent % text.len()..];
        match visitor.stream.write(part) {
            Ok(count) => (sent, idle) = (sent + count, 0),
            Err(_) => idle += 1,
        }
        house.settle();
    }
    let taken = house.taken();
    assert!(taken < sent / text.len() + 1);
    visitor.stream.set_nonblocking(false).unwrap();
    let whole = sent / text.len();
    for _ in 0..whole {
        assert_eq!(visitor.hear(), body);
    }
    // The rest was taken once there was room for its answers.
    assert!(taken < whole);
    assert_eq!(taken + house.taken(), whole);
}

#[test]
fn a_client_that_says_no_more_is_answered_what_came_and_then_closed() {
    let backend = Backend::polite();
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    visitor.say(&post("", "hello"));
    visitor.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(visitor.hear(), "hello");
    assert_eq!(visitor.hear_all(), b"");
    assert_eq!(house.open_count(), 0);
}

#[test]
fn who_waits_for_nothing_is_closed_after_a_while() {
    let backend = Backend::polite();
    let (house, address) = House::alone(backend.address);
    let mut idle = Visitor::to(address);
    let mut partial = Visitor::to(address);
    partial.say("POST /");
    let mut bodiless = Visitor::to(address);
    bodiless.say(post("known", "hello").strip_suffix('o').unwrap());
    house.pass(8);
    assert_eq!(house.open_count(), 3);
    let mut awake = Visitor::to(address);
    house.pass(2);
    awake.say(&post("", "hello"));
    awake.hear();
    house.pass(2);
    assert_eq!(house.open_count(), 1);
    for visitor in [&mut idle, &mut partial, &mut bodiless] {
        assert_eq!(visitor.hear_all(), b"");
    }
    house.pass(8);
    assert_eq!(house.open_count(), 1);
    house.pass(4);
    assert_eq!(house.open_count(), 0);
}

#[test]
fn who_takes_in_nothing_is_closed_after_a_while() {
    let backend = Backend::polite();
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    let text = post("known", &"x".repeat(15_000));
    visitor.stream.set_nonblocking(true).unwrap();
    let mut idle = 0;
    while idle < 20 {
        idle = if visitor.stream.write(text.as_bytes()).is_ok() { 0 } else { idle + 1 };
        house.settle();
    }
    house.pass(9);
    assert_eq!(house.open_count(), 1);
    house.pass(3);
    assert_eq!(house.open_count(), 0);
    visitor.stream.set_nonblocking(false).unwrap();
    visitor.hear_all();
}

#[test]
fn what_is_in_doubt_goes_both_ways_verbatim() {
    let usual = post("known", "hello");
    let line = "x-secret-name: 127.0.0.1 3 0 0\r\n";
    let parsed = [
        usual.replace("HTTP/1.1", "HTTP/1.0"),
        usual.replace("Content-Length", "transfer-encoding: chunked\r\nContent-Length"),
        usual.replace("Host", "Content-Length: 6\r\nHost"),
        usual.replace("Host", "X-Secret-Name: 1.2.3.4 0 1 0\r\nHost"),
        usual.replace("\r\nHost", "\r\nx: y\nHost"),
    ];
    let broken = [
        "\u{16}\u{3}\u{1}\0\0".to_string(),
        format!("GET / HTTP/3.7\r\n\r\n{usual}"),
        // With one line more it would be more than the server behind reads.
        usual.replace("Host", &format!("x: {}\r\nHost", "y".repeat(3850))),
        usual.replace("Host", &format!("x: {}\r\nHost", "y".repeat(5000))),
    ];
    let parsed = parsed.into_iter().map(|text| (text, true));
    for (text, is_parsed) in parsed.chain(broken.into_iter().map(|text| (text, false))) {
        let backend = Backend::start(|mut served| {
            let mut bytes = vec![0; 64 * 1024];
            let mut all = String::new();
            while !all.ends_with("END") {
                let count = served.read(&mut bytes).unwrap();
                all += std::str::from_utf8(&bytes[..count]).unwrap();
            }
            served.tell_raw(&all);
            served.say("anything at all");
            // What is said now goes on and on, until either side has had enough.
            let count = served.read(&mut bytes).unwrap();
            served.tell_raw(std::str::from_utf8(&bytes[..count]).unwrap());
            served.say("more");
        });
        let (house, address) = House::alone(backend.address);
        let mut visitor = Visitor::to(address);
        let later = post("known", "later");
        visitor.say(&format!("{later}{text}{later}"));
        assert_eq!(visitor.hear(), "later");
        house.settle();
        visitor.say("END");
        assert_eq!(visitor.read_exact(15), b"anything at all");
        visitor.say(&later);
        assert_eq!(visitor.hear_all(), b"more");
        let mut told = format!("{text}{later}END");
        if is_parsed {
            told.insert_str(told.find('\n').unwrap() + 1, line);
        }
        assert_eq!(backend.next().head, told);
        assert_eq!(backend.next().head, later);
        assert_eq!((house.relayed(), house.taken()), (vec![Why::Unsound], 1), "{text:?}");
    }
}

#[test]
fn a_body_cannot_bring_a_request_of_its_own() {
    let backend = Backend::polite();
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    let inner = get("/inner").replace("Host", "x-secret-name: 9.9.9.9 0 1 0\r\nHost");
    visitor.say(&post("", &inner).replace("POST", "PUT"));
    assert!(visitor.hear().ends_with(&format!("+{}", inner.len())));
    assert_eq!(backend.next().body, inner.as_bytes());
    assert_eq!(house.relayed(), vec![Why::Other]);
    assert_eq!(backend.connections.load(Ordering::SeqCst), 1);
    assert!(backend.seen.recv_timeout(Duration::ZERO).is_err());
}

#[test]
fn who_says_nothing_more_has_the_answer_to_what_he_said() {
    let backend = Backend::polite();
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    visitor.say(&format!("{}{}", get("/a"), post("", "hello")));
    visitor.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(visitor.hear(), "GET /a HTTP/1.1 +0");
    assert_eq!(visitor.hear(), "hello");
    assert_eq!((visitor.hear_all(), house.open_count()), (Vec::new(), 0));
    // Of half a request there is no answer.
    let mut visitor = Visitor::to(address);
    visitor.say(&post("", "hello").replace("POST", "PUT")[..80]);
    visitor.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!((visitor.hear_all(), house.open_count()), (Vec::new(), 0));
}
