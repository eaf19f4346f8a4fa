//! Received datagrams, over the corpus of the fuzz target `datagram`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::expect_used)]

#[path = "support/datagrams.rs"]
mod datagrams;

#[test]
fn corpus_datagrams_neither_panic_nor_amplify() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/datagram");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        datagrams::feed(&bytes);
        // Each of them also truncated at every position.
        for size in 0..bytes.len().min(64) {
            datagrams::feed(&bytes[..size]);
        }
        count += 1;
    }
    assert!(count > 8);
}
