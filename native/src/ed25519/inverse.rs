//! Inverses modulo p = 2^255 - 19 by the division steps of Bernstein and Yang 2019, "Fast
//! constant-time gcd computation and modular inversion", section 8, in variable time, since nothing
//! inverted here is secret: a third of the time of the power.
//!
//! The steps depend on the lowest bits of f and g only, so 62 of them are made on two words and
//! kept as a matrix, and only then are the long numbers multiplied by it:
//!
//!     f, g = p, x     (f, g) ◀─ matrix (f, g) / 2^62            until g = 0, when f is 1 or -1
//!     d, e = 0, 1     (d, e) ◀─ matrix (d, e) / 2^62 mod p      and d is f / x: d x = f holds
//!
//! The numbers are in two's complement, in limbs of 62 bits, of which the last has the sign.
//! Callers check a result by a multiplication, so a mistake here costs time and never changes a
//! validation result.
//!
//! Decision: docs/decisions/0013-checked-modular-inverse.md

/// Bits of a limb, and steps of a matrix.
const BITS: u32 = 62;
/// The bits of a limb.
const MASK: u64 = (1 << BITS) - 1;
/// p, with -19 in the lowest limb.
const P: Long = [-19, 0, 0, 0, 1 << 7];
/// 1 / p modulo 2^62, by Newton's method: each round doubles the number of correct bits.
const P_INVERTED: u64 = {
    let p = 19_u64.wrapping_neg();
    let mut inverse = p;
    let mut round = 0;
    while round < 5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(p.wrapping_mul(inverse)));
        round += 1;
    }
    inverse & MASK
};
/// Maximum matrices for inputs below 2^256: 741 steps at most, theorem 11.2 of the paper.
const ROUNDS_MAX: usize = 12;

/// A number in limbs; all but the last are in 0..2^62 unless stated otherwise.
type Long = [i64; 5];

/// 62 steps, times 2^62: |u| + |v| and |q| + |r| are at most 2^62.
struct Matrix {
    u: i64,
    v: i64,
    q: i64,
    r: i64,
}

/// 1 / x modulo p, for x below p; both little-endian. None for 0.
pub(crate) fn inverse(x: &[u8; 32]) -> Option<[u8; 32]> {
    let mut f = carried(P);
    let mut g = limbs(x);
    let mut d = [0; 5];
    let mut e = [1, 0, 0, 0, 0];
    let mut eta = -1;
    for _ in 0..ROUNDS_MAX {
        let matrix = Matrix::of_steps(&mut eta, f[0] as u64, g[0] as u64);
        (d, e) = matrix.times_modulo(&d, &e);
        (f, g) = matrix.times(&f, &g);
        if g == [0; 5] {
            return match f {
                [1, 0, 0, 0, 0] => Some(bytes(d)),
                [_, _, _, _, -1] => Some(bytes(d.map(|limb| -limb))),
                _ => None,
            };
        }
    }
    None
}

impl Matrix {
    /// 62 steps from the lowest bits of f, which is odd, and g. `eta` is the paper's -delta.
    #[inline]
    fn of_steps(eta: &mut i64, mut f: u64, mut g: u64) -> Self {
        let (mut u, mut v, mut q, mut r) = (1, 0, 0, 1);
        let mut left = BITS;
        loop {
            // An even g is halved; the second row stays, and the first is doubled instead.
            let zeros = (g | u64::MAX << left).trailing_zeros();
            g >>= zeros;
            (u, v) = (u << zeros, v << zeros);
            *eta -= i64::from(zeros);
            left -= zeros;
            if left == 0 {
                return Self { u, v, q, r };
            }
            if *eta < 0 {
                *eta = -*eta;
                (f, g) = (g, f.wrapping_neg());
                (u, q) = (q, -u);
                (v, r) = (r, -v);
            }
            // The next eta + 1 steps do not change f, so as many bits of g can be cleared together
            // by a multiple of f: 6 bits of -g / f, as f (2 - f^2) is 1 / f modulo 2^6.
            let bits = left.min(6).min((*eta).min(5) as u32 + 1);
            let root = f.wrapping_mul(f).wrapping_sub(2);
            let times = f.wrapping_mul(g).wrapping_mul(root) & ((1 << bits) - 1);
            g = g.wrapping_add(f.wrapping_mul(times));
            q += u * times as i64;
            r += v * times as i64;
        }
    }

