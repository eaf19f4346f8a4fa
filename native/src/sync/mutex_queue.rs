//! Hot path: what one thread puts down for another, the oldest first.
//!
//! A mutex, and not a queue without locks: there, who takes looks again and again until who puts
//! down is through, and the other way round. Where the kernel has taken the processor from that one
//! for a thread that now looks, this goes on until somebody moves it elsewhere: for up to a second
//! where the one that looks has real-time priority. Who finds this mutex taken sleeps, so that the
//! other can go on. It is held for a few moves of memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Room for so many stays when all was taken.
const ROOM_KEPT: usize = 64;

pub(crate) struct Tray<T> {
    items: Mutex<VecDeque<T>>,
    /// As many as there are; changed under the lock, looked at without it.
    count: AtomicUsize,
}

impl<T> Default for Tray<T> {
    fn default() -> Self {
        Self { items: Mutex::new(VecDeque::new()), count: AtomicUsize::new(0) }
    }
}

impl<T> Tray<T> {
    pub(crate) fn push(&self, item: T) {
        let mut items = self.items.lock();
        items.push_back(item);
        self.count.store(items.len(), Ordering::SeqCst);
    }

    /// Where there are `most` already, the oldest gives way and is returned.
    pub(crate) fn push_over(&self, item: T, most: usize) -> Option<T> {
        let mut items = self.items.lock();
        let oldest = if items.len() < most { None } else { items.pop_front() };
        items.push_back(item);
        self.count.store(items.len(), Ordering::SeqCst);
        oldest
    }

    /// The oldest one.
    pub(crate) fn pop(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let mut items = self.items.lock();
        let item = items.pop_front()?;
        self.count.store(items.len(), Ordering::SeqCst);
        if items.is_empty() && items.capacity() > ROOM_KEPT {
            *items = VecDeque::new();
        }
        Some(item)
    }

    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{ROOM_KEPT, Tray};

    #[test]
    fn what_was_put_down_first_is_taken_first() {
        let tray = Tray::default();
        assert!(tray.is_empty() && tray.pop().is_none());
        (0..3).for_each(|item| tray.push(item));
        assert_eq!((tray.pop(), tray.len()), (Some(0), 2));
        tray.push(3);
        let rest: Vec<_> = std::iter::from_fn(|| tray.pop()).collect();
        assert_eq!((rest, tray.is_empty()), (vec![1, 2, 3], true));
    }

    #[test]
    fn the_room_of_a_burst_is_given_back() {
        let tray = Tray::default();
        (0..10 * ROOM_KEPT).for_each(|item| tray.push(item));
        while tray.pop().is_some() {}
        assert!(tray.items.lock().capacity() <= ROOM_KEPT);
    }

    #[test]
    fn nothing_is_lost_or_told_twice_between_many_threads() {
        let tray = Arc::new(Tray::default());
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                let tray = tray.clone();
                std::thread::spawn(move || {
                    let mut taken = Vec::new();
                    for item in 0..1_000 {
                        tray.push(thread * 1_000 + item);
                        taken.extend(tray.pop());
                    }
                    taken
                })
            })
            .collect();
        let mut all: Vec<_> = threads.into_iter().flat_map(|it| it.join().unwrap()).collect();
        all.extend(std::iter::from_fn(|| tray.pop()));
        all.sort_unstable();
        assert_eq!(all, (0..3_000).collect::<Vec<_>>());
    }

    #[test]
    fn the_oldest_gives_way_to_what_is_one_too_many() {
        let tray = Tray::default();
        let gave_way: Vec<_> = (0..4).map(|item| tray.push_over(item, 2)).collect();
        assert_eq!(gave_way, [None, None, Some(0), Some(1)]);
        assert_eq!((tray.len(), tray.pop(), tray.pop(), tray.pop()), (2, Some(2), Some(3), None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn who_puts_down_while_another_is_at_it_leaves_the_processor() {
        let tray = Arc::new(Tray::default());
        let at_work = tray.items.lock();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn({
            let tray = tray.clone();
            move || {
                tell.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
                tray.push(7);
            }
        });
        let stat = std::path::Path::new("/proc").join(told.recv().unwrap()).join("stat");
        // Behind the name in brackets: S is asleep, proc(5).
        while !std::fs::read_to_string(&stat).unwrap().contains(") S ") {
            std::thread::yield_now();
        }
        drop(at_work);
        thread.join().unwrap();
        assert_eq!(tray.pop(), Some(7));
    }
}
