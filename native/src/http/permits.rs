//! Places of which there are only so many, and each address may have a share. A place is given back
//! when whoever has it is dropped. For one thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;

use crate::http::connection_limits::source_of;

/// So many places.
#[derive(Debug)]
pub(crate) struct Places(Rc<RefCell<Taken>>);

/// One that is taken.
#[derive(Debug)]
pub(crate) struct Place {
    taken: Rc<RefCell<Taken>>,
    source: IpAddr,
}

#[derive(Debug)]
struct Taken {
    count_max: usize,
    each_max: usize,
    count: usize,
    /// Of each address that has any.
    each: HashMap<IpAddr, usize>,
}

impl Places {
    /// So many, all free, of which one address may have `each_max`.
    #[must_use]
    pub(crate) fn new(count_max: usize, each_max: usize) -> Self {
        let taken = Taken { count_max, each_max, count: 0, each: HashMap::new() };
        Self(Rc::new(RefCell::new(taken)))
    }

    /// Whether more than half of them are free, and more than half of those of this address.
    pub(crate) fn is_plenty(&self, from: IpAddr) -> bool {
        let taken = self.0.borrow();
        let own = taken.each.get(&source_of(from)).copied().unwrap_or(0);
        2 * taken.count < taken.count_max && 2 * own < taken.each_max
    }

    /// One of them; None while all are taken, or all of this address.
    #[must_use]
    pub(crate) fn take(&self, from: IpAddr) -> Option<Place> {
        let source = source_of(from);
        let mut taken = self.0.borrow_mut();
        let own = taken.each.get(&source).copied().unwrap_or(0);
        if taken.count >= taken.count_max || own >= taken.each_max {
            return None;
        }
        taken.count += 1;
        taken.each.insert(source, own + 1);
        Some(Place { taken: self.0.clone(), source })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.taken.borrow_mut();
        taken.count -= 1;
        match taken.each.get_mut(&self.source) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(taken.each.remove(&self.source)),
        }
    }
}

#[cfg(test)]
#[path = "permits_tests.rs"]
mod tests;
