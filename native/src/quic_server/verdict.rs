//! The answer to one transaction, and a receipt: 88 bytes, little-endian, as `docs/quic.md`
//! describes them.
//!
//! ```text
//!  0  version 1 ─ state u8 ─ code u16 ─ microseconds u32 ─ credit u32 ─ bits u32
//! 16  slot u64
//! 24  signature
//! ```

/// Bytes of a verdict.
pub const VERDICT_BYTES: usize = 88;
/// Bytes of a transaction's signature.
pub const SIGNATURE_BYTES: usize = 64;
/// What begins every verdict.
const VERSION: u8 = 1;
/// Nothing was sent.
const STATE_REFUSED: u8 = 0;
/// Sent to leaders, or a repetition of a transaction that was.
pub(super) const STATE_ACCEPTED: u8 = 1;
/// The first of the states after which nothing more happens: landed, expired, dropped.
const STATE_LANDED: u8 = 6;

/// A verdict.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Verdict {
    /// 0 if it was refused, else 1 more than its index in `RECEIPT_STATES` of
    /// `src/core/receipt-state.ts`.
    pub state: u8,
    /// 0, or the code of the reason.
    pub code: u16,
    /// Since the transaction's last byte, at most `u32::MAX`.
    pub microseconds: u32,
    /// Transactions that the limits admit now.
    pub credit: u32,
    /// 1: it landed and its execution failed.
    pub bits: u32,
    /// Where it landed; 0: not known.
    pub slot: u64,
    /// Zeros if it has none.
    pub signature: [u8; SIGNATURE_BYTES],
}

impl Verdict {
    /// Of a decision: `code` 0 accepts.
    pub(super) fn decided(code: u32, signature: Option<[u8; SIGNATURE_BYTES]>) -> Self {
        Self {
            state: if code == 0 { STATE_ACCEPTED } else { STATE_REFUSED },
            code: u16::try_from(code).unwrap_or(u16::MAX),
            microseconds: 0,
            credit: 0,
            bits: 0,
            slot: 0,
            signature: signature.unwrap_or([0; SIGNATURE_BYTES]),
        }
    }

    /// Whether no later one follows.
    pub(super) fn is_final(&self) -> bool {
        self.state >= STATE_LANDED
    }

    /// As bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; VERDICT_BYTES] {
        let Self { state, code, microseconds, credit, bits, slot, signature } = self;
        let mut out = [0; VERDICT_BYTES];
        let fields: [&[u8]; 7] = [
            &[VERSION, *state],
            &code.to_le_bytes(),
            &microseconds.to_le_bytes(),
            &credit.to_le_bytes(),
            &bits.to_le_bytes(),
            &slot.to_le_bytes(),
            signature,
        ];
        for (to, from) in out.iter_mut().zip(fields.into_iter().flatten()) {
            *to = *from;
        }
        out
    }

    /// From bytes; None for another version.
    #[must_use]
    pub fn read(bytes: &[u8; VERDICT_BYTES]) -> Option<Self> {
        let (&[version, state, code_low, code_high], rest) = bytes.split_first_chunk()?;
        let (microseconds, rest) = rest.split_first_chunk()?;
        let (credit, rest) = rest.split_first_chunk()?;
        let (bits, rest) = rest.split_first_chunk()?;
        let (slot, rest) = rest.split_first_chunk()?;
        (version == VERSION).then_some(Self {
            state,
            code: u16::from_le_bytes([code_low, code_high]),
            microseconds: u32::from_le_bytes(*microseconds),
            credit: u32::from_le_bytes(*credit),
            bits: u32::from_le_bytes(*bits),
            slot: u64::from_le_bytes(*slot),
            signature: rest.try_into().ok()?,
        })
    }
}

/// Whole microseconds, at most `u32::MAX`.
pub(super) fn microseconds_of(ns: u64) -> u32 {
    u32::try_from(ns / 1_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The third verdict of the exchange in `docs/quic.md`.
    #[test]
    fn verdict_has_the_bytes_of_the_page() {
        let verdict = Verdict {
            microseconds: 61,
            credit: 97,
            ..Verdict::decided(0x10b, Some([7; SIGNATURE_BYTES]))
        };
        let bytes = verdict.bytes();
        assert_eq!(bytes[..12], [1, 0, 0x0b, 1, 0x3d, 0, 0, 0, 0x61, 0, 0, 0]);
        assert_eq!((&bytes[12..24], &bytes[24..]), (&[0; 12][..], &[7; 64][..]));
        assert_eq!(Verdict::read(&bytes), Some(verdict));
    }

    #[test]
    fn every_field_is_read_as_it_was_written() {
        let verdict = Verdict {
            state: 6,
            code: 0x0102,
            microseconds: u32::MAX,
            credit: 0x0304_0506,
            bits: 1,
            slot: 358_000_123,
            signature: std::array::from_fn(|at| at as u8),
        };
        let mut bytes = verdict.bytes();
        assert_eq!(bytes[16..24], [0xfb, 0xa5, 0x56, 0x15, 0, 0, 0, 0]);
        assert_eq!(Verdict::read(&bytes), Some(verdict));
        bytes[0] = 2;
        assert_eq!(Verdict::read(&bytes), None);
    }

    #[test]
    fn accepted_has_no_code_and_only_ends_are_final() {
        assert_eq!(Verdict::decided(0, None).state, STATE_ACCEPTED);
        assert_eq!(Verdict::decided(1, None).state, STATE_REFUSED);
        let is_final = |state| Verdict { state, ..Verdict::decided(0, None) }.is_final();
        assert_eq!([1, 5, 6, 7, 8].map(is_final), [false, false, true, true, true]);
        assert_eq!((microseconds_of(43_999), microseconds_of(u64::MAX)), (43, u32::MAX));
    }
}
