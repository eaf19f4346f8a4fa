//! Handles: how JavaScript names what the addon holds for it: engines, decoders, threads.
//!
//! A handle is a slot index and the number of times that slot was used, so that a stale handle
//! finds nothing instead of another object. Above 0, and below 2^24.

use std::sync::Arc;

use parking_lot::RwLock;

/// The objects of one kind in this process, by handle.
pub struct Handles<T> {
    slots: RwLock<Vec<Slot<T>>>,
    count_max: usize,
}

struct Slot<T> {
    uses: u16,
    value: Option<Arc<T>>,
}

impl<T> Handles<T> {
    /// Empty; holds at most `count_max`, which is 256 at most.
    #[must_use]
    pub const fn new(count_max: usize) -> Self {
        Self { slots: RwLock::new(Vec::new()), count_max }
    }

    /// The handle of what `make` returns; None when there are too many. A slot is free when it is
    /// empty, or when `is_over` returns true for its object.
    pub fn insert<E>(
        &self,
        is_over: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Result<Arc<T>, E>,
    ) -> Option<Result<u32, E>> {
        let mut slots = self.slots.write();
        let is_free = |slot: &Slot<T>| slot.value.as_deref().is_none_or(&is_over);
        let index = match slots.iter().position(is_free) {
            Some(index) => index,
            None if slots.len() < self.count_max.min(SLOTS_MAX) => slots.len(),
            None => return None,
        };
        let made = match make() {
            Ok(made) => made,
            Err(error) => return Some(Err(error)),
        };
        if index == slots.len() {
            slots.push(Slot { uses: 0, value: None });
        }
        let slot = slots.get_mut(index)?;
        slot.uses = slot.uses.wrapping_add(1).max(1);
        slot.value = Some(made);
        Some(Ok(u32::from(slot.uses) << INDEX_BITS | u32::try_from(index).ok()?))
    }

    /// The object of a handle; None if it was removed.
    #[must_use]
    pub fn find(&self, handle: u32) -> Option<Arc<T>> {
        let slots = self.slots.read();
        let slot = slots.get(index_of(handle))?;
        if u32::from(slot.uses) != handle >> INDEX_BITS { None } else { slot.value.clone() }
    }

    /// Removes the object of a handle; it is dropped after the last call that uses it.
    pub fn remove(&self, handle: u32) -> bool {
        let mut slots = self.slots.write();
        let slot = slots.get_mut(index_of(handle));
        let slot = slot.filter(|slot| u32::from(slot.uses) == handle >> INDEX_BITS);
        slot.and_then(|slot| slot.value.take()).is_some()
    }
}

fn index_of(handle: u32) -> usize {
    handle as usize & (SLOTS_MAX - 1)
}

const INDEX_BITS: u32 = 8;
const SLOTS_MAX: usize = 1 << INDEX_BITS;

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(handles: &Handles<u8>, value: u8) -> Option<u32> {
        let made = handles.insert(|value| *value == 0, || Ok::<_, ()>(Arc::new(value)));
        made.map(|handle| handle.unwrap())
    }

    #[test]
    fn a_stale_handle_finds_nothing() {
        let handles = Handles::new(2);
        let first = insert(&handles, 1).unwrap();
        assert!(first > 0);
        assert_eq!(handles.find(first).as_deref(), Some(&1));
        assert!(handles.remove(first) && !handles.remove(first));
        let second = insert(&handles, 2).unwrap();
        assert_eq!((handles.find(first), handles.find(second).as_deref()), (None, Some(&2)));
        assert!(!handles.remove(first));
        for stranger in [0, 1, second + 1, u32::MAX] {
            assert!(handles.find(stranger).is_none() && !handles.remove(stranger));
        }
    }

    #[test]
    fn limit_counts_only_live_objects() {
        let handles = Handles::new(2);
        let over = insert(&handles, 0).unwrap();
        assert_eq!(handles.find(over).as_deref(), Some(&0));
        let live = insert(&handles, 1).unwrap();
        assert!(handles.find(over).is_none());
        assert!(insert(&handles, 1).is_some() && insert(&handles, 1).is_none());
        assert!(handles.find(live).is_some());
    }

    #[test]
    fn failed_insert_takes_no_slot() {
        let handles = Handles::<u8>::new(1);
        assert_eq!(handles.insert(|_| false, || Err("no")), Some(Err("no")));
        assert!(insert(&handles, 1).is_some());
    }
}
