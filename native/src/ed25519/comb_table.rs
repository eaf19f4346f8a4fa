//! Tables of multiples of one point, which reduce a multiplication to a few dozen additions.
//!
//! A scalar is written in signed digits of `WIDTH` bits. The table holds a row per digit with every
//! multiple that the digit can select, so a product is a list of table entries, each to be added or
//! subtracted; `multi_add` adds them. There are no doublings: a processor with long vectors makes
//! eight additions at a time, but doublings one after the other. Lookup time depends on the digits,
//! which is harmless: keys, signatures and messages are public.

use crate::ed25519::curve::{Niels, Point, invert_all};
use crate::ed25519::picks::{Pick, Picks};

/// The multiples of one point.
pub struct Comb<const WIDTH: usize> {
    /// Row by row; a row holds 1 to 2^(WIDTH - 1) times its power of the point.
    multiples: Box<[Niels]>,
}

impl<const WIDTH: usize> Comb<WIDTH> {
    /// Digits of a scalar below 2^253. One extra bit absorbs the carry of the highest.
    pub const DIGITS: usize = 254usize.div_ceil(WIDTH);
    const ROW: usize = 1 << (WIDTH - 1);
    /// 2^(WIDTH - 1) in every digit, as little-endian words: with this added to the scalar, every
    /// digit is its own bits minus 2^(WIDTH - 1), and nothing is carried from one to the next.
    // Out of bounds is a compile error.
    #[allow(clippy::indexing_slicing)]
    const BIAS: [u64; 5] = {
        let mut words = [0; 5];
        let mut digit = 0;
        while digit < Self::DIGITS {
            let bit = digit * WIDTH + WIDTH - 1;
            words[bit / 64] |= 1 << (bit % 64);
            digit += 1;
        }
        words
    };

    /// Builds the table: a point addition per entry and one inversion.
    #[must_use]
    pub fn new(point: &Point) -> Self {
        let mut points = Vec::with_capacity(Self::DIGITS * Self::ROW);
        let mut power = *point;
        for _ in 0..Self::DIGITS {
            let mut multiple = power;
            for _ in 0..Self::ROW {
                points.push(multiple);
                multiple = multiple.plus(&power);
            }
            power = power.doubled(WIDTH as u32);
        }
        let inverses = invert_all(&points);
        let multiples = points.iter().zip(&inverses).map(|(point, z)| point.niels(z)).collect();
        Self { multiples }
    }

    /// Size of the table in bytes.
    #[must_use]
    pub const fn size() -> usize {
        Self::DIGITS * Self::ROW * size_of::<Niels>()
    }

    /// Adds to `picks` the entries whose sum is scalar * point, for a little-endian scalar below
    /// 2^253, and prefetches them.
    #[inline]
    pub fn pick<'a>(&'a self, scalar: &[u8; 32], picks: &mut Picks<'a>) {
        let biased = Self::biased(scalar);
        for (i, row) in self.multiples.chunks_exact(Self::ROW).enumerate() {
            let (word, shift) = (i * WIDTH / 64, i * WIDTH % 64);
            let low = biased.get(word).map_or(0, |bits| bits >> shift);
            let high = match shift + WIDTH > 64 {
                true => biased.get(word + 1).map_or(0, |bits| bits << (64 - shift)),
                false => 0,
            };
            let digit = ((low | high) as i32 & ((1 << WIDTH) - 1)) - (1 << (WIDTH - 1));
            let index = (digit.unsigned_abs() as usize).wrapping_sub(1);
            picks.push(Pick { multiple: row.get(index), negative: digit < 0 });
        }
    }

    /// The scalar with the bias added.
    fn biased(scalar: &[u8; 32]) -> [u64; 5] {
        let mut words = Self::BIAS;
        let mut carry = 0;
        let (bytes, _) = scalar.as_chunks::<8>();
        for (word, bytes) in words.iter_mut().zip(bytes.iter().chain(&[[0; 8]])) {
            let sum = u128::from(*word) + u128::from(u64::from_le_bytes(*bytes)) + carry;
            *word = sum as u64;
            carry = sum >> 64;
        }
        words
    }
}
