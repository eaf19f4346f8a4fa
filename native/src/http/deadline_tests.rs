use std::io::Write;

use super::*;
use crate::http::dispatch::REQUEST_BYTES_MAX;
use crate::http::handler::Cut;
use crate::http::test_server::{Backend, House, Visitor, post};

#[test]
fn a_part_has_its_time_from_its_first_byte_on_whatever_comes_meanwhile() {
    let mut clock = ReadClock::default();
    assert!(!clock.is_late(u64::MAX, 10));
    clock.set(Part::Head, 100);
    clock.set(Part::Head, 105);
    assert!(!clock.is_late(110, 10) && clock.is_late(111, 10));
    clock.set(Part::BodyBegin, 111);
    clock.set(Part::Body, 115);
    clock.set(Part::Body, 120);
    assert!(!clock.is_late(125, 10) && clock.is_late(126, 10));
    clock.set(Part::None, 126);
    assert!(!clock.is_late(1_000, 10));
    clock.set(Part::Body, 1_000);
    assert!(!clock.is_late(1_010, 10));
}

/// Says one byte every two seconds for so long; how many connections are open then.
fn drip(house: &House, visitors: &mut [Visitor], text: &str, seconds: u64) -> usize {
    for byte in text.chars().take(seconds as usize / 2) {
        for visitor in &mut *visitors {
            // Who is closed does not hear it.
            let _ = visitor.stream.write_all(byte.to_string().as_bytes());
        }
        house.pass(2);
    }
    house.open_count()
}

#[test]
fn a_head_has_its_time_as_a_whole() {
    let backend = Backend::polite();
    let (house, address) = House::alone(backend.address);
    let mut visitors = [Visitor::to(address), Visitor::to(address)];
    // The time before its first byte is no time of a head.
    house.pass(8);
    visitors[0].say("GET /ping HTTP/1.1\r\nHost: a\r\nx: ");
    visitors[1].say(&format!("{}GET /pi", post("", "hello")));
    assert_eq!(visitors[1].hear(), "hello");
    assert_eq!(drip(&house, &mut visitors, "aaaa", 8), 2);
    assert_eq!(drip(&house, &mut visitors, "aa", 4), 0);
    assert_eq!(house.book.lock().unwrap().cut, [Cut::Slow; 2]);
}

#[test]
fn a_body_has_its_time_as_a_whole_after_that_of_its_head() {
    let backend = Backend::polite();
    let (house, address) = House::alone(backend.address);
    let large = "x".repeat(2 * REQUEST_BYTES_MAX);
    for text in [post("known", "hello, you"), post("", "hello, you"), post("known", &large)] {
        let (head, _) = text.split_at(text.find("\r\n\r\n").unwrap() + 4);
        let (begin, end) = head.split_at(head.len() - 3);
        let mut visitors = [Visitor::to(address)];
        visitors[0].say(begin);
        assert_eq!(drip(&house, &mut visitors, end, 6), 1);
        // All of its head has come, and nothing of its body.
        house.pass(8);
        assert_eq!(drip(&house, &mut visitors, "aaaa", 8), 1);
        assert_eq!(drip(&house, &mut visitors, "aa", 4), 0);
        assert_eq!(visitors[0].hear_all(), b"");
        assert_eq!(std::mem::take(&mut house.book.lock().unwrap().cut), [Cut::Slow]);
    }
}

#[test]
fn a_request_in_time_is_served_however_slow_the_one_before() {
    let backend = Backend::polite();
    let (house, address) = House::alone(backend.address);
    let mut visitors = [Visitor::to(address)];
    for _ in 0..4 {
        let text = post("known", "ab");
        visitors[0].say(&text[..text.len() - 4]);
        assert_eq!(drip(&house, &mut visitors, "\r\nab", 8), 1);
        assert_eq!(visitors[0].hear(), "ab");
    }
    assert!(house.book.lock().unwrap().cut.is_empty());
}
