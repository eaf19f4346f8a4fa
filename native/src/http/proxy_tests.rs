use std::io::{ErrorKind, Write};
use std::net::{Shutdown, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use crate::http::handler::Why;
use crate::http::test_server::{Backend, GUARD, House, Served, Visitor, get, post};

/// Answers the first request with these bytes, one at a time, and is polite from then on.
fn answering(text: &'static str) -> Backend {
    Backend::start(move |mut served| {
        let Some(seen) = served.request() else { return };
        served.tell(seen);
        served.stream.set_nodelay(true).unwrap();
        for at in 0..text.len() {
            served.say(&text[at..=at]);
        }
        served.be_polite();
    })
}

const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn answers_of_every_form_pass_and_the_connection_stays() {
    for (method, text) in [
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"),
        ("GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
             1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\na: b\r\n\r\n",
        ),
    ] {
        let backend = answering(text);
        let (_house, address) = House::alone(backend.address);
        let mut visitor = Visitor::to(address);
        visitor.say(&format!("{}{}", get("/a").replace("GET", method), get("/b")));
        assert_eq!(String::from_utf8(visitor.read_exact(text.len())).unwrap(), text);
        assert_eq!(visitor.hear(), "GET /b HTTP/1.1 +0");
        assert_eq!((backend.next().connection, backend.next().connection), (0, 0));
    }
}

#[test]
fn an_answer_that_ends_the_connection_ends_the_clients() {
    for text in [
        "HTTP/1.1 413 No\r\nconnection: close\r\nContent-Length: 2\r\n\r\nno",
        "HTTP/1.1 400 No\r\n\r\nwhatever",
        "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf of it",
        "HTTP/1.1 200 OK\r\nTransfer-Enc",
    ] {
        let backend = Backend::start(move |mut served| {
            served.request();
            served.say(text);
        });
        let (house, address) = House::alone(backend.address);
        let mut visitor = Visitor::to(address);
        visitor.say(&format!("{}{}", get("/a"), post("", "hello")));
        assert_eq!(String::from_utf8(visitor.hear_all()).unwrap(), text);
        assert_eq!((house.taken(), house.open_count()), (0, 0));
    }
}

#[test]
fn what_comes_behind_an_answer_ends_the_connection() {
    let backend = Backend::start(|mut served| {
        served.request();
        served.say(&format!("{GOOD}{GOOD}"));
        served.be_polite();
    });
    let (_house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    visitor.say(&get("/a"));
    assert_eq!(visitor.hear_all(), GOOD.as_bytes());
}

#[test]
fn a_request_that_ends_the_connection_does() {
    let backend = Backend::polite();
    let (_house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    let request = post("", "hello").replace("Host", "connection: close\r\nHost");
    visitor.say(&format!("{request}{request}"));
    visitor.hear();
    assert_eq!(visitor.hear_all(), b"");
}

#[test]
fn a_client_that_the_server_behind_does_not_answer_is_told_so_and_closed() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (house, front) = House::alone(address);
    let mut visitor = Visitor::to(front);
    visitor.say(&post("", "hello"));
    assert_eq!(visitor.hear(), "hello");
    visitor.say(&get("/"));
    assert!(visitor.hear().contains(r#""reason":"overloaded""#));
    assert_eq!((visitor.hear_all(), house.open_count()), (Vec::new(), 0));
    let silent = Backend::start(|mut served| drop(served.request()));
    let (house, front) = House::alone(silent.address);
    let mut visitor = Visitor::to(front);
    visitor.say(&format!("{}{}", get("/a"), post("", "hello")));
    assert!(visitor.hear().contains(r#""reason":"overloaded""#));
    assert_eq!((visitor.hear_all(), house.taken()), (Vec::new(), 0));
    assert_eq!(house.book.lock().unwrap().turned_away, 1);
}

#[test]
fn a_kept_connection_is_closed_when_it_is_not_used_and_opened_again() {
    let backend = Backend::polite();
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    visitor.say(&get("/a"));
    visitor.hear();
    assert_eq!(backend.next().connection, 0);
    house.pass(4);
    visitor.say(&get("/b"));
    visitor.hear();
    assert_eq!(backend.next().connection, 0);
    house.pass(6);
    assert_eq!(backend.next().head, "left");
    assert_eq!(house.open_count(), 1);
    visitor.say(&get("/c"));
    visitor.hear();
    assert_eq!(backend.next().connection, 1);
}

#[test]
fn a_kept_connection_that_the_server_closes_is_opened_again() {
    let backend = Backend::start(|mut served| {
        let seen = served.request().unwrap();
        served.say(GOOD);
        served.stream.shutdown(Shutdown::Both).unwrap();
        served.tell(seen);
    });
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    for number in 0..3 {
        visitor.say(&get("/"));
        assert_eq!(visitor.hear(), "ok");
        assert_eq!(backend.next().connection, number);
        house.settle();
    }
}

#[test]
fn a_client_that_leaves_is_told_behind() {
    for leave in [
        |visitor: Visitor| visitor.stream.shutdown(Shutdown::Write).map(|()| Some(visitor)),
        |visitor: Visitor| {
            // Unread bytes reset it.
            drop(visitor);
            Ok(None)
        },
    ] {
        let backend = Backend::start(|mut served| {
            while let Some(seen) = served.request() {
                served.tell(seen);
            }
            served.tell_raw("left");
        });
        let (house, address) = House::alone(backend.address);
        let mut visitor = Visitor::to(address);
        // What it has said more is not read, and does not hide that it leaves.
        visitor.say(&format!("{}{}", get("/"), post("", "hello")));
        backend.next();
        let _left = leave(visitor).unwrap();
        house.settle();
        // It may only have said all that it has to say.
        assert_eq!(house.open_count(), 1);
        house.pass(3);
        assert_eq!(backend.next().head, "left");
        assert_eq!((house.open_count(), house.taken()), (0, 0));
    }
}

#[test]
fn a_client_that_leaves_a_stream_is_told_behind_at_once() {
    let backend = Backend::start(|mut served| {
        served.request();
        served.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
        served.request();
        served.tell_raw("left");
    });
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    visitor.say(&get("/"));
    house.settle();
    visitor.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(backend.next().head, "left");
    assert_eq!(house.open_count(), 0);
}

#[test]
fn a_large_body_passes_in_pieces() {
    let backend = Backend::polite();
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    let body: String = (0..3_000_000).map(|at| char::from(b'a' + (at % 23) as u8)).collect();
    visitor.say(&post("known", &body));
    visitor.say(&post("known", "hello"));
    assert!(visitor.hear().ends_with("+3000000"));
    assert_eq!(visitor.hear(), "hello");
    assert!(backend.next().body == body.as_bytes());
    assert_eq!(house.relayed(), vec![Why::Large]);
}

#[test]
fn an_answer_before_the_whole_body_ends_the_connection_only_where_it_says_so() {
    let backend = Backend::start(|mut served| {
        let mut head = [0; 20];
        served.read(&mut head).unwrap();
        served.say(GOOD);
        // The begin of it is lost, which does no harm.
        let seen = served.request().unwrap();
        served.tell(seen);
        served.be_polite();
    });
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    let text = post("", &"x".repeat(1_000_000));
    visitor.say(&text[..100]);
    assert_eq!(visitor.hear(), "ok");
    visitor.say(&text[100..]);
    visitor.say(&get("/b"));
    assert!(backend.next().head.contains("Content-Length: 1000000"));
    assert_eq!(visitor.hear(), "GET /b HTTP/1.1 +0");
    assert_eq!(house.relayed(), vec![Why::Large, Why::Other]);
    drop(house);

    let refused = "HTTP/1.1 413 No\r\nconnection: close\r\nContent-Length: 2\r\n\r\nno";
    let backend = Backend::start(move |mut served| {
        let mut head = [0; 20];
        served.read(&mut head).unwrap();
        served.say(refused);
    });
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    visitor.say(&text[..100]);
    assert_eq!(visitor.hear_all(), refused.as_bytes());
    assert_eq!(house.book.lock().unwrap().left, 0);
}

#[test]
fn a_client_whose_body_stalls_is_closed_and_one_that_awaits_its_answer_is_not() {
    let backend = Backend::start(|mut served| {
        let Some(seen) = served.request() else { return served.tell_raw("left") };
        served.tell(seen);
        // Until it is let go.
        let _ = served.read(&mut [0]);
    });
    let (house, address) = House::alone(backend.address);
    let mut waiting = Visitor::to(address);
    waiting.say(&get("/"));
    backend.next();
    let mut stalled = Visitor::to(address);
    let text = post("", &"x".repeat(20_000));
    stalled.say(&text[..text.len() - 1]);
    house.pass(9);
    assert_eq!(house.open_count(), 2);
    house.pass(3);
    assert_eq!(house.open_count(), 1);
    assert_eq!(backend.next().head, "left");
    house.pass(60);
    assert_eq!(house.open_count(), 1);
}

#[test]
fn a_client_lives_on_after_an_answer_that_took_long() {
    let (go, gone) = channel::<()>();
    let gone = Mutex::new(gone);
    let backend = Backend::start(move |mut served| {
        let seen = served.request().unwrap();
        served.tell(seen);
        gone.lock().unwrap().recv_timeout(GUARD).unwrap();
        served.say(GOOD);
        served.be_polite();
    });
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    visitor.say(&get("/"));
    backend.next();
    house.pass(60);
    go.send(()).unwrap();
    assert_eq!(visitor.hear(), "ok");
    house.pass(9);
    assert_eq!(house.open_count(), 1);
}

/// Writes without end until told to stop by the client's leaving; how much was written.
fn pouring(written: Arc<AtomicUsize>) -> Backend {
    Backend::start(move |mut served: Served| {
        served.request();
        served.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        let chunk = format!("1000\r\n{}\r\n", "x".repeat(4096));
        while served.stream.write_all(chunk.as_bytes()).is_ok() {
            written.fetch_add(1, Ordering::SeqCst);
        }
        served.tell_raw("left");
    })
}

#[test]
fn a_client_that_takes_in_nothing_stalls_the_server_and_is_closed_after_a_while() {
    let written = Arc::new(AtomicUsize::new(0));
    let backend = pouring(written.clone());
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    visitor.say(&get("/"));
    let (mut last, mut still) = (0, 0);
    while still < 2_000 {
        house.settle();
        let now = written.load(Ordering::SeqCst);
        still = if now == last { still + 1 } else { 0 };
        last = now;
        // Nobody takes in so much at once.
        assert!(last < 16 * 1024, "{last} chunks");
    }
    house.pass(9);
    assert_eq!(house.open_count(), 1);
    house.pass(3);
    assert_eq!(house.open_count(), 0);
    assert_eq!(backend.next().head, "left");
}

#[test]
fn a_client_that_takes_in_something_now_and_then_gets_all_of_it() {
    let size = 8 << 20;
    let backend = Backend::start(move |mut served| {
        if served.number > 0 {
            return served.be_polite();
        }
        served.request();
        served.say(&format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n"));
        let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        let _ = served.stream.write_all(&bytes);
        served.be_polite();
    });
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    visitor.say(&get("/"));
    visitor.read_exact(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n").len());
    let mut all = Vec::new();
    while all.len() < size {
        all.extend(visitor.read_exact((1 << 20).min(size - all.len())));
        house.pass(1);
    }
    assert!(all.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8));
    visitor.say(&get("/b"));
    assert_eq!(visitor.hear(), "GET /b HTTP/1.1 +0");
}

#[test]
fn a_server_that_takes_in_nothing_stalls_the_client() {
    let backend = Backend::start(|mut served| {
        let mut begin = [0; 10];
        served.read(&mut begin).unwrap();
        served.tell_raw("come");
        // Until the client is gone: what is said to it then fails.
        served.stream.set_read_timeout(Some(GUARD)).unwrap();
        std::thread::park_timeout(GUARD);
    });
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    visitor.say(post("", "").replace("Length: 0", "Length: 99000000").as_str());
    backend.next();
    visitor.stream.set_nonblocking(true).unwrap();
    let (mut sent, mut still) = (0, 0);
    let bytes = vec![b'x'; 16 * 1024];
    while still < 200 {
        match visitor.stream.write(&bytes) {
            Ok(count) => (sent, still) = (sent + count, 0),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                still += 1;
                house.settle();
            }
        }
        assert!(sent < 64 << 20);
    }
    // It is not the client that keeps anybody waiting.
    house.pass(30);
    assert_eq!(house.open_count(), 1);
}
