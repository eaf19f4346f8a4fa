//! The verifier gives the results of dalek's `verify_strict`: with a table and without, one
//! signature at a time and several together, and with every backend of this machine.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use curve25519_dalek::constants::{ED25519_BASEPOINT_TABLE, EIGHT_TORSION};
use curve25519_dalek::{EdwardsPoint, Scalar};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use sha2::{Digest, Sha512};
use touchdown_native::decode::errors::{DecodeError, Rejected};
use touchdown_native::decode::signatures::verify_signatures;
use touchdown_native::decode::tx::Accepted;
use touchdown_native::ed25519::multi_add::Backend;
use touchdown_native::ed25519::verify::Verifier;

/// One key and its signature.
type Signed = ([u8; 32], [u8; 64]);

/// The minimum that a verifier reads: signatures, then keys, then the message.
fn lay(signed: &[Signed], message: &[u8]) -> (Vec<u8>, Accepted) {
    let mut bytes: Vec<u8> = signed.iter().flat_map(|(_, signature)| *signature).collect();
    bytes.extend(signed.iter().flat_map(|(key, _)| *key));
    bytes.extend(message);
    let count = signed.len();
    let accepted = Accepted {
        version: -1,
        signature_offset: 0,
        signature_count: count,
        message_offset: 96 * count,
        message_size: message.len(),
        keys_offset: 64 * count,
        blockhash_offset: 0,
        durable_nonce: false,
        tip_lamports: 0,
        priority_fee_lamports: 0,
    };
    (bytes, accepted)
}

fn answer(verifier: &Verifier, signed: &[Signed], message: &[u8]) -> Result<(), Rejected> {
    let (bytes, accepted) = lay(signed, message);
    verify_signatures(verifier, &bytes, &accepted)
}

fn strict((key, signature): &Signed, message: &[u8]) -> bool {
    let signature = Signature::from_bytes(signature);
    VerifyingKey::from_bytes(key).is_ok_and(|key| key.verify_strict(message, &signature).is_ok())
}

/// The backends to test. The scalar one runs everywhere.
fn backends() -> Vec<Backend> {
    match Backend::best() {
        Backend::Scalar => {
            eprintln!("this processor has no AVX-512 IFMA: the vector backend is not tested");
            vec![Backend::Scalar]
        }
        best => vec![Backend::Scalar, best],
    }
}

/// A verifier with capacity for tables for each backend, and one without.
fn verifiers(keys: usize) -> (Vec<Verifier>, Verifier) {
    let tabled = backends().into_iter().map(|backend| Verifier::with_backend(keys, backend));
    (tabled.collect(), Verifier::new(0))
}

/// Compares verifiers that have the key's table, whatever the key, and one that has none.
fn agree(tabled: &[Verifier], plain: &Verifier, signed: &Signed, message: &[u8]) -> bool {
    let expected = strict(signed, message);
    for verifier in tabled {
        verifier.table_cache().make(&signed.0);
        assert_eq!(answer(verifier, &[*signed], message).is_ok(), expected, "{signed:02x?}");
    }
    assert_eq!(answer(plain, &[*signed], message).is_ok(), expected, "{signed:02x?}");
    expected
}

fn vectors(name: &str, message_of: impl Fn(&str) -> Vec<u8>) -> Vec<(Signed, Vec<u8>, bool)> {
    let path = format!("{}/../test/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let field = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap().to_owned();
    rows.iter()
        .filter_map(|row| {
            let signature = unhex(&field(row, "signature")).try_into().ok()?;
            let key = unhex(&field(row, "key")).try_into().unwrap();
            let accept = row["accept"].as_bool().unwrap();
            Some(((key, signature), message_of(&field(row, "message")), accept))
        })
        .collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// Pseudo-random numbers, the same in each run (xorshift64*).
struct Rng(u64);

impl Rng {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.roll() % bound as u64) as usize
    }

    fn bytes<const SIZE: usize>(&mut self) -> [u8; SIZE] {
        std::array::from_fn(|_| self.roll() as u8)
    }
}

#[test]
fn every_vector_is_verified_as_by_verify_strict() {
    let (tabled, plain) = verifiers(1024);
    let wycheproof = vectors("ed25519-wycheproof.json", unhex);
    let speccheck = vectors("ed25519-speccheck.json", unhex);
    let cctv = vectors("ed25519-cctv.json", |text| text.as_bytes().to_vec());
    let mut accepted = [0, 0, 0];
    for (i, rows) in [wycheproof, cctv, speccheck].iter().enumerate() {
        for (signed, message, accept) in rows {
            assert_eq!(agree(&tabled, &plain, signed, message), *accept);
            accepted[i] += usize::from(*accept);
        }
    }
    assert_eq!(accepted, [88, 43, 1]);
    assert!(tabled.iter().all(|verifier| verifier.key_counters().found > 100));
}

#[test]
fn the_corpus_is_verified_as_by_verify_strict() {
    let (tabled, plain) = verifiers(1024);
    let folder = format!("{}/fuzz/corpus/verify", env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let Some((signature, rest)) = bytes.split_first_chunk::<64>() else {
            continue;
        };
        if let Some((key, message)) = rest.split_first_chunk::<32>() {
            agree(&tabled, &plain, &(*key, *signature), message);
            count += 1;
        }
    }
    assert!(count > 30);
}

