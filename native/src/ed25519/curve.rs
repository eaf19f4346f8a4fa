//! Points of edwards25519: -x^2 + y^2 = 1 + d x^2 y^2.
//!
//! The addition law used is complete, so no input is an exception. The accumulator of a
//! verification is a `Point`; the addends come from tables and are `Niels`, which take 7
//! multiplications. Formulas: Hisil, Wong, Carter, Dawson 2008, "Twisted Edwards Curves Revisited",
//! section 3 and 4.2, for a = -1; 2026-11.

use crate::ed25519::field::{Fe, Sum};

/// d = -121665 / 121666, little-endian. RFC 8032 section 5.1, 2026-11.
const D: [u8; 32] = [
    0xa3, 0x78, 0x59, 0x13, 0xca, 0x4d, 0xeb, 0x75, 0xab, 0xd8, 0x41, 0x41, 0x4d, 0x0a, 0x70, 0x00,
    0x98, 0xe8, 0x79, 0x77, 0x79, 0x40, 0xc7, 0x8c, 0x73, 0xfe, 0x6f, 0x2b, 0xee, 0x6c, 0x03, 0x52,
];
/// 2^((p - 1) / 4), a square root of -1, little-endian. RFC 8032 section 5.1.3, 2026-11.
const ROOT_OF_MINUS_ONE: [u8; 32] = [
    0xb0, 0xa0, 0x0e, 0x4a, 0x27, 0x1b, 0xee, 0xc4, 0x78, 0xe4, 0x2f, 0xad, 0x06, 0x18, 0x43, 0x2f,
    0xa7, 0xd7, 0xfb, 0x3d, 0x99, 0x00, 0x4d, 0x2b, 0x0b, 0xdf, 0xc1, 0x4f, 0x80, 0x24, 0x83, 0x2b,
];
/// The base point. RFC 8032 section 5.1, 2026-11.
pub const BASE: [u8; 32] = {
    let mut bytes = [0x66; 32];
    bytes[0] = 0x58;
    bytes
};

/// (X : Y : Z : T) with x = X / Z, y = Y / Z and xy = T / Z.
#[derive(Clone, Copy)]
pub struct Point {
    x: Fe,
    y: Fe,
    z: Fe,
    t: Fe,
}

/// A point in affine form, ready to be added: (y + x) / 2, (y - x) / 2 and d x y, in consecutive
/// limbs of 51 bits. The halves save the doubling of Z that the formula otherwise has; a
/// subtraction is an addition with the first two swapped and the last negated. It fills two cache
/// lines, and a vector reads each in one load.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Niels([[u64; 8]; 2]);

/// ((X : Z), (Y : T)) with x = X / Z and y = Y / T.
struct Completed {
    x: Sum,
    y: Sum,
    z: Sum,
    t: Sum,
}

impl Completed {
    #[inline(always)]
    fn point(&self) -> Point {
        Point {
            x: self.x.times(&self.t),
            y: self.y.times(&self.z),
            z: self.z.times(&self.t),
            t: self.x.times(&self.y),
        }
    }
}

impl Point {
    /// The neutral element.
    pub const NEUTRAL: Self = Self { x: Fe::ZERO, y: Fe::ONE, z: Fe::ONE, t: Fe::ZERO };

