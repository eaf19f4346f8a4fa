//! The decoder over its corpus and over bytes that are not transactions.
//!
//! Each file of `fuzz/corpus/decode` is a transaction; its name starts with the error that it must
//! be rejected for, or with `accepted`. `test/native/differential.test.ts` compares with the
//! portable decoder.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;

use touchdown_native::decode::decoder::{Decoder, VALIDATION_NUMBERS, numbers};
use touchdown_native::decode::errors::{DecodeError, NAMES};

const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// The public key of the seed 9, 9, … that the corpus tips.
const TIP_ACCOUNT: [u8; 32] = [
    0xfd, 0x17, 0x24, 0x38, 0x5a, 0xa0, 0xc7, 0x5b, 0x64, 0xfb, 0x78, 0xcd, 0x60, 0x2f, 0xa1, 0xd9,
    0x91, 0xfd, 0xeb, 0xf7, 0x6b, 0x13, 0xc5, 0x8e, 0xd7, 0x02, 0xea, 0xc8, 0x35, 0xe9, 0xf6, 0x18,
];

fn decoder() -> Decoder {
    Decoder::new(&TIP_ACCOUNT, 1_000_000.0, true, 16).unwrap()
}

/// The corpus with its file names.
fn corpus() -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(format!("{HERE}/fuzz/corpus/decode")).unwrap();
    let files = files.map(|file| file.unwrap());
    files
        .map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap()))
        .collect()
}

#[test]
fn errors_match_the_typescript_table_in_order() {
    let table = fs::read_to_string(format!("{HERE}/../src/core/decode-errors.ts")).unwrap();
    let rows = table.split_once("const ROWS = [").unwrap().1.split_once("] as const").unwrap().0;
    let mut names = Vec::new();
    for call in rows
        .split("\n  ")
        .filter(|line| line.starts_with("undecodable(") || line.starts_with("row("))
    {
        let place = if call.starts_with("row(") { 3 } else { 1 };
        names.push(call.split('"').nth(place).unwrap_or_default());
    }
    // A call that is broken over lines names its error on the next one.
    let quoted: Vec<_> = rows.split('"').skip(1).step_by(2).collect();
    let known: Vec<_> = quoted.iter().copied().filter(|word| NAMES.contains(word)).collect();
    assert_eq!(known, NAMES);
    assert_eq!(names.len(), NAMES.len());
}

#[test]
fn corpus_files_are_validated_as_named() {
    let decoder = decoder();
    let mut covered = BTreeSet::new();
    for (name, bytes) in corpus() {
        // Files added by a fuzzer are named by their hash.
        let Some((expected, _)) = name.split_once('.') else {
            continue;
        };
        let validation = decoder.decode(&bytes);
        let found =
            validation.map_or_else(|rejected| NAMES[rejected.error as usize], |_| "accepted");
        assert_eq!(found, expected, "{name}");
        covered.insert(found);
    }
    assert!(covered.len() > 35, "the corpus covers only {covered:?}");
}

/// Every prefix of every file, every byte set to a few values, and pairs of bytes.
#[test]
fn no_input_panics_or_yields_offsets_outside() {
    let decoder = Decoder::new(&TIP_ACCOUNT, 0.0, false, 0).unwrap();
    let mut accepted = 0;
    let mut validate = |bytes: &[u8]| {
        if let Ok(found) = decoder.decode(bytes) {
            assert!(found.message_offset + found.message_size <= bytes.len());
            assert!(found.signature_offset + 64 * found.signature_count <= bytes.len());
            assert!(found.keys_offset + 32 * found.signature_count <= bytes.len());
            assert!(found.blockhash_offset + 32 <= bytes.len());
            accepted += 1;
        }
    };
    for (_, bytes) in corpus() {
        for end in 0..bytes.len() {
            validate(&bytes[..end]);
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 2, 0x7f, 0x80, 0x81, 0xff, bytes[at] ^ 1, bytes[at].wrapping_add(1)]
            {
                let mut changed = bytes.clone();
                changed[at] = value;
                validate(&changed);
                let other = (at * 7 + 3) % bytes.len();
                changed[other] = value;
                validate(&changed);
            }
        }
        validate(&[bytes.as_slice(), &[0; 5000]].concat());
    }
    assert!(accepted > 1000, "{accepted} accepted");
}

#[test]
fn invalid_options_make_no_decoder() {
    let make = |accounts: &[u8], lamports| Decoder::new(accounts, lamports, false, 0).is_some();
    assert!(make(&[0; 64], 1.0) && make(&[], 0.0) && make(&[], 9_007_199_254_740_991.0));
    assert!(!make(&[0; 63], 1.0) && !make(&[0; 32 * 1025], 1.0));
    for lamports in [-1.0, 0.5, f64::NAN, f64::INFINITY, 9_007_199_254_740_992.0] {
        assert!(!make(&[], lamports), "{lamports}");
    }
}

#[test]
fn a_rejection_is_serialized_as_its_code_and_numbers() {
    let written = numbers(&decoder().decode(&[]));
    let mut expected = [0.0; VALIDATION_NUMBERS];
    expected[1] = f64::from(DecodeError::empty as u8);
    expected[3] = 1.0;
    assert_eq!(written, expected);
}
