//! Eight numbers modulo 2^255 - 19, one in each 64-bit lane of AVX-512 vectors, multiplied with
//! IFMA instructions.
//!
//! Vector k of five holds the limbs of weight 2^(51 k). IFMA multiplies the low 52 bits of two
//! lanes and adds the low or the high 52 bits of the product, so a factor's limbs must be below
//! 2^52, and the high half, of weight 2^52, counts twice at the next limb. Two bounds are
//! distinguished by types: `IfmaField`s are factors, `Product`s are not carried and only added.
//! Everything wraps silently beyond its bound, so each function states the bounds that it keeps.
//!
//! Hot path: everything is inlined into `ifma_points`.

use core::arch::x86_64::{
    __m512i, _mm_cvtsi128_si64, _mm512_add_epi64, _mm512_and_si512, _mm512_castsi512_si128,
    _mm512_loadu_si512, _mm512_madd52hi_epu64, _mm512_madd52lo_epu64, _mm512_mask_blend_epi64,
    _mm512_mask_sub_epi64, _mm512_permutex_epi64, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_shuffle_i64x2, _mm512_slli_epi64, _mm512_srli_epi64, _mm512_sub_epi64,
    _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
};

/// The low 51 bits.
const MASK: i64 = (1 << 51) - 1;
/// The limbs of p = 2^255 - 19: this, and four of `MASK`.
const P0: i64 = (1 << 51) - 19;

/// Factors: limbs below 2^52, from `carried` below 2^51 + 2^16.
#[derive(Clone, Copy)]
pub(crate) struct IfmaField([__m512i; 5]);

/// Products and their addends: limbs below 2^60, doubled below 2^61.
#[derive(Clone, Copy)]
pub(crate) struct Product([__m512i; 5]);

/// Sums products of limbs.
macro_rules! sum_of {
    ($half:ident, $start:expr, $($a:ident $b:ident),+) => {{
        let sum = $start;
        $(let sum = $half(sum, $a, $b);)+
        sum
    }};
}

impl IfmaField {
    /// Limbs from a table, each at most 2^51.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn of_limbs(limbs: [__m512i; 5]) -> Self {
        Self(limbs)
    }

    /// 1.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn one() -> Self {
        Self::all([1, 0, 0, 0, 0])
    }

    /// The same number in every lane; limbs at most 2^51.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn all([a, b, c, d, e]: [u64; 5]) -> Self {
        let all = |limb| _mm512_set1_epi64(i64::from_ne_bytes(u64::to_ne_bytes(limb)));
        Self([all(a), all(b), all(c), all(d), all(e)])
    }

    /// self * other. With one factor below 2^51 + 2^16 and the other below 2^52, limb 0, the
    /// largest, is at most 1 + 4 * 19 low halves and 2 * 5 * 19 high ones of less than
    /// 2^51 + 2^16: 77 * 2^52 + 190 * (2^51 + 2^16) < 2^60.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn times(&self, other: &Self) -> Product {
        let [a0, a1, a2, a3, a4] = self.0;
        let [b0, b1, b2, b3, b4] = other.0;
        let zero = _mm512_setzero_si512();
        // The high halves, by the weight of the low ones.
        let h0 = sum_of!(high, zero, a0 b0);
        let h1 = sum_of!(high, zero, a0 b1, a1 b0);
        let h2 = sum_of!(high, zero, a0 b2, a1 b1, a2 b0);
        let h3 = sum_of!(high, zero, a0 b3, a1 b2, a2 b1, a3 b0);
        let h4 = sum_of!(high, zero, a0 b4, a1 b3, a2 b2, a3 b1, a4 b0);
        let h5 = sum_of!(high, zero, a1 b4, a2 b3, a3 b2, a4 b1);
        let h6 = sum_of!(high, zero, a2 b4, a3 b3, a4 b2);
        let h7 = sum_of!(high, zero, a3 b4, a4 b3);
        let h8 = sum_of!(high, zero, a4 b4);
        let c0 = sum_of!(low, zero, a0 b0);
        let c1 = sum_of!(low, twice(h0), a0 b1, a1 b0);
        let c2 = sum_of!(low, twice(h1), a0 b2, a1 b1, a2 b0);
        let c3 = sum_of!(low, twice(h2), a0 b3, a1 b2, a2 b1, a3 b0);
        let c4 = sum_of!(low, twice(h3), a0 b4, a1 b3, a2 b2, a3 b1, a4 b0);
        let c5 = sum_of!(low, twice(h4), a1 b4, a2 b3, a3 b2, a4 b1);
        let c6 = sum_of!(low, twice(h5), a2 b4, a3 b3, a4 b2);
        let c7 = sum_of!(low, twice(h6), a3 b4, a4 b3);
        let c8 = sum_of!(low, twice(h7), a4 b4);
        let c9 = twice(h8);
        // 2^255 = 19 modulo p.
        Product([folded(c0, c5), folded(c1, c6), folded(c2, c7), folded(c3, c8), folded(c4, c9)])
    }

    /// The same number, for addition to products.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn loose(&self) -> Product {
        Product(self.0)
    }

    /// `other` in the lanes of the mask, self elsewhere.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn or_where(&self, mask: u8, other: &Self) -> Self {
        let mut out = *self;
        for (limb, b) in out.0.iter_mut().zip(other.0) {
            *limb = _mm512_mask_blend_epi64(mask, *limb, b);
        }
        out
    }

    /// Negated in the lanes of the mask: 2 p - self, whose limbs are at least 2^52 - 38 minus 2^51,
    /// and below 2^52. Only for limbs from a table.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn negated_where(&self, mask: u8) -> Self {
        let mut out = *self;
        for (limb, p) in out.0.iter_mut().zip(p_shifted(1)) {
            *limb = _mm512_mask_sub_epi64(*limb, mask, p, *limb);
        }
        out
    }

    /// Swaps the lanes 0 to 3 with 4 to 7; or, in both halves, the lanes 0, 1 with 2, 3; or all
    /// neighbours: with `DISTANCE` 4, 2 and 1.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn swapped<const DISTANCE: usize>(&self) -> Self {
        let mut out = *self;
        for limb in &mut out.0 {
            *limb = match DISTANCE {
                4 => _mm512_shuffle_i64x2::<0b01_00_11_10>(*limb, *limb),
                2 => _mm512_permutex_epi64::<0b01_00_11_10>(*limb),
                _ => _mm512_permutex_epi64::<0b10_11_00_01>(*limb),
            };
        }
        out
    }

    /// The limbs of lane 0.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn first(&self) -> [u64; 5] {
        let mut out = [0; 5];
        for (limb, lanes) in out.iter_mut().zip(self.0) {
            let bits = _mm_cvtsi128_si64(_mm512_castsi512_si128(lanes));
            *limb = u64::from_ne_bytes(bits.to_ne_bytes());
        }
        out
    }
}

