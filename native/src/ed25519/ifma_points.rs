//! Sums of table entries with eight partial sums, one in each lane of AVX-512 vectors.
//!
//! Every lane adds an eighth of the entries by the same formulas as `curve`, and the eight sums are
//! added by halves at the end. Compared with vectors that hold the coordinates of one point this
//! needs no shuffles between multiplications, and gives the processor many independent ones to
//! overlap; the cost is transposing entries from rows into columns, a tenth of the work.
//!
//! Hot path: no allocation, no branch on digits.

use std::arch::is_x86_feature_detected;

use crate::ed25519::curve::{Niels, Point};
use crate::ed25519::ifma_field::{IfmaField, columns};
use crate::ed25519::picks::{Pick, Picks};

/// Proof that the processor has the instructions.
#[derive(Clone, Copy, Debug)]
pub struct Ifma(());

/// Eight points as y + x, y - x, z and t, with x = X / Z, y = Y / Z and xy = T / Z.
#[derive(Clone, Copy)]
struct IfmaPoints {
    sum: IfmaField,
    difference: IfmaField,
    z: IfmaField,
    t: IfmaField,
}

/// Eight table entries, already negated where they are subtracted.
struct Entries {
    plus: IfmaField,
    minus: IfmaField,
    dxy: IfmaField,
}

impl Ifma {
    /// Checks the processor, and whether the system saves the vector state.
    #[must_use]
    pub fn detected() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma");
        has.then_some(Self(()))
    }

    /// The sum of the entries.
    #[must_use]
    pub fn sum(self, picks: &Picks<'_>) -> Point {
        // SAFETY: a value of this type exists only if the processor has both features.
        unsafe { summed(picks) }
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn summed(picks: &Picks<'_>) -> Point {
    let Some((first, rest)) = picks.eights().split_first() else {
        return Point::NEUTRAL;
    };
    let mut sums = Entries::of(first).points();
    for eight in rest {
        sums = sums.plus_entries(&Entries::of(eight));
    }
    sums = sums.plus(&sums.swapped::<4>());
    sums = sums.plus(&sums.swapped::<2>());
    sums = sums.plus(&sums.swapped::<1>());
    Point::of_sums(sums.sum.first(), sums.difference.first(), sums.z.first(), sums.t.first())
}

impl Entries {
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn of(picks: &[Pick<'_>; 8]) -> Self {
        let [a, b, c, d, e, f, g, h] =
            picks.each_ref().map(|pick| pick.multiple.unwrap_or(&Niels::NEUTRAL).words());
        let [p0, p1, p2, p3, p4, m0, m1, m2] =
            columns([&a[0], &b[0], &c[0], &d[0], &e[0], &f[0], &g[0], &h[0]]);
        let [m3, m4, d0, d1, d2, d3, d4, _] =
            columns([&a[1], &b[1], &c[1], &d[1], &e[1], &f[1], &g[1], &h[1]]);
        let plus = IfmaField::of_limbs([p0, p1, p2, p3, p4]);
        let minus = IfmaField::of_limbs([m0, m1, m2, m3, m4]);
        let mut mask = 0;
        for (lane, pick) in picks.iter().enumerate() {
            mask |= u8::from(pick.negative) << lane;
        }
        Self {
            plus: plus.or_where(mask, &minus),
            minus: minus.or_where(mask, &plus),
            dxy: IfmaField::of_limbs([d0, d1, d2, d3, d4]).negated_where(mask),
        }
    }

    /// The entries as points: x = plus - minus, y = plus + minus.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn points(&self) -> IfmaPoints {
        let (plus, minus) = (self.plus.loose(), self.minus.loose());
        IfmaPoints {
            sum: plus.plus(&plus),
            difference: minus.plus(&minus),
            z: IfmaField::one(),
            t: plus.minus(&minus).times(&plus.plus(&minus)).carried(),
        }
    }
}

impl IfmaPoints {
    /// self + entries
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn plus_entries(&self, entries: &Entries) -> Self {
        let pp = self.sum.times(&entries.plus);
        let mm = self.difference.times(&entries.minus);
        let dt = self.t.times(&entries.dxy);
        let z = self.z.loose();
        Self::completed(&pp.minus(&mm), &pp.plus(&mm), &z.plus(&dt), &z.minus(&dt))
    }

    /// self + other
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn plus(&self, other: &Self) -> Self {
        let pp = self.sum.times(&other.sum);
        let mm = self.difference.times(&other.difference);
        let dt2 = self.t.times(&IfmaField::all(Point::TWICE_D)).carried().times(&other.t);
        let z2 = self.z.times(&other.z).doubled();
        Self::completed(&pp.minus(&mm), &pp.plus(&mm), &z2.plus(&dt2), &z2.minus(&dt2))
    }

    /// ((X : Z), (Y : T)), as curve.rs has it, as points.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn completed(x: &IfmaField, y: &IfmaField, z: &IfmaField, t: &IfmaField) -> Self {
        let (new_x, new_y) = (x.times(t), y.times(z));
        Self {
            sum: new_y.plus(&new_x),
            difference: new_y.minus(&new_x),
            z: z.times(t).carried(),
            t: x.times(y).carried(),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn swapped<const DISTANCE: usize>(&self) -> Self {
        Self {
            sum: self.sum.swapped::<DISTANCE>(),
            difference: self.difference.swapped::<DISTANCE>(),
            z: self.z.swapped::<DISTANCE>(),
            t: self.t.swapped::<DISTANCE>(),
        }
    }
}
