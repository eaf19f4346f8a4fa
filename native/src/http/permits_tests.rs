use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;

use super::*;
use crate::http::test_server::{Backend, House, LIMITS, Limits, RELAYS_MAX, Visitor, get, post};

const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

#[test]
fn a_place_is_another_s_once_it_is_dropped() {
    let places = Places::new(2, 2);
    let first = places.take(ONE).unwrap();
    let second = places.take(ONE).unwrap();
    assert!(places.take(OTHER).is_none());
    drop(first);
    let third = places.take(OTHER).unwrap();
    assert!(places.take(ONE).is_none());
    drop((second, third));
    assert!(places.take(ONE).is_some() && Places::new(0, 0).take(ONE).is_none());
}

#[test]
fn an_address_has_no_more_than_its_share() {
    let places = Places::new(3, 2);
    let own = [places.take(ONE), places.take(ONE)];
    assert!(own.iter().all(Option::is_some) && places.take(ONE).is_none());
    let other = places.take(OTHER);
    assert!(other.is_some());
    drop((own, other));
    assert!(places.0.borrow().each.is_empty());
}

#[test]
fn there_is_plenty_while_more_than_half_are_free() {
    let places = Places::new(4, 4);
    let one = places.take(ONE);
    assert!(places.is_plenty(OTHER));
    let other = places.take(ONE);
    assert!(!places.is_plenty(OTHER));
    drop((one, other));
    assert!(places.is_plenty(OTHER) && !Places::new(0, 0).is_plenty(OTHER));
    let shares = Places::new(8, 2);
    let own = shares.take(ONE);
    assert!(!shares.is_plenty(ONE) && shares.is_plenty(OTHER));
    drop(own);
}

#[test]
fn one_address_has_no_more_than_its_share_of_relays() {
    let backend = Backend::start(|mut served| {
        while let Some(seen) = served.request() {
            if seen.head.starts_with("GET /now") {
                served.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
            served.tell(seen);
        }
    });
    let limits = Limits { relays_per_address: 3, ..LIMITS };
    let (house, address) = House::alone_with(backend.address, limits);
    let mut holders: Vec<_> = (0..3).map(|_| Visitor::to(address)).collect();
    for holder in &mut holders {
        holder.say(&get("/late"));
        backend.next();
    }
    let mut one = Visitor::to(address);
    one.say(&get("/now"));
    assert!(one.hear().contains(r#""reason":"overloaded""#));
    assert_eq!(house.book.lock().unwrap().turned_away, 1);
    let mut other = Visitor::from(Ipv4Addr::new(127, 0, 0, 2), address);
    other.say(&get("/now"));
    assert_eq!(other.hear(), "ok");
}

#[test]
fn requests_that_are_not_whole_leave_relays_to_others() {
    let backend = Backend::start(|mut served| {
        let mut bytes = [0; 1024];
        while let Ok(1..) = served.read(&mut bytes) {
            if bytes.starts_with(b"GET /now") {
                served.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
        }
    });
    let (house, address) = House::alone(backend.address);
    let small = post("", "").replace("Length: 0", "Length: 9000").replace("POST", "PUT");
    let large = small.replace("9000", "20000");
    let unsound = get("/").replace("Host", "Transfer-Encoding: x\r\nHost");
    // Small ones take none at all before they are whole.
    let mut slow: Vec<_> = (0..2 * RELAYS_MAX).map(|_| Visitor::to(address)).collect();
    for visitor in &mut slow {
        visitor.say(&small);
    }
    house.settle();
    assert_eq!(backend.connections.load(Ordering::SeqCst), 0);
    drop(slow);
    // Large ones take a quarter of them, together with those whose end is not known.
    let mut slow: Vec<_> = (0..RELAYS_MAX).map(|_| Visitor::to(address)).collect();
    for (index, visitor) in slow.iter_mut().enumerate() {
        visitor.say(if index % 2 == 0 { &large } else { &unsound });
        house.settle();
    }
    assert_eq!(house.book.lock().unwrap().turned_away, RELAYS_MAX * 3 / 4);
    let mut next = Visitor::to(address);
    next.say(&get("/now"));
    assert_eq!(next.hear(), "ok");
    // The server behind accepts in turn, so that it has accepted all once it answers the last.
    assert_eq!(backend.connections.load(Ordering::SeqCst), RELAYS_MAX / 4 + 1);
    // A key that is known may take any of the others.
    let known = large.replace("PUT", "POST").replace("x-token: ", "x-token: known");
    let mut known_ones: Vec<_> = (0..RELAYS_MAX / 2).map(|_| Visitor::to(address)).collect();
    for visitor in &mut known_ones {
        visitor.say(&known);
        house.settle();
    }
    assert_eq!(house.book.lock().unwrap().turned_away, RELAYS_MAX * 3 / 4);
}
