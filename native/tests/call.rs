//! The JSON-RPC request parser over its corpus: what it reads equals what a complete parser reads.
//!
//! Each file of `fuzz/corpus/call` is a body; its name starts with `read`, or with `left` if
//! the body is left to the caller's parser. `test/ingress/` checks that the project's two parsers
//! agree.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::expect_used)]

#[path = "support/calls.rs"]
mod calls;
#[path = "support/corpus.rs"]
mod corpus;
#[path = "support/rng.rs"]
mod rng;

use corpus::{corpus, read_as_named, read_of_damaged};
use rng::rng;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/call");

#[test]
fn corpus_files_are_parsed_as_named() {
    let (read, left) = read_as_named(CORPUS, calls::feed);
    assert!(read >= 10 && left >= 30, "the corpus has {read} and {left}");
}

/// Every prefix of every short file, and each byte set to JSON's special characters.
#[test]
fn damaged_requests_are_parsed_correctly_or_left() {
    let marks = [br#""\{}[]:, =+/A0n9e.-_"#.as_slice(), &[0, 0x1f, 0x7f, 0x80, 0xff]].concat();
    let damaged = corpus(CORPUS).into_iter().filter(|(_, body)| body.len() < 512);
    let read: usize = damaged.map(|(_, bytes)| read_of_damaged(&bytes, &marks, calls::feed)).sum();
    assert!(read > 1000, "{read}");
}

/// Parts of requests combined at random, members repeated or in any order.
#[test]
fn recombined_requests_are_parsed_correctly_or_left() {
    let mut throw = rng();
    let bodies = corpus(CORPUS);
    let mut read = 0;
    for _ in 0..20_000 {
        let [one, other] = [0, 1].map(|_| &bodies[throw(bodies.len())].1);
        let (cut, past) = (throw(one.len() + 1), throw(other.len() + 1));
        read += usize::from(calls::feed(&[&one[..cut], &other[past..]].concat()));
    }
    assert!(read > 10, "{read}");
}
