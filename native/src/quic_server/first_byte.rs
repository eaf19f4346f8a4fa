//! What the first byte of a `touchdown/1` stream says: the control stream, flags before a
//! transaction, or the transaction itself.
//!
//! A legacy or v0 transaction begins with the count of its signatures, at most 12, and a later
//! version with a byte above 0x80 (SIMD-0385, 2026-11). 0x40 would announce 64 signatures, which
//! alone take as many bytes as the largest transaction has.

/// The control stream.
pub(super) const CONTROL: u8 = 0;
/// Set in every flags byte; without the bit above it.
const FLAGS: u8 = 0x40;
const FLAGS_MASK: u8 = 0xc0;
const SEND_ONCE: u8 = 1;
const ANSWER_WHEN_LANDED: u8 = 2;

/// What a client wants for one transaction.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Flags {
    /// The edge never sends it again.
    pub is_sent_once: bool,
    /// The verdict waits for the transaction's end.
    pub is_answered_when_landed: bool,
}

/// Whether a stream that begins so has a flags byte.
pub(super) fn has_flags(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| first & FLAGS_MASK == FLAGS)
}

/// The flags, and the transaction behind them. None if a flag is unknown.
#[must_use]
pub fn split_flags(bytes: &[u8]) -> Option<(Flags, &[u8])> {
    let Some((first, rest)) = bytes.split_first().filter(|_| has_flags(bytes)) else {
        return Some((Flags::default(), bytes));
    };
    let flags = Flags {
        is_sent_once: first & SEND_ONCE != 0,
        is_answered_when_landed: first & ANSWER_WHEN_LANDED != 0,
    };
    (first & !(FLAGS_MASK | SEND_ONCE | ANSWER_WHEN_LANDED) == 0).then_some((flags, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::limits::TRANSACTION_BYTES_MAX;
    use crate::decode::tx::starts_well;

    #[test]
    fn flags_precede_the_transaction() {
        let split = |bytes: &'static [u8]| {
            split_flags(bytes).map(|(flags, rest)| {
                (flags.is_sent_once, flags.is_answered_when_landed, rest.to_vec())
            })
        };
        assert_eq!(split(&[1, 2]), Some((false, false, vec![1, 2])));
        assert_eq!(split(&[0x81, 2]), Some((false, false, vec![0x81, 2])));
        assert_eq!(split(&[]), Some((false, false, vec![])));
        assert_eq!(split(&[0x40, 1]), Some((false, false, vec![1])));
        assert_eq!(split(&[0x41, 1]), Some((true, false, vec![1])));
        assert_eq!(split(&[0x42, 0x42]), Some((false, true, vec![0x42])));
        assert_eq!(split(&[0x43]), Some((true, true, vec![])));
        for bit in [4, 8, 0x10, 0x20] {
            assert_eq!(split_flags(&[0x40 | bit, 1]), None);
        }
    }

    #[test]
    fn no_transaction_begins_with_flags_or_as_the_control_stream() {
        assert!(FLAGS as usize * 64 >= TRANSACTION_BYTES_MAX);
        for first in 0..=u8::MAX {
            let mut bytes = vec![1; TRANSACTION_BYTES_MAX];
            bytes[0] = first;
            let is_free = first == CONTROL || has_flags(&bytes);
            assert!(!is_free || !starts_well(&bytes), "{first:#x}");
        }
    }
}
