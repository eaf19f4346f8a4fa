//! The JSON-RPC request parser over its corpus: what it reads equals what a complete parser reads.
//!
//! Each file of `fuzz/corpus/json_rpc` is a body; its name starts with `parsed`, or with `skipped`
//! if the body is left to the caller's parser. `test/engine/native-submit.test.ts` checks
//! that the project's two parsers agree.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::expect_used)]

#[path = "support/corpus.rs"]
mod corpus;
#[path = "support/json_rpc_bodies.rs"]
mod json_rpc_bodies;
#[path = "support/rng.rs"]
mod rng;

use corpus::{corpus, parsed_as_named, parsed_of_damaged};
use rng::rng;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/json_rpc");

#[test]
fn corpus_files_are_parsed_as_named() {
    let (parsed, skipped) = parsed_as_named(CORPUS, json_rpc_bodies::feed);
    assert!(parsed >= 10 && skipped >= 30, "the corpus has {parsed} and {skipped}");
}

/// Every prefix of every short file, and each byte set to JSON's special characters.
#[test]
fn damaged_requests_are_parsed_correctly_or_left() {
    let marks = [br#""\{}[]:, =+/A0n9e.-_"#.as_slice(), &[0, 0x1f, 0x7f, 0x80, 0xff]].concat();
    let damaged = corpus(CORPUS).into_iter().filter(|(_, body)| body.len() < 512);
    let parsed: usize =
        damaged.map(|(_, bytes)| parsed_of_damaged(&bytes, &marks, json_rpc_bodies::feed)).sum();
    assert!(parsed > 1000, "{parsed}");
}

/// Parts of requests combined at random, members repeated or in any order.
#[test]
fn recombined_requests_are_parsed_correctly_or_left() {
    let mut below = rng();
    let bodies = corpus(CORPUS);
    let mut parsed = 0;
    for _ in 0..20_000 {
        let [one, other] = [0, 1].map(|_| &bodies[below(bodies.len())].1);
        let (cut, past) = (below(one.len() + 1), below(other.len() + 1));
        parsed += usize::from(json_rpc_bodies::feed(&[&one[..cut], &other[past..]].concat()));
    }
    assert!(parsed > 10, "{parsed}");
}
