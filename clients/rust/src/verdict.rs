//! The 88 bytes that answer a transaction: docs/quic.md, "Verdict".

use crate::reason::Reason;

pub(crate) const VERDICT_BYTES: usize = 88;
const EXECUTION_FAILED: u32 = 1;

/// What an edge says of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Accepted, refused, or what became of it.
    pub outcome: Outcome,
    /// The first signature; zeros where the edge found none.
    pub signature: [u8; 64],
    /// From the transaction's last byte at the edge to this verdict; `u32::MAX` for that or more.
    pub microseconds: u32,
    /// Further transactions that the limits admit at this moment.
    pub credit: u32,
    /// Where it landed, or was last seen.
    pub slot: Option<u64>,
    /// Whether it landed and its execution failed.
    pub has_execution_failed: bool,
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Nothing was sent.
    Refused(Reason),
    /// Sent to leaders, or a repetition of a transaction that was.
    Accepted,
    /// A block that is not confirmed contains it.
    Processed,
    /// A confirmed block contains it.
    Landed,
    /// Its blockhash is too old, and no block contains it.
    Expired,
    /// The edge no longer follows it.
    Dropped,
}

impl Verdict {
    /// Reads a verdict; None unless it has 88 bytes and version 1.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; VERDICT_BYTES] = bytes.try_into().ok()?;
        if bytes[0] != 1 {
            return None;
        }
        let number = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let outcome = match bytes[1] {
            0 => Outcome::Refused(Reason::from_code(u64::from(number(0) >> 16))),
            5 => Outcome::Processed,
            6 => Outcome::Landed,
            7 => Outcome::Expired,
            8 => Outcome::Dropped,
            // The format says so of states of later versions.
            _ => Outcome::Accepted,
        };
        let slot = u64::from(number(16)) | u64::from(number(20)) << 32;
        let mut signature = [0; 64];
        signature.copy_from_slice(&bytes[24..]);
        Some(Self {
            outcome,
            signature,
            microseconds: number(4),
            credit: number(8),
            slot: (slot != 0).then_some(slot),
            has_execution_failed: number(12) & EXECUTION_FAILED != 0,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Outcome, Verdict};
    use crate::reason::Reason;

    /// Bytes from hexadecimal text with spaces.
    pub(crate) fn bytes_of(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pairs = digits.chunks(2).map(|pair| str::from_utf8(pair).expect("ASCII"));
        pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal")).collect()
    }

    #[test]
    fn verdicts_are_those_of_the_formats_page() {
        let signature = "9c3e".repeat(32);
        let parse = |head: &str| Verdict::parse(&bytes_of(&format!("{head}{signature}")));
        let accepted = parse("01010000 2b000000 63000000 00000000 0000000000000000").expect("one");
        assert_eq!(accepted.outcome, Outcome::Accepted);
        assert_eq!((accepted.microseconds, accepted.credit, accepted.slot), (43, 99, None));
        assert_eq!(accepted.signature[..2], [0x9c, 0x3e]);
        let landed = parse("01060000 f9570900 62000000 00000000 fba5561500000000").expect("one");
        assert_eq!(landed.outcome, Outcome::Landed);
        assert_eq!((landed.microseconds, landed.slot), (612_345, Some(358_000_123)));
        assert!(!landed.has_execution_failed);
        let refused = parse("01000b01 3d000000 61000000 00000000 0000000000000000").expect("one");
        assert_eq!(refused.outcome, Outcome::Refused(Reason::SignatureInvalid));
    }

    #[test]
    fn other_versions_and_sizes_are_none() {
        assert_eq!(Verdict::parse(&[1; 87]), None);
        assert_eq!(Verdict::parse(&[1; 89]), None);
        assert_eq!(Verdict::parse(&[2; 88]), None);
        assert!(Verdict::parse(&[1; 88]).is_some_and(|one| one.has_execution_failed));
    }
}
