//! Compares methods of verifying a signature, and shapes of tables.
//!
//! Every method's result is asserted on a good and a bad signature, then timed: the median, minimum
//! and maximum of 15 rounds, in microseconds per signature, on one thread. Excluded: parsing, and
//! building tables (a separate row). `cargo bench --bench verify`; with `--features aws-lc` that
//! library is measured too, which takes a C compiler one minute to build.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::hint::black_box;
use std::time::Instant;

use curve25519_dalek::constants::ED25519_BASEPOINT_TABLE;
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsBasepointTable};
use curve25519_dalek::traits::{BasepointTable, VartimePrecomputedMultiscalarMul};
use curve25519_dalek::{EdwardsPoint, Scalar, edwards::VartimeEdwardsPrecomputation};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use ring::digest::{Context, SHA512};
use touchdown_native::decode::signatures::verify_signatures;
use touchdown_native::decode::tx::Accepted;
use touchdown_native::ed25519::comb_table::Comb;
use touchdown_native::ed25519::curve::{BASE, Point, inverses};
use touchdown_native::ed25519::multi_add::Backend;
use touchdown_native::ed25519::picks::Picks;
use touchdown_native::ed25519::verify::Verifier;

/// A typical transaction message size.
const MESSAGE_BYTES: usize = 300;
const ROUNDS: usize = 15;

struct Case {
    key: [u8; 32],
    signature: [u8; 64],
}

fn main() {
    let message = [5; MESSAGE_BYTES];
    let cases: Vec<Case> = (0..512_u32).map(|seed| case(seed, &message)).collect();
    println!("{:44} {:>8} {:>8} {:>8}", "us per signature", "median", "min", "max");
    libraries(&cases, &message);
    public_tables(&cases[..1], &message);
    for keys in [1, 64, 512] {
        println!("-- tables of {keys} keys in turn");
        let some = &cases[..keys];
        for backend in backends() {
            comb::<4, 7>(backend, some, &message);
            comb::<4, 8>(backend, some, &message);
            comb::<5, 7>(backend, some, &message);
            comb::<5, 8>(backend, some, &message);
            comb::<6, 8>(backend, some, &message);
        }
    }
    println!("-- the verifier, with counters and look-ups");
    for backend in backends() {
        for count in [1, 2, 4, 12] {
            verifier(backend, &cases[..count], &message, true);
        }
    }
    verifier(Backend::best(), &cases[..1], &message, false);
    ever_new_keys(&cases, &message);
}

/// The backends of this machine, the default first.
fn backends() -> Vec<Backend> {
    match Backend::best() {
        Backend::Scalar => vec![Backend::Scalar],
        best => vec![best, Backend::Scalar],
    }
}

fn name(backend: Backend) -> &'static str {
    match backend {
        Backend::Scalar => "scalar",
        #[cfg(target_arch = "x86_64")]
        Backend::Vector(_) => "AVX-512",
    }
}

fn case(seed: u32, message: &[u8]) -> Case {
    let mut secret = [1; 32];
    secret[..4].copy_from_slice(&seed.to_le_bytes());
    let secret = SigningKey::from_bytes(&secret);
    Case { key: secret.verifying_key().to_bytes(), signature: secret.sign(message).to_bytes() }
}

/// Times `run`, which processes `count` signatures per call.
fn time(name: &str, count: usize, mut run: impl FnMut()) {
    let calls = (1000 / count).max(1);
    (0..calls).for_each(|_| run());
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..calls).for_each(|_| run());
            start.elapsed().as_secs_f64() * 1e6 / (calls * count) as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    let (least, most) = (rounds[0], rounds[ROUNDS - 1]);
    println!("{name:44} {:8.2} {least:8.2} {most:8.2}", rounds[ROUNDS / 2]);
}

/// Asserts a method's results, and times it over all cases in turn.
fn way(name: &str, cases: &[Case], is_good: impl Fn(usize, &Case) -> bool) {
    let mut bad = Case { key: cases[0].key, signature: cases[0].signature };
    bad.signature[40] ^= 1;
    assert!(is_good(0, &cases[0]) && !is_good(0, &bad), "{name} answers wrongly");
    let mut next = 0;
    time(name, 1, || {
        assert!(is_good(next, black_box(&cases[next])));
        next = (next + 1) % cases.len();
    });
}

fn libraries(cases: &[Case], message: &[u8]) {
    way("dalek verify_strict", cases, |_, case| {
        let key = VerifyingKey::from_bytes(&case.key).unwrap();
        key.verify_strict(message, &Signature::from_bytes(&case.signature)).is_ok()
    });
    way("ring", cases, |_, case| {
        let key = ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, &case.key);
        key.verify(message, &case.signature).is_ok()
    });
    #[cfg(feature = "aws-lc")]
    way("aws-lc", cases, |_, case| {
        use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
        UnparsedPublicKey::new(&ED25519, &case.key).verify(message, &case.signature).is_ok()
    });
}

