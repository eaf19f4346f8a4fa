//! The signatures of an otherwise valid transaction: passes their location to `ed25519`, and
//! reports the error of the first bad one.

use crate::decode::errors::{DecodeError, Rejected, reject};
use crate::decode::message::SIGNATURES_MAX;
use crate::decode::tx::Accepted;
use crate::ed25519::curve::BATCH_MAX;
use crate::ed25519::encoding::SignatureError;
use crate::ed25519::verify::Verifier;

const _: () = assert!(SIGNATURES_MAX <= BATCH_MAX);

/// Rejects a transaction for its first bad signature.
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
        let error = match bad.error {
            SignatureError::Missing => DecodeError::signature_missing,
            SignatureError::KeyMalformed => DecodeError::signer_key_malformed,
            SignatureError::Malformed => DecodeError::signature_malformed,
            SignatureError::Wrong => DecodeError::signature_wrong,
        };
        reject(error, bad.index, count)
    })
}
