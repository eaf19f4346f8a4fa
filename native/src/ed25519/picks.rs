//! The table entries of one sum.
//!
//! Hot path: no allocation.
//!
//! Decision: docs/decisions/0012-signature-tables-without-doublings.md

use crate::ed25519::curve::Niels;

/// Maximum entries of one sum, a multiple of the vectors' eight lanes: two points in digits of 4
/// bits.
pub const PICKS_MAX: usize = 128;

/// One entry of a table, to be added or subtracted; None for the digit 0.
#[derive(Clone, Copy)]
pub struct Pick<'a> {
    /// The entry.
    pub multiple: Option<&'a Niels>,
    /// Whether it is subtracted.
    pub negative: bool,
}

/// The entries of one sum.
pub struct Picks<'a> {
    list: [Pick<'a>; PICKS_MAX],
    count: usize,
}

impl<'a> Picks<'a> {
    /// No entries: the neutral element.
    #[inline(always)]
    #[must_use]
    pub fn new() -> Self {
        Self { list: [Pick { multiple: None, negative: false }; PICKS_MAX], count: 0 }
    }

    /// Adds an entry and prefetches it. An entry beyond PICKS_MAX is a bug of the caller, and is
    /// ignored.
    #[inline(always)]
    pub fn push(&mut self, pick: Pick<'a>) {
        if let Some(slot) = self.list.get_mut(self.count) {
            if let Some(multiple) = pick.multiple {
                multiple.prefetch();
            }
            *slot = pick;
            self.count += 1;
        }
    }

    /// The entries in groups of eight; the last is padded with empty ones.
    #[inline(always)]
    pub(crate) fn eights(&self) -> &[[Pick<'a>; 8]] {
        let (eights, _) = self.list.as_chunks();
        eights.get(..self.count.div_ceil(8)).unwrap_or(eights)
    }
}

impl Default for Picks<'_> {
    fn default() -> Self {
        Self::new()
    }
}
