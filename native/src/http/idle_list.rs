//! Hot path: the idle connections of a thread, in the order in which they became idle.
//!
//! A ring of links by index, so that each step takes the same short time for any number of them.

/// Neighbors in the ring; a connection that is not idle is its own neighbor.
#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
}

/// The list; the first link is that of its ends, and the connection `index` has the one behind.
#[derive(Debug)]
pub(super) struct IdleList {
    links: Vec<Link>,
}

impl IdleList {
    pub(super) fn new() -> Self {
        Self { links: vec![Link { previous: 0, next: 0 }] }
    }

    /// This connection is idle from now on.
    pub(super) fn push(&mut self, index: usize) {
        self.remove(index);
        let at = link_of(index);
        while self.links.len() <= at as usize {
            let own = self.links.len() as u32;
            self.links.push(Link { previous: own, next: own });
        }
        let Link { previous, .. } = self.link(0);
        self.join(previous, at);
        self.join(at, 0);
    }

    /// This connection is busy, or closed.
    pub(super) fn remove(&mut self, index: usize) {
        let at = link_of(index);
        let Link { previous, next } = self.link(at);
        self.join(previous, next);
        self.join(at, at);
    }

    /// The connection that is idle for longest.
    pub(super) fn oldest(&self) -> Option<usize> {
        (self.link(0).next as usize).checked_sub(1)
    }

    fn link(&self, at: u32) -> Link {
        self.links.get(at as usize).copied().unwrap_or(Link { previous: at, next: at })
    }

    fn join(&mut self, before: u32, behind: u32) {
        if let Some(link) = self.links.get_mut(before as usize) {
            link.next = behind;
        }
        if let Some(link) = self.links.get_mut(behind as usize) {
            link.previous = before;
        }
    }
}

/// There are fewer connections than open files.
fn link_of(index: usize) -> u32 {
    index as u32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of them, oldest first.
    fn drained(list: &mut IdleList) -> Vec<usize> {
        let mut all = Vec::new();
        while let Some(index) = list.oldest() {
            list.remove(index);
            all.push(index);
        }
        all
    }

    #[test]
    fn order_is_that_in_which_they_became_idle() {
        let mut list = IdleList::new();
        assert_eq!(list.oldest(), None);
        for index in [3, 0, 7, 1] {
            list.push(index);
        }
        assert_eq!(list.oldest(), Some(3));
        list.push(3);
        list.remove(7);
        list.remove(7);
        list.remove(100);
        list.push(2);
        assert_eq!(drained(&mut list), [0, 1, 3, 2]);
        assert_eq!(list.oldest(), None);
        list.push(1);
        assert_eq!(drained(&mut list), [1]);
    }
}
