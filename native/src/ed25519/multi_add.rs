//! Adds table entries: most of a verification's time.
//!
//! Two backends give the same point: one addition after the other on any processor, and eight at a
//! time with AVX-512 IFMA (`ifma_points`). The processor is checked once; the scalar backend is the
//! oracle of the other.
//!
//! Hot path: no allocation.

use crate::ed25519::curve::Point;
#[cfg(target_arch = "x86_64")]
use crate::ed25519::ifma_points::Ifma;
use crate::ed25519::picks::Picks;

/// How sums are computed.
#[derive(Clone, Copy, Debug)]
pub enum Backend {
    /// One addition after the other.
    Scalar,
    /// Eight additions at a time.
    #[cfg(target_arch = "x86_64")]
    Vector(Ifma),
}

impl Backend {
    /// The fastest backend that this processor supports.
    #[must_use]
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(ifma) = Ifma::detected() {
            return Self::Vector(ifma);
        }
        Self::Scalar
    }

    /// The sum of the entries.
    #[inline]
    #[must_use]
    pub fn sum(self, picks: &Picks<'_>) -> Point {
        match self {
            Self::Scalar => chain(picks),
            #[cfg(target_arch = "x86_64")]
            Self::Vector(ifma) => ifma.sum(picks),
        }
    }
}

/// One addition after the other.
fn chain(picks: &Picks<'_>) -> Point {
    let mut sum = Point::NEUTRAL;
    for pick in picks.eights().as_flattened() {
        if let Some(multiple) = pick.multiple {
            sum = sum.plus_niels(multiple, pick.negative);
        }
    }
    sum
}
