//! Places of which there are only so many, each given back when whoever has it is dropped. For one
//! thread.

use std::cell::Cell;
use std::rc::Rc;

/// Places that are left.
#[derive(Debug)]
pub(crate) struct Places(Rc<Cell<usize>>);

/// One that is taken.
#[derive(Debug)]
pub(crate) struct Place(Rc<Cell<usize>>);

impl Places {
    /// So many, all free.
    #[must_use]
    pub(crate) fn new(count: usize) -> Self {
        Self(Rc::new(Cell::new(count)))
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
}
