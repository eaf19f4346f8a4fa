//! Numbers modulo 2^255 - 19 in five limbs of 51 bits.
//!
//! The arithmetic is fiat-crypto's, which was generated from a proof of its correctness. It
//! distinguishes two bounds and so do the types here: a `Fe` is carried, a `Sum` is one addition
//! away from that and can only be multiplied. Both bounds hold by construction: nothing else makes
//! them. No time here depends on values, although nothing here is secret.

use fiat_crypto::curve25519_64::{
    fiat_25519_add, fiat_25519_carry, fiat_25519_carry_mul, fiat_25519_carry_square,
    fiat_25519_from_bytes, fiat_25519_loose_field_element, fiat_25519_opp, fiat_25519_relax,
    fiat_25519_sub, fiat_25519_tight_field_element, fiat_25519_to_bytes,
};

use crate::ed25519::inverse::inverse;

/// A carried number.
#[derive(Clone, Copy)]
pub struct Fe(fiat_25519_tight_field_element);

/// A sum or difference of two carried numbers.
#[derive(Clone, Copy)]
pub struct Sum(fiat_25519_loose_field_element);

impl Fe {
    /// 0.
    pub const ZERO: Self = Self(fiat_25519_tight_field_element([0; 5]));
    /// 1.
    pub const ONE: Self = Self(fiat_25519_tight_field_element([1, 0, 0, 0, 0]));

    /// The little-endian number in 32 bytes, without the highest bit, reduced modulo p.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        let mut bytes = *bytes;
        bytes[31] &= 0x7f;
        let mut out = Self::ZERO;
        fiat_25519_from_bytes(&mut out.0, &bytes);
        out
    }

    /// The canonical encoding.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        let mut out = [0; 32];
        fiat_25519_to_bytes(&mut out, &self.0);
        out
    }

    /// Its limbs, each at most 2^51.
    #[inline(always)]
    pub(crate) fn limbs(&self) -> [u64; 5] {
        self.0.0
    }

    /// The number with the limbs that `limbs` returned.
    #[inline(always)]
    pub(crate) const fn of_limbs(limbs: [u64; 5]) -> Self {
        Self(fiat_25519_tight_field_element(limbs))
    }

    /// self + other
    #[inline(always)]
    #[must_use]
    pub fn plus(&self, other: &Self) -> Sum {
        let mut out = Sum::ZERO;
        fiat_25519_add(&mut out.0, &self.0, &other.0);
        out
    }

    /// self - other
    #[inline(always)]
    #[must_use]
    pub fn minus(&self, other: &Self) -> Sum {
        let mut out = Sum::ZERO;
        fiat_25519_sub(&mut out.0, &self.0, &other.0);
        out
    }

    /// -self
    #[must_use]
    pub fn negated(&self) -> Self {
        let mut out = Sum::ZERO;
        fiat_25519_opp(&mut out.0, &self.0);
        out.carried()
    }

    /// The same number, as a factor of a product.
    #[inline(always)]
    #[must_use]
    pub fn sum(&self) -> Sum {
        let mut out = Sum::ZERO;
        fiat_25519_relax(&mut out.0, &self.0);
        out
    }

    /// self * other
    #[inline(always)]
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        self.sum().times(&other.sum())
    }

    /// self * self
    #[inline(always)]
    #[must_use]
    pub fn squared(&self) -> Self {
        self.sum().squared()
    }

    /// self to the power of 2^count
    #[must_use]
    fn squared_times(&self, count: u32) -> Self {
        let mut out = *self;
        for _ in 0..count {
            out = out.squared();
        }
        out
    }

    /// 1 / self; 0 for 0. An inverse is accepted only if its product with the number is 1.
    #[must_use]
    pub fn inverted(&self) -> Self {
        let quick = inverse(&self.to_bytes()).map(|bytes| Self::from_bytes(&bytes));
        match quick {
            Some(quick) if self.times(&quick).is(&Self::ONE) => quick,
            _ => self.inverted_by_power(),
        }
    }

    /// 1 / self; 0 for 0.
    pub(crate) fn inverted_by_power(&self) -> Self {
        // p - 2 = 2^255 - 21 = 2^5 * (2^250 - 1) + 11
        let (x250, x11) = self.ladder();
        x250.squared_times(5).times(&x11)
    }

    /// self to the power of (p - 5) / 8, the start of a square root.
    #[must_use]
    pub fn root_start(&self) -> Self {
        // (p - 5) / 8 = 2^252 - 3 = 2^2 * (2^250 - 1) + 1
        let (x250, _) = self.ladder();
        x250.squared_times(2).times(self)
    }

    /// self to the powers of 2^250 - 1 and of 11.
    fn ladder(&self) -> (Self, Self) {
        let x2 = self.squared();
        let x9 = x2.squared_times(2).times(self);
        let x11 = x9.times(&x2);
        let x5 = x11.squared().times(&x9);
        let x10 = x5.squared_times(5).times(&x5);
        let x20 = x10.squared_times(10).times(&x10);
        let x40 = x20.squared_times(20).times(&x20);
        let x50 = x40.squared_times(10).times(&x10);
        let x100 = x50.squared_times(50).times(&x50);
        let x200 = x100.squared_times(100).times(&x100);
        (x200.squared_times(50).times(&x50), x11)
    }

    /// Whether the canonical encoding is odd, which RFC 8032 calls negative.
    #[must_use]
    pub fn is_odd(&self) -> bool {
        self.to_bytes()[0] & 1 == 1
    }

    /// Whether both are equal.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.to_bytes() == other.to_bytes()
    }
}

