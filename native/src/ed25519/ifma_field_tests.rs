//! Compares vector arithmetic with scalar arithmetic, at the bounds of the limbs and between, and
//! checks that every result keeps its bound.
// Prints a notice when it cannot run here.
#![allow(clippy::print_stderr)]

use core::arch::x86_64::__m512i;

use crate::ed25519::field::{Fe, Sum};
use crate::ed25519::ifma_field::{IfmaField, columns};
use crate::ed25519::ifma_points::Ifma;

/// Exclusive upper bound of a factor's limbs.
const FACTOR: u64 = 1 << 52;
/// The bound that `carried` guarantees.
const CARRIED: u64 = (1 << 51) + (1 << 16);
/// Limbs at their bounds and next to them, for factors bounded by `FACTOR`.
const EXTREMES: [u64; 12] = [
    0,
    1,
    18,
    19,
    (1 << 51) - 20,
    (1 << 51) - 19,
    (1 << 51) - 1,
    1 << 51,
    CARRIED - 1,
    (1 << 52) - 38,
    (1 << 52) - 2,
    FACTOR - 1,
];

type Limbs = [u64; 5];

/// Pseudo-random numbers, the same in each run (xorshift64*).
fn roll(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
}

/// Limbs below a bound: all extremes, all random, or some of each.
fn limbs(state: &mut u64, bound: u64) -> Limbs {
    let kind = roll(state) % 4;
    let same = EXTREMES[roll(state) as usize % EXTREMES.len()];
    std::array::from_fn(|_| {
        let extreme = EXTREMES[roll(state) as usize % EXTREMES.len()];
        match kind {
            0 => same % bound,
            1 => extreme % bound,
            2 => roll(state) % bound,
            _ if roll(state) & 1 == 0 => extreme % bound,
            _ => roll(state) % bound,
        }
    })
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn lanes(numbers: &[Limbs; 8]) -> IfmaField {
    let rows = numbers.map(|[a, b, c, d, e]| [a, b, c, d, e, 0, 0, 0]);
    let [a, b, c, d, e, ..]: [__m512i; 8] = columns(rows.each_ref());
    IfmaField::of_limbs([a, b, c, d, e])
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn numbers(lanes: &IfmaField) -> [Limbs; 8] {
    let mut out = [[0; 5]; 8];
    for (lane, limbs) in out.iter_mut().enumerate() {
        let mut moved = *lanes;
        if lane & 4 != 0 {
            moved = moved.swapped::<4>();
        }
        if lane & 2 != 0 {
            moved = moved.swapped::<2>();
        }
        if lane & 1 != 0 {
            moved = moved.swapped::<1>();
        }
        *limbs = moved.first();
    }
    out
}

fn one(limbs: &Limbs) -> Fe {
    Sum::of_limbs(*limbs).carried()
}

fn assert_same(what: &str, found: &[Limbs; 8], expected: impl Fn(usize) -> Fe) {
    for (lane, limbs) in found.iter().enumerate() {
        assert!(limbs.iter().all(|limb| *limb < CARRIED), "{what}: {limbs:x?} is not carried");
        assert!(one(limbs).is(&expected(lane)), "{what} is wrong in lane {lane}");
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn compare(round: u64) {
    let mut state = round + 1;
    let a: [Limbs; 8] = std::array::from_fn(|_| limbs(&mut state, CARRIED));
    let b: [Limbs; 8] = std::array::from_fn(|_| limbs(&mut state, FACTOR));
    let c: [Limbs; 8] = std::array::from_fn(|_| limbs(&mut state, CARRIED));
    let (va, vb, vc) = (lanes(&a), lanes(&b), lanes(&c));
    assert_eq!((numbers(&va), numbers(&vb)), (a, b));

    let (ab, bc) = (va.times(&vb), vb.times(&vc));
    let (fe_ab, fe_bc) =
        (|i: usize| one(&a[i]).times(&one(&b[i])), |i: usize| one(&b[i]).times(&one(&c[i])));
    assert_same("a product", &numbers(&ab.carried()), fe_ab);
    assert_same("its sum", &numbers(&ab.plus(&bc)), |i| fe_ab(i).plus(&fe_bc(i)).carried());
    assert_same("its difference", &numbers(&ab.minus(&bc)), |i| {
        fe_ab(i).minus(&fe_bc(i)).carried()
    });
    let twice = |i: usize| fe_ab(i).plus(&fe_ab(i)).carried();
    assert_same("twice and a sum", &numbers(&ab.doubled().plus(&bc)), |i| {
        twice(i).plus(&fe_bc(i)).carried()
    });
    assert_same("twice and a difference", &numbers(&ab.doubled().minus(&bc)), |i| {
        twice(i).minus(&fe_bc(i)).carried()
    });
    let loose = numbers(&va.loose().minus(&ab));
    assert_same("less a product", &loose, |i| one(&a[i]).minus(&fe_ab(i)).carried());

    let mask = roll(&mut state) as u8;
    let picked = numbers(&va.or_where(mask, &vb));
    let table: [Limbs; 8] = std::array::from_fn(|_| limbs(&mut state, (1 << 51) + 1));
    let negated = numbers(&lanes(&table).negated_where(mask));
    for lane in 0..8 {
        let is_set = mask >> lane & 1 == 1;
        assert_eq!(picked[lane], if is_set { b[lane] } else { a[lane] });
        assert!(negated[lane].iter().all(|limb| *limb < FACTOR));
        let number = one(&table[lane]);
        assert!(one(&negated[lane]).is(&if is_set { number.negated() } else { number }));
    }
}

#[test]
fn vector_arithmetic_equals_scalar_arithmetic() {
    if Ifma::detected().is_none() {
        eprintln!("skipped: this processor has no AVX-512 IFMA");
        return;
    }
    for round in 0..20_000 {
        // SAFETY: the processor's features were checked.
        unsafe { compare(round) };
    }
}

/// The largest limbs that the bounds allow, from which the other bounds follow.
#[test]
fn the_largest_limbs_give_the_right_product() {
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn largest() {
        let (a, b) = ([[CARRIED - 1; 5]; 8], [[FACTOR - 1; 5]; 8]);
        let product = lanes(&a).times(&lanes(&b));
        let expected = one(&a[0]).times(&one(&b[0]));
        assert_same("the largest product", &numbers(&product.carried()), |_| expected);
        let zero = product.minus(&product);
        assert_same("less itself", &numbers(&zero), |_| Fe::ZERO);
        let three = product.doubled().plus(&product);
        let thrice = expected.plus(&expected).carried().plus(&expected).carried();
        assert_same("three of it", &numbers(&three), |_| thrice);
    }
    if Ifma::detected().is_some() {
        // SAFETY: the processor's features were checked.
        unsafe { largest() };
    }
}
