//! The reader of a node's messages over its corpus: what it reads is what a whole parser finds.
//!
//! Each file of `fuzz/corpus/news` is a message; its name starts with `read` or with `left`, for
//! what says nothing that is needed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::expect_used)]

#[path = "support/dice.rs"]
mod dice;
#[path = "support/messages.rs"]
mod messages;

use dice::dice;

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/news");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    files
        .map(|file| (file.file_name().into_string().unwrap(), std::fs::read(file.path()).unwrap()))
        .collect()
}

#[test]
fn the_corpus_is_read_as_its_names_say() {
    let (mut read, mut left) = (0, 0);
    for (name, message) in corpus() {
        let was_read = messages::feed(&message);
        // What a fuzzer has added is named by its hash.
        match name.split_once('.') {
            Some(("read", _)) => {
                assert!(was_read, "{name}");
                read += 1;
            }
            Some(("left", _)) => {
                assert!(!was_read, "{name}");
                left += 1;
            }
            _ => {}
        }
    }
    assert!(read >= 10 && left >= 10, "the corpus has {read} and {left}");
}

/// Every prefix of every file, and each byte of it set to what JSON is made of.
#[test]
fn whatever_is_read_of_a_damaged_message_is_what_it_says() {
    let mut read = 0;
    let marks = br#""\{}[]:, 0129e.-"#.iter().chain(&[0, 0x1f, 0x80, 0xff]);
    for (_, message) in corpus() {
        for size in 0..message.len() {
            read += usize::from(messages::feed(&message[..size]));
            for mark in marks.clone() {
                let mut changed = message.clone();
                changed[size] = *mark;
                read += usize::from(messages::feed(&changed));
            }
        }
    }
    assert!(read > 1000, "{read}");
}

/// Pieces of messages put together at random, whole members twice or in any order.
#[test]
fn whatever_is_read_of_mixed_messages_is_what_it_says() {
    let mut throw = dice();
    let all = corpus();
    let mut read = 0;
    for _ in 0..20_000 {
        let [one, other] = [0, 1].map(|_| &all[throw(all.len())].1);
        let (cut, past) = (throw(one.len() + 1), throw(other.len() + 1));
        read += usize::from(messages::feed(&[&one[..cut], &other[past..]].concat()));
    }
    assert!(read > 10, "{read}");
}
