use std::sync::atomic::Ordering;

use super::*;
use crate::http::mailbox::Command;
use crate::http::test_server::{Backend, House, Visitor, get, post};

#[test]
fn a_request_is_relayed_once_all_of_it_has_come() {
    let backend = Backend::polite();
    let (house, address) = House::alone(backend.address);
    let mut visitors = Vec::new();
    for text in [
        post("known", "relay"),
        post("other", "relay"),
        post("known", "relay").replace("POST", "PUT"),
        post("known", "relay").replace("/api/v1/sendRawTransaction", "/"),
    ] {
        let before = backend.connections.load(Ordering::SeqCst);
        let mut visitor = Visitor::to(address);
        let (begin, end) = text.split_at(text.len() - 2);
        visitor.say(begin);
        house.settle();
        assert_eq!(backend.connections.load(Ordering::SeqCst), before);
        visitor.say(end);
        assert!(visitor.hear().ends_with(" +5"));
        assert_eq!(backend.next().body, b"relay");
        // None has left when the next one comes.
        visitors.push(visitor);
    }
}

#[test]
fn a_body_that_is_held_back_is_asked_for_by_the_server_behind() {
    let backend = Backend::start(|mut served| {
        let mut bytes = [0; 1024];
        let count = served.read(&mut bytes).unwrap();
        assert!(bytes[..count].ends_with(b"\r\n\r\n"));
        served.say("HTTP/1.1 100 Continue\r\n\r\n");
        let count = served.read(&mut bytes).unwrap();
        assert_eq!(&bytes[..count], b"relay");
        served.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        served.be_polite();
    });
    let (_house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    let text = post("known", "relay").replace("Host", "Expect: 100-continue\r\nHost");
    let (head, body) = text.split_at(text.len() - 5);
    visitor.say(head);
    assert_eq!(visitor.hear(), "");
    visitor.say(body);
    assert_eq!(visitor.hear(), "ok");
}

#[test]
fn questions_for_health_are_answered_here() {
    let backend = Backend::polite();
    let (house, address) = House::alone(backend.address);
    let mut visitor = Visitor::to(address);
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"getHealth"}"#;
    let open = |body: &str| post("", body).replace("/api/v1/sendRawTransaction", "/");
    let rpc = |token: &str, body: &str| post(token, body).replace("RawT", "T");
    for text in [get("/ping"), get("/ping").replace("GET", "HEAD")] {
        visitor.say(&text);
        let is_head_only = text.starts_with("HEAD");
        assert_eq!(visitor.hear(), format!("{:?}", Health::Ping { is_head_only }));
    }
    for text in [open(call), rpc("", call), rpc("", &format!("{call:256}"))] {
        visitor.say(&text);
        assert_eq!(visitor.hear(), format!("{:?}", Health::Rpc { id: b"7" }));
    }
    assert_eq!((house.taken(), house.relayed()), (0, vec![]));
    // What the server behind would answer otherwise is asked there.
    visitor.say(&open("{}"));
    assert!(visitor.hear().ends_with(" +2"));
    // The desk is shown these, which takes all in this house.
    for text in [rpc("some", call), rpc("", &format!("{call:257}"))] {
        visitor.say(&text);
        assert!(visitor.hear().starts_with(call));
    }
    assert_eq!((house.taken(), house.relayed()), (2, vec![Why::Other]));
    house.handle.send(Command::Drain);
    for text in [get("/ping"), open(call), rpc("", call)] {
        visitor.say(&text);
        assert!(visitor.hear().contains("HTTP/1.1 +"));
    }
    assert_eq!(house.relayed(), [Why::Draining; 3]);
}