    /// The limbs of 2 d, each below 2^51.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const TWICE_D: [u64; 5] = [
        0x0006_9b94_26b2_f159,
        0x0003_5050_762a_dd7a,
        0x0003_cf44_c003_8052,
        0x0006_738c_c740_7977,
        0x0002_406d_9dc5_6dff,
    ];

    /// The point with this encoding, as dalek decodes it: a y at or above p is taken modulo p, and
    /// the sign of x = 0 is ignored. None when no point of the curve has it.
    #[must_use]
    pub fn decompress(bytes: &[u8; 32]) -> Option<Self> {
        let y = Fe::from_bytes(bytes);
        let yy = y.squared();
        let u = yy.minus(&Fe::ONE).carried();
        let v = yy.times(&Fe::from_bytes(&D)).plus(&Fe::ONE).carried();
        // x = u v^3 (u v^7)^((p - 5) / 8), times the root of -1 if needed.
        let v3 = v.squared().times(&v);
        let v7 = v3.squared().times(&v);
        let mut x = u.times(&v7).root_start().times(&u.times(&v3));
        let check = x.squared().times(&v);
        if !check.is(&u) {
            if !check.is(&u.negated()) {
                return None;
            }
            x = x.times(&Fe::from_bytes(&ROOT_OF_MINUS_ONE));
        }
        if x.is_odd() != (bytes[31] & 0x80 != 0) {
            x = x.negated();
        }
        Some(Self { x, y, z: Fe::ONE, t: x.times(&y) })
    }

    /// The point from limbs of y + x, y - x, z and t, each below 3 * 2^51.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn of_sums(sum: [u64; 5], difference: [u64; 5], z: [u64; 5], t: [u64; 5]) -> Self {
        let carried = |limbs| Sum::of_limbs(limbs).carried();
        let (sum, difference, z, t) = (carried(sum), carried(difference), carried(z), carried(t));
        // All four are doubled, which is the same point.
        Self {
            x: sum.minus(&difference).carried(),
            y: sum.plus(&difference).carried(),
            z: z.plus(&z).carried(),
            t: t.plus(&t).carried(),
        }
    }

    /// The canonical encoding, given 1 / Z.
    #[must_use]
    pub fn compress(&self, z_inverted: &Fe) -> [u8; 32] {
        let mut bytes = self.y.times(z_inverted).to_bytes();
        bytes[31] |= u8::from(self.x.times(z_inverted).is_odd()) << 7;
        bytes
    }

    /// -self
    #[must_use]
    pub fn negated(&self) -> Self {
        Self { x: self.x.negated(), y: self.y, z: self.z, t: self.t.negated() }
    }

    /// The point in affine form, given 1 / Z.
    #[must_use]
    pub fn niels(&self, z_inverted: &Fe) -> Niels {
        let (x, y) = (self.x.times(z_inverted), self.y.times(z_inverted));
        // The inverse of 2 is (p + 1) / 2 = 2^254 - 9.
        let mut half = [0xff; 32];
        half[0] = 0xf7;
        half[31] = 0x3f;
        let half = Fe::from_bytes(&half).sum();
        let halves = [y.plus(&x).times(&half), y.minus(&x).times(&half)];
        Niels::new(halves, x.times(&y).times(&Fe::from_bytes(&D)))
    }

    /// self + other; 8 multiplications more than adding a `Niels`.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mm = self.y.minus(&self.x).times(&other.y.minus(&other.x));
        let pp = self.y.plus(&self.x).times(&other.y.plus(&other.x));
        let dtt = self.t.times(&other.t).times(&Fe::from_bytes(&D));
        let (tt2, zz) = (dtt.plus(&dtt).carried(), self.z.times(&other.z));
        let zz2 = zz.plus(&zz).carried();
        Completed { x: pp.minus(&mm), y: pp.plus(&mm), z: zz2.plus(&tt2), t: zz2.minus(&tt2) }
            .point()
    }

    /// self + other, or self - other
    #[inline(always)]
    #[must_use]
    pub fn plus_niels(&self, other: &Niels, negative: bool) -> Self {
        let (plus, minus, dxy) = other.parts();
        let (a, b) = if negative { (minus, plus) } else { (plus, minus) };
        let pp = self.y.plus(&self.x).times(&a.sum());
        let mm = self.y.minus(&self.x).times(&b.sum());
        let dt = self.t.times(&dxy);
        let (sum, difference) = (self.z.plus(&dt), self.z.minus(&dt));
        let (z, t) = if negative { (difference, sum) } else { (sum, difference) };
        Completed { x: pp.minus(&mm), y: pp.plus(&mm), z, t }.point()
    }

    /// 2^times * self
    #[must_use]
    pub fn doubled(&self, times: u32) -> Self {
        let mut out = *self;
        for _ in 0..times {
            let (xx, yy, zz) = (out.x.squared(), out.y.squared(), out.z.squared());
            let (sum, difference) = (yy.plus(&xx).carried(), yy.minus(&xx).carried());
            let x = out.x.plus(&out.y).squared().minus(&sum);
            let zz2 = zz.plus(&zz).carried();
            out = Completed { x, y: sum.sum(), z: difference.sum(), t: zz2.minus(&difference) }
                .point();
        }
        out
    }
}

/// Writes 1 / Z of every point, at the cost of one inversion and three multiplications per point.
fn invert(points: &[Point], out: &mut [Fe]) {
    let mut product = Fe::ONE;
    for (slot, point) in out.iter_mut().zip(points) {
        *slot = product;
        product = product.times(&point.z);
    }
    let mut inverse = product.inverted();
    for (slot, point) in out.iter_mut().zip(points).rev() {
        *slot = slot.times(&inverse);
        inverse = inverse.times(&point.z);
    }
}

impl Niels {
    /// The neutral element: x = 0, y = 1.
    pub const NEUTRAL: Self = {
        const REST: u64 = (1 << 51) - 1;
        let half = [REST - 8, REST, REST, REST, REST >> 1];
        Self::of_limbs(half, half, [0; 5])
    };

    fn new([plus, minus]: [Fe; 2], dxy: Fe) -> Self {
        Self::of_limbs(plus.limbs(), minus.limbs(), dxy.limbs())
    }

    const fn of_limbs(p: [u64; 5], m: [u64; 5], d: [u64; 5]) -> Self {
        Self([
            [p[0], p[1], p[2], p[3], p[4], m[0], m[1], m[2]],
            [m[3], m[4], d[0], d[1], d[2], d[3], d[4], 0],
        ])
    }

    /// (y + x) / 2, (y - x) / 2 and d x y.
    #[inline(always)]
    fn parts(&self) -> (Fe, Fe, Fe) {
        let [[p0, p1, p2, p3, p4, m0, m1, m2], [m3, m4, d0, d1, d2, d3, d4, _]] = self.0;
        (
            Fe::of_limbs([p0, p1, p2, p3, p4]),
            Fe::of_limbs([m0, m1, m2, m3, m4]),
            Fe::of_limbs([d0, d1, d2, d3, d4]),
        )
    }

    /// Prefetches both cache lines without waiting.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) fn prefetch(&self) {
        let [first, second] = &self.0;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch hint, which loads nothing into the program and cannot fault.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(first.as_ptr().cast());
            _mm_prefetch::<_MM_HINT_T0>(second.as_ptr().cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        std::hint::black_box(first[0] ^ second[0]);
    }

    /// The limbs of its three numbers, each at most 2^51, in their two cache lines.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn words(&self) -> &[[u64; 8]; 2] {
        &self.0
    }
}

/// 1 / Z of every point.
#[must_use]
pub fn invert_all(points: &[Point]) -> Vec<Fe> {
    let mut out = vec![Fe::ONE; points.len()];
    invert(points, &mut out);
    out
}

/// Maximum signatures that are verified together.
pub const BATCH_MAX: usize = 12;

/// 1 / Z of the points of one transaction, without allocation; does nothing for an empty slice.
#[must_use]
pub fn inverses(points: &[Point]) -> [Fe; BATCH_MAX] {
    let mut out = [Fe::ONE; BATCH_MAX];
    if let Some(used) = out.get_mut(..points.len())
        && !points.is_empty()
    {
        invert(points, used);
    }
    out
}
