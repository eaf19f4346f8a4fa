//! Places of which there are only so many, and each address may have a share. A place is given back
//! when whoever has it is dropped. For one thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;

use crate::http::connection_limits::source_of;

/// So many places.
#[derive(Debug)]
pub(crate) struct Permits(Rc<RefCell<PermitCounts>>);

/// One that is taken.
#[derive(Debug)]
pub(crate) struct Permit {
    counts: Rc<RefCell<PermitCounts>>,
    source: IpAddr,
}

#[derive(Debug)]
struct PermitCounts {
    count_max: usize,
    each_max: usize,
    count: usize,
    /// Of each address that has any.
    each: HashMap<IpAddr, usize>,
}

impl Permits {
    /// So many, all free, of which one address may have `each_max`.
    #[must_use]
    pub(crate) fn new(count_max: usize, each_max: usize) -> Self {
        let counts = PermitCounts { count_max, each_max, count: 0, each: HashMap::new() };
        Self(Rc::new(RefCell::new(counts)))
    }

    /// Whether more than half of them are free, and more than half of those of this address.
    pub(crate) fn has_spare(&self, from: IpAddr) -> bool {
        let counts = self.0.borrow();
        let own = counts.each.get(&source_of(from)).copied().unwrap_or(0);
        2 * counts.count < counts.count_max && 2 * own < counts.each_max
    }

    /// One of them; None while all are taken, or all of this address.
    #[must_use]
    pub(crate) fn try_acquire(&self, from: IpAddr) -> Option<Permit> {
        let source = source_of(from);
        let mut counts = self.0.borrow_mut();
        let own = counts.each.get(&source).copied().unwrap_or(0);
        if counts.count >= counts.count_max || own >= counts.each_max {
            return None;
        }
        counts.count += 1;
        counts.each.insert(source, own + 1);
        Some(Permit { counts: self.0.clone(), source })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut counts = self.counts.borrow_mut();
        counts.count -= 1;
        match counts.each.get_mut(&self.source) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(counts.each.remove(&self.source)),
        }
    }
}

#[cfg(test)]
#[path = "permits_tests.rs"]
mod tests;
