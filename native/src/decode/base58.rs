//! Hot path: base58 as clients and nodes write it: encodes signatures, and decodes transactions.
//!
//! Decodes ten digits at a time.

use crate::decode::limits::TRANSACTION_BYTES_MAX;

/// Most characters of a signature's text.
pub const SIGNATURE_TEXT_MAX: usize = 88;
/// The digits, in their order.
pub(crate) const LETTERS: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// Writes the text to the start of `out`; returns its length.
#[must_use]
pub fn signature_text(signature: &[u8; 64], out: &mut [u8; SIGNATURE_TEXT_MAX]) -> usize {
    usize::from(five8::encode_64(signature, out))
}

/// The same for the 64 bytes at `offset`; `None` if either slice is too short.
#[must_use]
pub fn signature_text_at(bytes: &[u8], offset: usize, out: &mut [u8]) -> Option<usize> {
    let signature = bytes.get(offset..)?.first_chunk()?;
    Some(signature_text(signature, out.first_chunk_mut()?))
}

/// Most characters of a transaction's text: log(256) / log(58) is a little below 1.3658.
pub const TRANSACTION_TEXT_MAX: usize = TRANSACTION_BYTES_MAX * 13_658 / 10_000 + 1;
const CHUNK_DIGITS: usize = 10;
const CHUNK_BASE: u128 = 58u128.pow(CHUNK_DIGITS as u32);
const TRANSACTION_WORDS: usize = TRANSACTION_BYTES_MAX / 8 + 1;

/// The digit of each letter; 255 for other bytes.
#[allow(clippy::indexing_slicing)] // Evaluated by the compiler.
const DIGITS: [u8; 256] = {
    let mut digits = [255; 256];
    let mut digit = 0;
    while digit < LETTERS.len() {
        digits[LETTERS[digit] as usize] = digit as u8;
        digit += 1;
    }
    digits
};

/// Decodes a text to the start of `out`; returns the number of bytes. None: not base58, larger than
/// a transaction or `out`, or empty.
#[must_use]
pub fn decode(text: &[u8], out: &mut [u8]) -> Option<usize> {
    if text.is_empty() || text.len() > TRANSACTION_TEXT_MAX {
        return None;
    }
    // The number as words, the lowest first.
    let mut words = [0u64; TRANSACTION_WORDS];
    let mut used = 0;
    // Only the first chunk may be short, so the others have the same weight.
    let (first, others) = text.split_at_checked(text.len() % CHUNK_DIGITS)?;
    for chunk in std::iter::once(first).chain(others.chunks_exact(CHUNK_DIGITS)) {
        let carry = append_digits(words.get_mut(..used)?, chunk)?;
        if carry > 0 {
            *words.get_mut(used)? = carry;
            used += 1;
        }
    }
    let zeros = text.iter().take_while(|letter| **letter == b'1').count();
    let words = words.get(..used)?;
    let blank = words.last().map_or(0, |highest| highest.leading_zeros() as usize / 8);
    let size = zeros + words.len() * 8 - blank;
    let out = out.get_mut(..size).filter(|out| out.len() <= TRANSACTION_BYTES_MAX)?;
    let (ones, number) = out.split_at_mut_checked(zeros)?;
    ones.fill(0);
    let bytes = words.iter().rev().flat_map(|word| word.to_be_bytes()).skip(blank);
    for (place, byte) in number.iter_mut().zip(bytes) {
        *place = byte;
    }
    Some(size)
}

/// Appends the digits of a chunk to a number, whose lowest word is the first; returns the word that
/// is carried out of it. None if a letter is not of base58.
fn append_digits(words: &mut [u64], chunk: &[u8]) -> Option<u64> {
    let mut carry = number_of(chunk)?;
    for word in words {
        let sum = u128::from(*word) * CHUNK_BASE + carry;
        *word = sum as u64;
        carry = sum >> 64;
    }
    Some(carry as u64)
}

/// The number that at most `CHUNK_DIGITS` letters make; None if one is not of base58.
fn number_of(chunk: &[u8]) -> Option<u128> {
    chunk.iter().try_fold(0u128, |number, letter| {
        let digit = DIGITS.get(usize::from(*letter)).copied().filter(|digit| *digit < 58)?;
        Some(number * 58 + u128::from(digit))
    })
}

/// Decodes a text of any bytes; None if it is not base58. The work grows with the square of the
/// text, which the caller bounds.
#[must_use]
pub fn decode_all(text: &[u8]) -> Option<Vec<u8>> {
    // The number as words, the lowest first.
    let mut words: Vec<u64> = Vec::with_capacity(text.len() / CHUNK_DIGITS + 1);
    let (first, others) = text.split_at_checked(text.len() % CHUNK_DIGITS)?;
    for chunk in std::iter::once(first).chain(others.chunks_exact(CHUNK_DIGITS)) {
        let carry = append_digits(&mut words, chunk)?;
        if carry > 0 {
            words.push(carry);
        }
    }
    let zeros = text.iter().take_while(|letter| **letter == b'1').count();
    let number = words.iter().rev().flat_map(|word| word.to_be_bytes());
    let number = number.skip_while(|byte| *byte == 0);
    Some(std::iter::repeat_n(0, zeros).chain(number).collect())
}

