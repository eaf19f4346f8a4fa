//! The format of generated keys, as `src/accounts/keys/format.ts` has it: `td_`, a word, `_`, 27
//! random characters, and 6 of a checksum, which tells a typing error from an unknown key.

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_DIGITS: usize = 27;
/// 62^6 is above 2^32.
const CHECKSUM_DIGITS: usize = 6;
const WORD_BYTES_MAX: usize = 16;

/// Whether a key has the generated format but the wrong checksum.
#[must_use]
pub fn looks_mistyped(token: &[u8]) -> bool {
    let Some(rest) = token.strip_prefix(b"td_") else { return false };
    let Some(end) = rest.len().checked_sub(RANDOM_DIGITS + CHECKSUM_DIGITS) else { return true };
    let (start, digits) = rest.split_at(end);
    let Some(word) = start.strip_suffix(b"_") else { return true };
    let is_word = !word.is_empty()
        && word.len() <= WORD_BYTES_MAX
        && word.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if !is_word || !digits.iter().all(u8::is_ascii_alphanumeric) {
        return true;
    }
    let (text, found) = token.split_at(token.len() - CHECKSUM_DIGITS);
    found != checksum(text)
}

fn checksum(text: &[u8]) -> [u8; CHECKSUM_DIGITS] {
    let mut rest = crc32fast::hash(text) as usize;
    let mut digits = [0; CHECKSUM_DIGITS];
    for digit in digits.iter_mut().rev() {
        // One of 62: the remainder is an index.
        *digit = DIGITS.get(rest % DIGITS.len()).copied().unwrap_or_default();
        rest /= DIGITS.len();
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_generated_key_with_another_checksum_is_mistyped() {
        let start = b"td_live_abcdefghijklmnopqrstuvwxyz0";
        let key = [start.as_slice(), &checksum(start)].concat();
        assert!(!looks_mistyped(&key));
        let other = |at: usize, byte: u8| {
            let mut other = key.clone();
            other[at] = byte;
            looks_mistyped(&other)
        };
        // The random part, the checksum, the word, and what separates them.
        assert!(other(12, b'Z') && other(key.len() - 1, b'!') && other(4, b'A') && other(7, b'-'));
        assert!(looks_mistyped(b"td_") && looks_mistyped(b"td__"));
        assert!(looks_mistyped(&key[..key.len() - 1]));
        let long = [b"td_abcdefghijklmnopq".as_slice(), &key[7..]].concat();
        assert!(looks_mistyped(&long));
        assert!(!looks_mistyped(b"") && !looks_mistyped(b"any other key of a file"));
    }
}
