//! The reader of JSON-RPC calls over its corpus: what it reads is what a whole parser reads.
//!
//! Each file of `fuzz/corpus/call` is a body; its name starts with `read` or with `left`, for what
//! is left to the caller's parser. That the two parsers of the project agree is in
//! `test/ingress/`, on the other side of the edge.
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
fn the_corpus_is_read_as_its_names_say() {
    let (read, left) = read_as_named(CORPUS, calls::feed);
    assert!(read >= 10 && left >= 30, "the corpus has {read} and {left}");
}

/// Every prefix of every short file, and each byte of it set to what JSON is made of.
#[test]
fn whatever_is_read_of_a_damaged_call_is_what_it_says() {
    let marks = [br#""\{}[]:, =+/A0n9e.-_"#.as_slice(), &[0, 0x1f, 0x7f, 0x80, 0xff]].concat();
    let damaged = corpus(CORPUS).into_iter().filter(|(_, body)| body.len() < 512);
    let read: usize = damaged.map(|(_, bytes)| read_of_damaged(&bytes, &marks, calls::feed)).sum();
    assert!(read > 1000, "{read}");
}

/// Pieces of calls put together at random, whole members twice or in any order.
#[test]
fn whatever_is_read_of_mixed_calls_is_what_it_says() {
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
