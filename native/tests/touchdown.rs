//! What clients of `touchdown/1` may send, over a corpus and its mutations.
//!
//! Each file of `fuzz/corpus/touchdown` is what a client sends; its name starts with `parsed` if that
//! is a HELLO, or else with `skipped`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::expect_used)]

#[path = "support/corpus.rs"]
mod corpus;
#[path = "support/rng.rs"]
mod rng;
#[path = "support/touchdown_frames.rs"]
mod touchdown_frames;

use corpus::{corpus, parsed_as_named, parsed_of_damaged};
use rng::rng;
use touchdown_frames::feed;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/touchdown");

#[test]
fn corpus_files_are_read_as_named() {
    let (parsed, skipped) = parsed_as_named(CORPUS, feed);
    assert!(parsed >= 2 && skipped >= 5, "the corpus has {parsed} and {skipped}");
}

/// Every prefix, and each byte set to the bounds of every field.
#[test]
fn damaged_frames_are_read_or_refused() {
    let marks =
        [0, 1, 2, 3, 0x10, 0x1a, 0x20, 0x21, 0x40, 0x43, 0x44, 0x7e, 0x7f, 0x80, 0x82, 0xff];
    let damaged: usize =
        corpus(CORPUS).into_iter().map(|(_, bytes)| parsed_of_damaged(&bytes, &marks, feed)).sum();
    assert!(damaged > 100, "{damaged}");
}

/// Frames cut, joined and with bits turned at random.
#[test]
fn random_frames_are_read_or_refused() {
    let mut below = rng();
    let all = corpus(CORPUS);
    let mut parsed = 0;
    for _ in 0..20_000 {
        let [one, other] = [0, 1].map(|_| &all[below(all.len())].1);
        let (cut, past) = (below(one.len() + 1), below(other.len() + 1));
        let mut bytes = [&one[..cut], &other[past..]].concat();
        if let Some(byte) = bytes.len().checked_sub(1).map(|last| below(last + 1)) {
            bytes[byte] ^= 1 << below(8);
        }
        parsed += usize::from(feed(&bytes));
    }
    assert!(parsed > 10, "{parsed}");
}