/// What dalek's public API offers for a known key.
fn public_tables(cases: &[Case], message: &[u8]) {
    let negated = -CompressedEdwardsY(cases[0].key).decompress().unwrap();
    let table = EdwardsBasepointTable::create(&negated);
    way("dalek EdwardsBasepointTable of the key", cases, |_, case| {
        let (k, s) = (challenge(case, message), scalar(case));
        let point: EdwardsPoint = table.mul_base(&k) + ED25519_BASEPOINT_TABLE * &s;
        point.compress().as_bytes() == &case.signature[..32]
    });
    time("  building that table", 1, || {
        black_box(EdwardsBasepointTable::create(black_box(&negated)));
    });
    let base = ED25519_BASEPOINT_TABLE.basepoint();
    let tables = VartimeEdwardsPrecomputation::new([negated, base]);
    way("dalek VartimeEdwardsPrecomputation", cases, |_, case| {
        let point = tables.vartime_multiscalar_mul([challenge(case, message), scalar(case)]);
        point.compress().as_bytes() == &case.signature[..32]
    });
}

fn comb<const WIDTH: usize, const BASE_WIDTH: usize>(
    backend: Backend,
    cases: &[Case],
    message: &[u8],
) {
    let point = |key| Point::decompress(key).unwrap();
    let base = Comb::<BASE_WIDTH>::new(&point(&BASE));
    let tables: Vec<_> =
        cases.iter().map(|case| Comb::<WIDTH>::new(&point(&case.key).negated())).collect();
    let sizes = (Comb::<WIDTH>::size() / 1024, Comb::<BASE_WIDTH>::size() / 1024);
    let by = name(backend);
    let name = format!("{by}: {WIDTH} bits ({} kB), base {BASE_WIDTH} ({} kB)", sizes.0, sizes.1);
    way(&name, cases, |index, case| {
        let mut picks = Picks::new();
        base.pick(&case.signature[32..].try_into().unwrap(), &mut picks);
        tables[index].pick(&challenge(case, message).to_bytes(), &mut picks);
        let point = backend.sum(&picks);
        point.compress(&inverses(&[point])[0])[..] == case.signature[..32]
    });
    if cases.len() == 1 {
        let negated = point(&cases[0].key).negated();
        time("  building the key's table", 1, || {
            black_box(Comb::<WIDTH>::new(black_box(&negated)));
        });
    }
}

fn verifier(backend: Backend, cases: &[Case], message: &[u8], tabled: bool) {
    let verifier = Verifier::with_backend(if tabled { 256 } else { 0 }, backend);
    for case in cases {
        verifier.table_cache().make(&case.key);
    }
    let (bytes, accepted) = lay(cases, message);
    let count = cases.len();
    let kind = if tabled { name(backend) } else { "without a table" };
    time(&format!("{count} signatures of one transaction, {kind}"), count, || {
        assert!(verify_signatures(&verifier, black_box(&bytes), &accepted).is_ok());
    });
}

/// The cost of a flood of keys used once or twice each, compared with no cache.
fn ever_new_keys(cases: &[Case], message: &[u8]) {
    let laid: Vec<_> = cases.iter().map(|case| lay(std::slice::from_ref(case), message)).collect();
    for (name, keys, sights) in [
        ("512 keys once each, no cache", 0, 1),
        ("512 keys once each, cache of 64", 64, 1),
        ("512 keys twice each, no cache", 0, 2),
        ("512 keys twice each, cache of 64", 64, 2),
    ] {
        time(name, cases.len() * sights, || {
            let verifier = Verifier::new(keys);
            for (bytes, accepted) in &laid {
                for _ in 0..sights {
                    assert!(verify_signatures(&verifier, bytes, accepted).is_ok());
                }
            }
        });
    }
}

/// Signatures, then keys, then the message.
fn lay(cases: &[Case], message: &[u8]) -> (Vec<u8>, Accepted) {
    let mut bytes: Vec<u8> = cases.iter().flat_map(|case| case.signature).collect();
    bytes.extend(cases.iter().flat_map(|case| case.key));
    bytes.extend(message);
    let count = cases.len();
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

fn challenge(case: &Case, message: &[u8]) -> Scalar {
    let mut hash = Context::new(&SHA512);
    hash.update(&case.signature[..32]);
    hash.update(&case.key);
    hash.update(message);
    Scalar::from_bytes_mod_order_wide(hash.finish().as_ref().try_into().unwrap())
}

fn scalar(case: &Case) -> Scalar {
    Scalar::from_bytes_mod_order(case.signature[32..].try_into().unwrap())
}
