//! A key, a signature and a message are judged as by dalek's `verify_strict`, with a table of the
//! key and without, and by both ways of adding where the processor has both.
#![no_main]

use ed25519_dalek::{Signature, VerifyingKey};
use libfuzzer_sys::fuzz_target;
use touchdown_native::decode::tx::Accepted;
use touchdown_native::ed25519::sums::Backend;
use touchdown_native::ed25519::verify::Verifier;

fuzz_target!(|bytes: &[u8]| {
    let Some((signature, rest)) = bytes.split_first_chunk::<64>() else {
        return;
    };
    let Some((key, message)) = rest.split_first_chunk::<32>() else {
        return;
    };
    let accepted = Accepted {
        version: -1,
        signature_offset: 0,
        signature_count: 1,
        message_offset: 96,
        message_size: message.len(),
        keys_offset: 64,
        blockhash_offset: 0,
        durable_nonce: false,
        tip_lamports: 0,
        priority_fee_lamports: 0,
    };
    let expected = VerifyingKey::from_bytes(key)
        .is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok());
    for backend in [Backend::Scalar, Backend::best()] {
        let verifier = Verifier::with_backend(1, backend);
        assert_eq!(verifier.verify(bytes, &accepted).is_ok(), expected);
        verifier.tables().make(key);
        assert_eq!(verifier.verify(bytes, &accepted).is_ok(), expected);
    }
});
