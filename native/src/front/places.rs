//! Places of which there are only so many, each given back when whoever has it is dropped. For one
//! thread.

use std::cell::Cell;
use std::rc::Rc;

/// Places that are left, of so many.
#[derive(Debug)]
pub(crate) struct Places(Rc<Cell<usize>>, usize);

/// One that is taken.
#[derive(Debug)]
pub(crate) struct Place(Rc<Cell<usize>>);

impl Places {
    /// So many, all free.
    #[must_use]
    pub(crate) fn new(count: usize) -> Self {
        Self(Rc::new(Cell::new(count)), count)
    }

    /// Whether more than half of them are free.
    pub(crate) fn is_plenty(&self) -> bool {
        2 * self.0.get() > self.1
    }

    /// One of them; None while all are taken.
    #[must_use]
    pub(crate) fn take(&self) -> Option<Place> {
        let left = self.0.get().checked_sub(1)?;
        self.0.set(left);
        Some(Place(self.0.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_another_s_once_it_is_dropped() {
        let places = Places::new(2);
        let first = places.take().unwrap();
        let second = places.take().unwrap();
        assert!(places.take().is_none());
        drop(first);
        let third = places.take().unwrap();
        assert!(places.take().is_none());
        drop((second, third));
        assert!(places.take().is_some() && Places::new(0).take().is_none());
    }

    #[test]
    fn there_is_plenty_while_more_than_half_are_free() {
        let places = Places::new(4);
        let one = places.take();
        assert!(places.is_plenty());
        let other = places.take();
        assert!(!places.is_plenty());
        drop((one, other));
        assert!(places.is_plenty() && !Places::new(0).is_plenty());
    }
}
