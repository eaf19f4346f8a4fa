//! The parser of a node's slot messages over its corpus: what it reads equals what a complete
//! parser finds.
//!
//! Each file of `fuzz/corpus/slot_messages` is a message; its name starts with `parsed`, or with
//! `skipped` if it carries nothing needed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::expect_used)]

#[path = "support/corpus.rs"]
mod corpus;
#[path = "support/messages.rs"]
mod messages;
#[path = "support/rng.rs"]
mod rng;

use corpus::{corpus, parsed_as_named, parsed_of_damaged};
use rng::rng;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/slot_messages");

#[test]
fn corpus_files_are_parsed_as_named() {
    let (parsed, skipped) = parsed_as_named(CORPUS, messages::feed);
    assert!(parsed >= 10 && skipped >= 10, "the corpus has {parsed} and {skipped}");
}

/// Every prefix of every file, and each byte set to JSON's special characters.
#[test]
fn damaged_messages_are_parsed_correctly_or_skipped() {
    let marks = [br#""\{}[]:, 0129e.-"#.as_slice(), &[0, 0x1f, 0x80, 0xff]].concat();
    let damaged = corpus(CORPUS).into_iter();
    let parsed: usize =
        damaged.map(|(_, bytes)| parsed_of_damaged(&bytes, &marks, messages::feed)).sum();
    assert!(parsed > 1000, "{parsed}");
}

/// Parts of messages combined at random, members repeated or in any order.
#[test]
fn recombined_messages_are_parsed_correctly_or_skipped() {
    let mut below = rng();
    let all = corpus(CORPUS);
    let mut parsed = 0;
    for _ in 0..20_000 {
        let [one, other] = [0, 1].map(|_| &all[below(all.len())].1);
        let (cut, past) = (below(one.len() + 1), below(other.len() + 1));
        parsed += usize::from(messages::feed(&[&one[..cut], &other[past..]].concat()));
    }
    assert!(parsed > 10, "{parsed}");
}
