//! Tables of multiples of one point, so that a multiplication is a few dozen additions.
//!
//! A scalar is written in signed digits of `WIDTH` bits. The table holds, for every `STRIDE`-th
//! digit, the multiples that the digit may ask for; the digits between use the same rows, and the
//! sum is doubled `WIDTH` times from one to the next. Look-ups take their time from the digits,
//! which is harmless: keys, signatures and messages are public.
//!
//!     digit     0   1   2   3   4  …      STRIDE = 2: rows for 0, 2, 4, …
//!     rows      0       1       2  …      sum the odd digits, double WIDTH times, sum the even

use std::hint::black_box;

use crate::curve::{Niels, Point, invert_all};

/// The multiples of one point.
pub struct Comb<const WIDTH: usize, const STRIDE: usize> {
    /// Row after row; a row holds 1 to 2^(WIDTH - 1) times its power of the point.
    multiples: Box<[Niels]>,
}

/// Most digits of any width; scalars are below 2^253.
const DIGITS_MAX: usize = 128;

/// The signed digits of a scalar.
pub struct Digits([i16; DIGITS_MAX]);

impl<const WIDTH: usize, const STRIDE: usize> Comb<WIDTH, STRIDE> {
    /// One bit above the scalars' 253 takes the carry out of the highest digit.
    const DIGITS: usize = 254usize.div_ceil(WIDTH);
    const ROWS: usize = Self::DIGITS.div_ceil(STRIDE);
    const ROW: usize = 1 << (WIDTH - 1);

    /// Makes the table: a point addition for each entry and one inversion.
    #[must_use]
    pub fn new(point: &Point) -> Self {
        let mut points = Vec::with_capacity(Self::ROWS * Self::ROW);
        let mut power = *point;
        for _ in 0..Self::ROWS {
            let mut multiple = power;
            for _ in 0..Self::ROW {
                points.push(multiple);
                multiple = multiple.plus(&power);
            }
            power = power.doubled((WIDTH * STRIDE) as u32);
        }
        let inverses = invert_all(&points);
        let multiples = points.iter().zip(&inverses).map(|(point, z)| point.niels(z)).collect();
        Self { multiples }
    }

    /// Bytes that the table takes.
    #[must_use]
    pub const fn size() -> usize {
        Self::ROWS * Self::ROW * size_of::<Niels>()
    }

    /// The digits of a scalar below 2^253, little-endian.
    #[must_use]
    pub fn digits(scalar: &[u8; 32]) -> Digits {
        let mut digits = [0; DIGITS_MAX];
        let mut words = [0_u64; 5];
        for (word, bytes) in words.iter_mut().zip(scalar.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap_or([0; 8]));
        }
        let mut carry = 0;
        for (i, digit) in digits.iter_mut().enumerate().take(Self::DIGITS) {
            let (word, shift) = (i * WIDTH / 64, i * WIDTH % 64);
            let low = words.get(word).copied().unwrap_or(0);
            let high = words.get(word + 1).copied().unwrap_or(0);
            let bits = (u128::from(low) | u128::from(high) << 64) >> shift;
            let value = (bits as i32 & ((1 << WIDTH) - 1)) + carry;
            carry = i32::from(value > 1 << (WIDTH - 1));
            *digit = (value - (carry << WIDTH)) as i16;
        }
        Digits(digits)
    }

    /// Reads every multiple that `times` will use. An addition is too long for the processor to
    /// look beyond it, so a table that is not in its caches would be waited for line by line.
    #[inline]
    pub fn touch(&self, digits: &Digits) {
        let mut bits = 0;
        for phase in 0..STRIDE {
            for (row, digit) in self.rows(digits, phase) {
                let index = usize::from(digit.unsigned_abs()).wrapping_sub(1);
                bits ^= row.get(index).map_or(0, Niels::touched);
            }
        }
        black_box(bits);
    }

    /// The rows for the digits of one phase.
    #[inline(always)]
    fn rows<'a>(
        &'a self,
        digits: &'a Digits,
        phase: usize,
    ) -> impl Iterator<Item = (&'a [Niels], i16)> {
        let used = digits.0.iter().take(Self::DIGITS).skip(phase).step_by(STRIDE);
        self.multiples.chunks_exact(Self::ROW).zip(used.copied())
    }

    /// start + scalar * point, where the scalar's digits are given and `start` is the neutral
    /// element unless STRIDE is 1.
    #[inline]
    #[must_use]
    pub fn times(&self, digits: &Digits, start: Point) -> Point {
        let mut sum = start;
        for phase in (0..STRIDE).rev() {
            for (row, digit) in self.rows(digits, phase) {
                let index = usize::from(digit.unsigned_abs()).wrapping_sub(1);
                if let Some(multiple) = row.get(index) {
                    sum = sum.plus_niels(multiple, digit < 0);
                }
            }
            if phase > 0 {
                sum = sum.doubled(WIDTH as u32);
            }
        }
        sum
    }
}
