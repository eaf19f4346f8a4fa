//! The reader of a node's messages over its corpus: what it reads is what a whole parser finds.
//!
//! Each file of `fuzz/corpus/news` is a message; its name starts with `read` or with `left`, for
//! what says nothing that is needed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::expect_used)]

#[path = "support/corpus.rs"]
mod corpus;
#[path = "support/messages.rs"]
mod messages;
#[path = "support/rng.rs"]
mod rng;

use corpus::{corpus, read_as_named, read_of_damaged};
use rng::rng;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/news");

#[test]
fn the_corpus_is_read_as_its_names_say() {
    let (read, left) = read_as_named(CORPUS, messages::feed);
    assert!(read >= 10 && left >= 10, "the corpus has {read} and {left}");
}

/// Every prefix of every file, and each byte of it set to what JSON is made of.
#[test]
fn whatever_is_read_of_a_damaged_message_is_what_it_says() {
    let marks = [br#""\{}[]:, 0129e.-"#.as_slice(), &[0, 0x1f, 0x80, 0xff]].concat();
    let damaged = corpus(CORPUS).into_iter();
    let read: usize =
        damaged.map(|(_, bytes)| read_of_damaged(&bytes, &marks, messages::feed)).sum();
    assert!(read > 1000, "{read}");
}

/// Pieces of messages put together at random, whole members twice or in any order.
#[test]
fn whatever_is_read_of_mixed_messages_is_what_it_says() {
    let mut throw = rng();
    let all = corpus(CORPUS);
    let mut read = 0;
    for _ in 0..20_000 {
        let [one, other] = [0, 1].map(|_| &all[throw(all.len())].1);
        let (cut, past) = (throw(one.len() + 1), throw(other.len() + 1));
        read += usize::from(messages::feed(&[&one[..cut], &other[past..]].concat()));
    }
    assert!(read > 10, "{read}");
}