/// `LEGACY_TRANSACTION_BYTES_MAX` of `src/core/limits.ts`.
pub const LEGACY_BYTES_MAX: usize = 1232;
/// Most characters of its text.
pub const LEGACY_TEXT_MAX: usize = LEGACY_BYTES_MAX * 13_658 / 10_000 + 1;

#[cfg(test)]
mod tests {
    use super::{
        SIGNATURE_TEXT_MAX, TRANSACTION_TEXT_MAX, decode, decode_all, signature_text,
        signature_text_at,
    };

    #[test]
    fn text_of_any_size_is_decoded_as_that_of_a_transaction() {
        let mut text = b"1111".to_vec();
        for round in 0..300u32 {
            text.push(super::LETTERS[(round * 7 % 58) as usize]);
            let mut out = [0; 4096];
            let size = decode(&text, &mut out).unwrap();
            assert_eq!(decode_all(&text).unwrap(), out[..size]);
        }
        assert_eq!(decode_all(b""), Some(vec![]));
        assert_eq!(decode_all(&b"1".repeat(5_000)), Some(vec![0; 5_000]));
        assert_eq!((decode_all(b"0"), decode_all(b"2 2"), decode_all(b"\xff")), (None, None, None));
    }

    /// Long division, digit by digit.
    fn plain(signature: &[u8]) -> String {
        let mut digits: Vec<u8> = Vec::new();
        for byte in signature {
            let mut carry = u32::from(*byte);
            for digit in &mut digits {
                carry += u32::from(*digit) << 8;
                *digit = (carry % 58) as u8;
                carry /= 58;
            }
            while carry > 0 {
                digits.push((carry % 58) as u8);
                carry /= 58;
            }
        }
        let zeros = signature.iter().take_while(|byte| **byte == 0).count();
        let digits = std::iter::repeat_n(&0, zeros).chain(digits.iter().rev());
        digits.map(|digit| char::from(super::LETTERS[usize::from(*digit)])).collect()
    }

    fn text(signature: &[u8; 64]) -> String {
        let mut out = [0; SIGNATURE_TEXT_MAX];
        let size = signature_text(signature, &mut out);
        String::from_utf8(out[..size].to_vec()).unwrap()
    }

    #[test]
    fn signature_at_an_offset_is_encoded_if_in_bounds() {
        let bytes: Vec<u8> = (1..=66).collect();
        let mut out = [0u8; SIGNATURE_TEXT_MAX];
        let size = signature_text_at(&bytes, 2, &mut out);
        assert_eq!(size.map(|size| &out[..size]), Some(plain(&bytes[2..]).as_bytes()));
        assert_eq!(signature_text_at(&bytes, 3, &mut out), None);
        assert_eq!(signature_text_at(&bytes, usize::MAX, &mut out), None);
        assert_eq!(signature_text_at(&bytes, 2, &mut out[1..]), None);
    }

    #[test]
    fn encoding_equals_long_division() {
        let mut state = 7u64;
        for round in 0..2_000 {
            let mut signature = [0u8; 64];
            for byte in signature.iter_mut().skip(round % 67) {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = (state >> 56) as u8;
            }
            assert_eq!(text(&signature), plain(&signature));
        }
        assert_eq!(text(&[255; 64]), plain(&[255; 64]));
        assert_eq!(text(&[0; 64]), "1".repeat(64));
    }

    #[test]
    fn encoded_bytes_are_decoded() {
        let mut state = 11u64;
        let sizes = (1..80).chain([215, 1231, 1232, 4095, 4096]);
        for size in sizes {
            for zeros in [0, 1, 9, size] {
                let mut bytes = vec![0u8; size];
                for byte in bytes.iter_mut().skip(zeros) {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    *byte = (state >> 56) as u8;
                }
                let mut out = [7; 4096];
                let read = decode(plain(&bytes).as_bytes(), &mut out);
                assert_eq!(read.and_then(|size| out.get(..size)), Some(&bytes[..]));
            }
        }
        let full = plain(&[255; 4096]);
        assert!(full.len() <= TRANSACTION_TEXT_MAX);
        assert_eq!(decode(full.as_bytes(), &mut [0; 4096]), Some(4096));
    }

    #[test]
    fn invalid_or_oversized_text_is_rejected() {
        let long = plain(&[1; 4097]);
        let longer = "2".repeat(TRANSACTION_TEXT_MAX + 1);
        let ones = "1".repeat(4097);
        for text in ["", "0", "2O", "I", "l", "2 ", "2\u{e9}", &long, &longer, &ones] {
            assert_eq!(decode(text.as_bytes(), &mut [0; 4100]), None, "{text:.9}");
        }
        assert_eq!(decode(b"1112", &mut [0; 3]), None);
        assert_eq!(decode(b"1112", &mut [9; 4]), Some(4));
    }
}
