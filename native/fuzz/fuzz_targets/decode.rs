//! Any bytes get a validation result, and an accepted transaction's offsets lie inside it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use touchdown_native::decode::tip::TipRule;
use touchdown_native::decode::tx::parse;

fuzz_target!(|bytes: &[u8]| {
    let rule = TipRule { accounts: Box::new([]), lamports_min: -1 };
    if let Ok(found) = parse(bytes, &rule) {
        assert!(found.message_offset + found.message_size <= bytes.len());
        assert!(found.signature_offset + 64 * found.signature_count <= bytes.len());
        assert!(found.keys_offset + 32 * found.signature_count <= bytes.len());
        assert!(found.blockhash_offset + 32 <= bytes.len());
    }
});