#[test]
fn signatures_with_one_thing_changed_are_verified_as_by_verify_strict() {
    let (tabled, plain) = verifiers(1024);
    let mut rng = Rng(1);
    let keys: Vec<_> = (0..16).map(|_| SigningKey::from_bytes(&rng.bytes())).collect();
    let mut accepted = 0;
    for round in 0..4000 {
        let key = &keys[rng.below(keys.len())];
        let mut message = vec![0; rng.below(600)];
        message.iter_mut().for_each(|byte| *byte = rng.roll() as u8);
        let mut signed = (key.verifying_key().to_bytes(), key.sign(&message).to_bytes());
        match (round % 8, rng.below(8)) {
            (0, bit) => signed.1[rng.below(64)] ^= 1 << bit,
            (1, bit) => signed.0[rng.below(32)] ^= 1 << bit,
            (2, bit) if !message.is_empty() => {
                let at = rng.below(message.len());
                message[at] ^= 1 << bit;
            }
            (3, at) => signed.1[32 + 8 * (at % 4)..40 + 8 * (at % 4)].fill(0xff),
            _ => {}
        }
        accepted += usize::from(agree(&tabled, &plain, &signed, &message));
    }
    assert!((2000..2600).contains(&accepted), "{accepted} accepted");
}

/// A key or an R that is a valid point plus one of small order verifies if the equation holds
/// without the cofactor, and only then.
#[test]
fn points_with_a_small_order_component_are_verified_as_by_verify_strict() {
    let (tabled, plain) = verifiers(1024);
    let mut rng = Rng(2);
    let mut accepted = 0;
    let mut rejected = 0;
    for round in 0..600 {
        let secret = Scalar::from_bytes_mod_order(rng.bytes());
        let nonce = Scalar::from_bytes_mod_order(rng.bytes());
        let in_key = EIGHT_TORSION[rng.below(8)];
        let in_r = EIGHT_TORSION[if round % 2 == 0 { 0 } else { rng.below(8) }];
        let key: EdwardsPoint = ED25519_BASEPOINT_TABLE * &secret + in_key;
        let r: EdwardsPoint = ED25519_BASEPOINT_TABLE * &nonce + in_r;
        let (key, r) = (key.compress().to_bytes(), r.compress().to_bytes());
        let message = rng.bytes::<40>();
        let hash = Sha512::new().chain_update(r).chain_update(key).chain_update(message);
        let k = Scalar::from_bytes_mod_order_wide(&hash.finalize().into());
        let mut signature = [0; 64];
        signature[..32].copy_from_slice(&r);
        signature[32..].copy_from_slice((nonce + k * secret).as_bytes());
        match agree(&tabled, &plain, &(key, signature), &message) {
            true => accepted += 1,
            false => rejected += 1,
        }
    }
    assert!(accepted > 50 && rejected > 50, "{accepted} accepted, {rejected} refused");
}

#[test]
fn every_point_of_small_order_is_rejected_as_key_and_as_r() {
    let (tabled, plain) = verifiers(64);
    for key in EIGHT_TORSION {
        for r in EIGHT_TORSION {
            let mut signature = [0; 64];
            signature[..32].copy_from_slice(r.compress().as_bytes());
            let signed = (key.compress().to_bytes(), signature);
            assert!(!agree(&tabled, &plain, &signed, b"whatever"));
        }
    }
}

#[test]
fn the_first_bad_signature_is_reported() {
    for backend in backends() {
        name_the_first_bad_one(backend);
    }
}

fn name_the_first_bad_one(backend: Backend) {
    let mut rng = Rng(3);
    let message = b"several";
    for round in 0..400 {
        let verifier = Verifier::with_backend(64, backend);
        let count = 1 + rng.below(12);
        let mut signed = Vec::new();
        for _ in 0..count {
            let key = SigningKey::from_bytes(&rng.bytes());
            signed.push((key.verifying_key().to_bytes(), key.sign(message).to_bytes()));
            if rng.below(2) == 0 {
                verifier.table_cache().make(&key.verifying_key().to_bytes());
            }
        }
        let is_missing = round % 3 == 0;
        let mut first = count;
        for _ in 0..rng.below(4) {
            let at = rng.below(count);
            // The key as R is a valid point, and this S is below the order.
            let wrong = [signed[at].0, [1; 32]].concat().try_into().unwrap();
            signed[at].1 = if is_missing { [0; 64] } else { wrong };
            first = first.min(at);
        }
        let error =
            if is_missing { DecodeError::signature_missing } else { DecodeError::signature_wrong };
        let expected = match first < count {
            true => Err(Rejected { error, found: first as i64, needed: count as i64 }),
            false => Ok(()),
        };
        assert_eq!(answer(&verifier, &signed, message), expected);
        let [verified, invalid] = verifier.counters();
        assert_eq!((verified, invalid), (first as u64, u64::from(first < count)));
    }
}

#[test]
fn errors_are_reported_in_order() {
    let verifier = Verifier::new(4);
    let sound = SigningKey::from_bytes(&[7; 32]);
    let key = sound.verifying_key().to_bytes();
    let small = EIGHT_TORSION[1].compress().to_bytes();
    let good = sound.sign(b"m").to_bytes();
    let error = |key, signature| answer(&verifier, &[(key, signature)], b"m").unwrap_err().error;

    assert_eq!(error(small, [0; 64]), DecodeError::signature_missing);
    let mut malleable = good;
    malleable[63] |= 0xf0;
    assert_eq!(error(small, malleable), DecodeError::signer_key_malformed);
    assert_eq!(error(key, malleable), DecodeError::signature_malformed);
    let mut small_r = good;
    small_r[..32].copy_from_slice(&small);
    assert_eq!(error(key, small_r), DecodeError::signature_malformed);
    let mut wrong = good;
    wrong[0] ^= 1;
    assert_eq!(error(key, wrong), DecodeError::signature_wrong);
}
