//! Replays a fuzz target's corpus: files whose name starts with `parsed`, or with `skipped` if the
//! parser must skip them, and files added by a fuzzer, which are named by their hash.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

/// The files of a corpus folder, with their names.
pub fn corpus(folder: &str) -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    files
        .map(|file| (file.file_name().into_string().unwrap(), std::fs::read(file.path()).unwrap()))
        .collect()
}

/// Asserts that each file is parsed, or skipped, as its name says; returns both counts.
pub fn parsed_as_named(folder: &str, feed: impl Fn(&[u8]) -> bool) -> (usize, usize) {
    let (mut parsed, mut skipped) = (0, 0);
    for (name, bytes) in corpus(folder) {
        let was_parsed = feed(&bytes);
        match name.split_once('.') {
            Some(("parsed", _)) => {
                assert!(was_parsed, "{name}");
                parsed += 1;
            }
            Some(("skipped", _)) => {
                assert!(!was_parsed, "{name}");
                skipped += 1;
            }
            _ => {}
        }
    }
    (parsed, skipped)
}

/// How many inputs are parsed among every prefix of these bytes, and the bytes with each one set to
/// each of the marks.
pub fn parsed_of_damaged(bytes: &[u8], marks: &[u8], feed: impl Fn(&[u8]) -> bool) -> usize {
    let mut parsed = 0;
    for size in 0..bytes.len() {
        parsed += usize::from(feed(&bytes[..size]));
        let mut changed = bytes.to_vec();
        for mark in marks {
            changed[size] = *mark;
            parsed += usize::from(feed(&changed));
        }
    }
    parsed
}
