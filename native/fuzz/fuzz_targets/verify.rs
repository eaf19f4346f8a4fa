//! A key, a signature and a message are verified as by dalek's `verify_strict`, with a table of the
//! key and without, and by both backends if the processor has both.
#![no_main]

use ed25519_dalek::{Signature, VerifyingKey};
use libfuzzer_sys::fuzz_target;
use touchdown_native::ed25519::multi_add::Backend;
use touchdown_native::ed25519::verify::Verifier;

fuzz_target!(|bytes: &[u8]| {
    let Some((signature, rest)) = bytes.split_first_chunk::<64>() else {
        return;
    };
    let Some((key, message)) = rest.split_first_chunk::<32>() else {
        return;
    };
    let expected = VerifyingKey::from_bytes(key)
        .is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok());
    let verify = |verifier: &Verifier| {
        verifier
            .verify(message, std::slice::from_ref(key), std::slice::from_ref(signature), 1)
            .is_ok()
    };
    for backend in [Backend::Scalar, Backend::best()] {
        let verifier = Verifier::with_backend(1, backend);
        assert_eq!(verify(&verifier), expected);
        verifier.table_cache().make(key);
        assert_eq!(verify(&verifier), expected);
    }
});