impl Product {
    /// 2 self, below 2^61 if self is below 2^60. Only as the first operand of a sum or difference.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn doubled(&self) -> Self {
        let mut out = *self;
        for limb in &mut out.0 {
            *limb = twice(*limb);
        }
        out
    }

    /// self + other, carried; self below 2^61, other below 2^60.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn plus(&self, other: &Self) -> IfmaField {
        let mut out = *self;
        for (limb, b) in out.0.iter_mut().zip(other.0) {
            *limb = _mm512_add_epi64(*limb, b);
        }
        out.carried()
    }

    /// self - other, carried; self below 2^61, other below 2^60. Adding 2^10 p, whose limbs lie
    /// between 2^60 and 2^61, keeps all limbs from falling below 0 and the sum below 2^62.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn minus(&self, other: &Self) -> IfmaField {
        let mut out = *self;
        for ((limb, b), p) in out.0.iter_mut().zip(other.0).zip(p_shifted(10)) {
            *limb = _mm512_add_epi64(*limb, _mm512_sub_epi64(p, b));
        }
        out.carried()
    }

    /// As a factor. Limbs below 2^62 carry less than 2^11, which is less than 2^16 times 19.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(crate) fn carried(&self) -> IfmaField {
        let mask = _mm512_set1_epi64(MASK);
        let [a, b, c, d, e] = self.0;
        let bits = |limb| _mm512_and_si512(limb, mask);
        let carry = |limb| _mm512_srli_epi64::<51>(limb);
        IfmaField([
            low(bits(a), carry(e), _mm512_set1_epi64(19)),
            _mm512_add_epi64(bits(b), carry(a)),
            _mm512_add_epi64(bits(c), carry(b)),
            _mm512_add_epi64(bits(d), carry(c)),
            _mm512_add_epi64(bits(e), carry(d)),
        ])
    }
}

/// The columns of eight rows of eight words: vector k holds word k of each row, in their order.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn columns(rows: [&[u64; 8]; 8]) -> [__m512i; 8] {
    let [a, b, c, d, e, f, g, h] = rows;
    // Words 0, 2, 4, 6 and words 1, 3, 5, 7 of two rows, word by word.
    let pair = |a, b| {
        let (a, b) = (loaded(a), loaded(b));
        (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b))
    };
    let ((ab, ab1), (cd, cd1), (ef, ef1), (gh, gh1)) =
        (pair(a, b), pair(c, d), pair(e, f), pair(g, h));
    let [w0, w2, w4, w6] = quarters([ab, cd, ef, gh]);
    let [w1, w3, w5, w7] = quarters([ab1, cd1, ef1, gh1]);
    [w0, w1, w2, w3, w4, w5, w6, w7]
}

/// Four rows of four quarters: vector k holds quarter k of each row.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn quarters([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    const EVEN: i32 = 0b10_00_10_00;
    const ODD: i32 = 0b11_01_11_01;
    let (ab, cd) = (_mm512_shuffle_i64x2::<EVEN>(a, b), _mm512_shuffle_i64x2::<EVEN>(c, d));
    let (ab1, cd1) = (_mm512_shuffle_i64x2::<ODD>(a, b), _mm512_shuffle_i64x2::<ODD>(c, d));
    [
        _mm512_shuffle_i64x2::<EVEN>(ab, cd),
        _mm512_shuffle_i64x2::<EVEN>(ab1, cd1),
        _mm512_shuffle_i64x2::<ODD>(ab, cd),
        _mm512_shuffle_i64x2::<ODD>(ab1, cd1),
    ]
}

/// Eight words as one vector.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn loaded(words: &[u64; 8]) -> __m512i {
    // SAFETY: reads the 64 bytes of the borrowed array; the load needs no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// The limbs of p times 2^bits.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn p_shifted(bits: u32) -> [__m512i; 5] {
    let rest = _mm512_set1_epi64(MASK << bits);
    [_mm512_set1_epi64(P0 << bits), rest, rest, rest, rest]
}

/// sum + the low 52 bits of a * b
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn low(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    _mm512_madd52lo_epu64(sum, a, b)
}

/// sum + the high 52 bits of a * b
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn high(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    _mm512_madd52hi_epu64(sum, a, b)
}

/// 2 x
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn twice(x: __m512i) -> __m512i {
    _mm512_add_epi64(x, x)
}

/// x + 19 y
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn folded(x: __m512i, y: __m512i) -> __m512i {
    let y3 = _mm512_add_epi64(y, twice(y));
    _mm512_add_epi64(_mm512_add_epi64(x, y3), _mm512_slli_epi64::<4>(y))
}
