//! The parser of a node's slot messages over its corpus: what it reads equals what a complete
//! parser finds.
//!
//! Each file of `fuzz/corpus/news` is a message; its name starts with `read`, or with
//! `left` if it carries nothing needed.
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
fn corpus_files_are_parsed_as_named() {
    let (read, left) = read_as_named(CORPUS, messages::feed);
    assert!(read >= 10 && left >= 10, "the corpus has {read} and {left}");
}

/// Every prefix of every file, and each byte set to JSON's special characters.
#[test]
fn damaged_messages_are_parsed_correctly_or_skipped() {
    let marks = [br#""\{}[]:, 0129e.-"#.as_slice(), &[0, 0x1f, 0x80, 0xff]].concat();
    let damaged = corpus(CORPUS).into_iter();
    let read: usize =
        damaged.map(|(_, bytes)| read_of_damaged(&bytes, &marks, messages::feed)).sum();
    assert!(read > 1000, "{read}");
}

/// Parts of messages combined at random, members repeated or in any order.
#[test]
fn recombined_messages_are_parsed_correctly_or_skipped() {
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