    /// (u f + v g, q f + r g) / 2^62, which is exact.
    #[inline]
    fn times(&self, f: &Long, g: &Long) -> (Long, Long) {
        let pairs = |a, b| {
            let mut out = [0; 5];
            let mut sum = 0_i128;
            for ((slot, f), g) in out.iter_mut().zip(f).zip(g) {
                sum += wide(a, *f) + wide(b, *g);
                *slot = (sum as u64 & MASK) as i64;
                sum >>= BITS;
            }
            let [_, x0, x1, x2, x3] = out;
            [x0, x1, x2, x3, sum as i64]
        };
        (pairs(self.u, self.v), pairs(self.q, self.r))
    }

    /// (u d + v e, q d + r e) / 2^62 modulo p; all values between -2 p and p.
    #[inline]
    fn times_modulo(&self, d: &Long, e: &Long) -> (Long, Long) {
        let pairs = |a: i64, b: i64| {
            // Adding p for each that is below 0 keeps the sum between -2^62 p and 2^62 p, and the
            // multiple of p that clears the lowest limb, fewer than 2^62, is subtracted.
            let base = (a & (d[4] >> 63)) + (b & (e[4] >> 63));
            let low = (a as u64).wrapping_mul(d[0] as u64);
            let low = low.wrapping_add((b as u64).wrapping_mul(e[0] as u64));
            let over = P_INVERTED.wrapping_mul(low).wrapping_add(base as u64) & MASK;
            let times = base - over as i64;
            let mut out = [0; 5];
            let mut sum = 0_i128;
            for (((slot, d), e), p) in out.iter_mut().zip(d).zip(e).zip(P) {
                sum += wide(a, *d) + wide(b, *e) + wide(times, p);
                *slot = (sum as u64 & MASK) as i64;
                sum >>= BITS;
            }
            let [_, x0, x1, x2, x3] = out;
            [x0, x1, x2, x3, sum as i64]
        };
        (pairs(self.u, self.v), pairs(self.q, self.r))
    }
}

fn wide(a: i64, b: i64) -> i128 {
    i128::from(a) * i128::from(b)
}

/// The same number with all limbs but the last in 0..2^62, whatever their range before.
fn carried(mut number: Long) -> Long {
    let mut carry = 0;
    let [low @ .., last] = &mut number;
    for limb in low {
        let sum = *limb + carry;
        *limb = (sum as u64 & MASK) as i64;
        carry = sum >> BITS;
    }
    *last += carry;
    number
}

/// number + times * p
fn plus_p(number: &Long, times: i64) -> Long {
    let mut out = *number;
    out.iter_mut().zip(P).for_each(|(limb, p)| *limb += times * p);
    carried(out)
}

/// The limbs of a little-endian number below 2^256.
fn limbs(bytes: &[u8; 32]) -> Long {
    let (words, _) = bytes.as_chunks();
    let mut out = [0; 5];
    let mut bits = 0_u128;
    let mut held = 0;
    let mut words = words.iter();
    for limb in &mut out {
        if held < BITS
            && let Some(word) = words.next()
        {
            bits |= u128::from(u64::from_le_bytes(*word)) << held;
            held += 64;
        }
        *limb = (bits as u64 & MASK) as i64;
        bits >>= BITS;
        held = held.saturating_sub(BITS);
    }
    out
}

/// The bytes, little-endian, of a number between -2 p and 2 p, modulo p and below 2^255.
fn bytes(number: Long) -> [u8; 32] {
    let mut number = carried(number);
    while number[4] < 0 {
        number = plus_p(&number, 1);
    }
    if number[4] >= P[4] {
        number = plus_p(&number, -1);
    }
    let mut out = [0; 32];
    let mut bits = 0_u128;
    let mut held = 0;
    let mut limbs = number.iter();
    for slot in out.as_chunks_mut::<8>().0 {
        while held < 64
            && let Some(limb) = limbs.next()
        {
            bits |= u128::from(*limb as u64) << held;
            held += BITS;
        }
        *slot = (bits as u64).to_le_bytes();
        bits >>= 64;
        held = held.saturating_sub(64);
    }
    out
}
