//! The signatures of a transaction that is sound otherwise: shows `ed25519` what lies where, and names
//! the fault of the first that is bad.

use crate::decode::errors::{DecodeError, Rejected, reject};
use crate::decode::message::SIGNATURES_MAX;
use crate::decode::tx::Accepted;
use crate::ed25519::curve::BATCH_MAX;
use crate::ed25519::encoding::SignatureFault;
use crate::ed25519::verify::Verifier;

const _: () = assert!(SIGNATURES_MAX <= BATCH_MAX);

/// Refuses a transaction for the first of its signatures that is bad.
pub fn verify_signatures(
    verifier: &Verifier,
    bytes: &[u8],
    accepted: &Accepted,
) -> Result<(), Rejected> {
    let from = |offset: usize| bytes.get(offset..).unwrap_or_default();
    let count = accepted.signature_count;
    let Some(message) = from(accepted.message_offset).get(..accepted.message_size) else {
        return reject(DecodeError::signature_malformed, 0, count);
    };
    let (keys, _) = from(accepted.keys_offset).as_chunks();
    let (signatures, _) = from(accepted.signature_offset).as_chunks();
    verifier.verify(message, keys, signatures, count).or_else(|bad| {
        let fault = match bad.fault {
            SignatureFault::Missing => DecodeError::signature_missing,
            SignatureFault::KeyMalformed => DecodeError::signer_key_malformed,
            SignatureFault::Malformed => DecodeError::signature_malformed,
            SignatureFault::Wrong => DecodeError::signature_wrong,
        };
        reject(fault, bad.index, count)
    })
}
