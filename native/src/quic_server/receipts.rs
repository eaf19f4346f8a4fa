//! Receipts as the main thread sends them, in batches. Numbers are little-endian.
//!
//! ```text
//!  number of the account f64 ─ verdict, 88 bytes, as `src/edge/quic-receipts.ts` writes it
//! ```

use crate::quic_server::verdict::{VERDICT_BYTES, Verdict};

/// Bytes of a receipt.
const RECEIPT_BYTES: usize = 8 + VERDICT_BYTES;

/// A receipt of an account's transaction.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Receipt {
    pub(super) account: u64,
    pub(super) verdict: Verdict,
}

/// The receipts of a batch; bytes that are none are left out.
pub(super) fn receipts_of(batch: &[u8]) -> impl Iterator<Item = Receipt> {
    let (receipts, _) = batch.as_chunks::<RECEIPT_BYTES>();
    receipts.iter().filter_map(|bytes| {
        let (account, verdict) = bytes.split_first_chunk()?;
        let verdict = Verdict::read(verdict.try_into().ok()?)?;
        Some(Receipt { account: f64::from_le_bytes(*account) as u64, verdict })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_are_read_in_order() {
        let verdict = Verdict { state: 6, slot: 9, ..Verdict::decided(0, Some([7; 64])) };
        let number = 9_007_199_254_740_991f64.to_le_bytes();
        let one = [&number[..], &verdict.bytes()].concat();
        let mut other = one.clone();
        // Another version.
        other[8] = 2;
        let batch = [one.as_slice(), &other, &one, &[1; 5]].concat();
        let read: Vec<_> = receipts_of(&batch).collect();
        let expected = || Receipt { account: (1 << 53) - 1, verdict };
        assert_eq!(read, [expected(), expected()]);
    }
}