impl Sum {
    const ZERO: Self = Self(fiat_25519_loose_field_element([0; 5]));

    /// The number with these limbs, each at most 3 * 2^51.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const fn of_limbs(limbs: [u64; 5]) -> Self {
        Self(fiat_25519_loose_field_element(limbs))
    }

    /// self * other
    #[inline(always)]
    #[must_use]
    pub fn times(&self, other: &Self) -> Fe {
        let mut out = Fe::ZERO;
        fiat_25519_carry_mul(&mut out.0, &self.0, &other.0);
        out
    }

    /// self * self
    #[inline(always)]
    #[must_use]
    pub fn squared(&self) -> Fe {
        let mut out = Fe::ZERO;
        fiat_25519_carry_square(&mut out.0, &self.0);
        out
    }

    /// The same number, carried.
    #[inline(always)]
    #[must_use]
    pub fn carried(&self) -> Fe {
        let mut out = Fe::ZERO;
        fiat_25519_carry(&mut out.0, &self.0);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::Fe;
    use crate::ed25519::inverse::inverse;

    /// Pseudo-random numbers, numbers with few bits, and neighbours of 0, of p and of the powers of
    /// 2.
    fn numbers() -> Vec<[u8; 32]> {
        let mut out = Vec::new();
        for low in 0..=255 {
            let mut near_p = [0xff; 32];
            (near_p[0], near_p[31]) = (low, 0x7f);
            let mut small = [0; 32];
            small[0] = low;
            out.extend([small, near_p]);
        }
        for bit in 0..255 {
            let mut power = [0_u8; 32];
            power[bit / 8] = 1 << (bit % 8);
            let below: [u8; 32] =
                std::array::from_fn(
                    |i| if i < bit / 8 { 0xff } else { power[i].saturating_sub(1) },
                );
            out.extend([power, below]);
        }
        let mut state = 1_u64;
        for _ in 0..100_000 {
            out.push(std::array::from_fn(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            }));
        }
        out
    }

    /// The power is only a fallback, so the fast inverse must always be correct itself.
    #[test]
    fn the_fast_inverse_equals_the_power() {
        for bytes in numbers() {
            let number = Fe::from_bytes(&bytes);
            let power = number.inverted_by_power();
            let quick = inverse(&number.to_bytes()).map(|bytes| Fe::from_bytes(&bytes));
            match quick {
                Some(quick) => assert!(quick.is(&power), "{bytes:02x?}"),
                None => assert!(number.is(&Fe::ZERO), "{bytes:02x?}"),
            }
            assert!(number.inverted().is(&power));
        }
    }
}
