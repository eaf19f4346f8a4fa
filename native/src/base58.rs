//! Hot path: a signature as base58 text, as clients and nodes write it.
//!
//! The 512 bits are sixteen words; what a unit of each adds to every limb of five digits is in a
//! table, so that one pass of products and one pass of carries do what long division would do in
//! ninety.

/// Most characters of a signature's text.
pub const SIGNATURE_TEXT_MAX: usize = 88;
const WORDS: usize = 16;
const LIMBS: usize = 18;
const LIMB_DIGITS: usize = 5;
const LIMB_BASE: u64 = 58u64.pow(LIMB_DIGITS as u32);
const LETTERS: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// What one unit of word `w`, the last one first, adds to limb `l`, the last one first.
#[allow(clippy::indexing_slicing)] // Evaluated by the compiler.
const WEIGHTS: [[u32; LIMBS]; WORDS] = {
    let mut weights = [[0; LIMBS]; WORDS];
    weights[0][0] = 1;
    let mut word = 1;
    while word < WORDS {
        let mut carry = 0u64;
        let mut limb = 0;
        while limb < LIMBS {
            let sum = ((weights[word - 1][limb] as u64) << 32) + carry;
            weights[word][limb] = (sum % LIMB_BASE) as u32;
            carry = sum / LIMB_BASE;
            limb += 1;
        }
        word += 1;
    }
    weights
};

/// Writes the text to the start of `out`; how many characters it has.
#[must_use]
pub fn signature_text(signature: &[u8; 64], out: &mut [u8; SIGNATURE_TEXT_MAX]) -> usize {
    let mut limbs = [0u64; LIMBS];
    for (place, (word, weights)) in signature.as_chunks().0.iter().rev().zip(&WEIGHTS).enumerate() {
        let word = u64::from(u32::from_be_bytes(*word));
        for (limb, weight) in limbs.iter_mut().zip(weights) {
            *limb += word * u64::from(*weight);
        }
        // Five products of 32 by 30 bits and what a carry leaves fit in 64 bits.
        if place % 5 == 4 {
            carry(&mut limbs);
        }
    }
    carry(&mut limbs);
    let mut digits = [0u8; LIMBS * LIMB_DIGITS];
    for (limb, five) in limbs.iter().rev().zip(digits.as_chunks_mut::<LIMB_DIGITS>().0) {
        let mut rest = *limb as u32;
        for digit in five.iter_mut().rev() {
            *digit = (rest % 58) as u8;
            rest /= 58;
        }
    }
    let zeros = signature.iter().take_while(|byte| **byte == 0).count();
    let first = digits.iter().take_while(|digit| **digit == 0).count();
    // A byte holds more than one digit, so there are always as many zero digits as zero bytes.
    let text = digits.get(first.saturating_sub(zeros)..).unwrap_or_default();
    for (letter, digit) in out.iter_mut().zip(text) {
        *letter = LETTERS.get(usize::from(*digit)).copied().unwrap_or_default();
    }
    text.len()
}

fn carry(limbs: &mut [u64; LIMBS]) {
    let mut carry = 0;
    for limb in limbs {
        let sum = *limb + carry;
        *limb = sum % LIMB_BASE;
        carry = sum / LIMB_BASE;
    }
}

#[cfg(test)]
mod tests {
    use super::{SIGNATURE_TEXT_MAX, signature_text};

    /// Long division, digit by digit.
    fn plain(signature: &[u8; 64]) -> String {
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
    fn the_text_is_that_of_long_division() {
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
}
