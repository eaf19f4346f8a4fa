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
const CAPACITY_KEPT: usize = 64;

pub(crate) struct MutexQueue<T> {
    items: Mutex<VecDeque<T>>,
    /// As many as there are; changed under the lock, looked at without it.
    count: AtomicUsize,
}

impl<T> Default for MutexQueue<T> {
    fn default() -> Self {
        Self { items: Mutex::new(VecDeque::new()), count: AtomicUsize::new(0) }
    }
}

impl<T> MutexQueue<T> {
    pub(crate) fn push(&self, item: T) {
        let mut items = self.items.lock();
        items.push_back(item);
        self.count.store(items.len(), Ordering::SeqCst);
    }

    /// Where there are `most` already, the oldest gives way and is returned.
    pub(crate) fn push_evicting(&self, item: T, count_max: usize) -> Option<T> {
        let mut items = self.items.lock();
        let oldest = if items.len() < count_max { None } else { items.pop_front() };
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
        if items.is_empty() && items.capacity() > CAPACITY_KEPT {
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

    use super::{CAPACITY_KEPT, MutexQueue};

    #[test]
    fn what_was_put_down_first_is_taken_first() {
        let queue = MutexQueue::default();
        assert!(queue.is_empty() && queue.pop().is_none());
        (0..3).for_each(|item| queue.push(item));
        assert_eq!((queue.pop(), queue.len()), (Some(0), 2));
        queue.push(3);
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!((rest, queue.is_empty()), (vec![1, 2, 3], true));
    }

    #[test]
    fn the_room_of_a_burst_is_given_back() {
        let queue = MutexQueue::default();
        (0..10 * CAPACITY_KEPT).for_each(|item| queue.push(item));
        while queue.pop().is_some() {}
        assert!(queue.items.lock().capacity() <= CAPACITY_KEPT);
    }

    #[test]
    fn nothing_is_lost_or_told_twice_between_many_threads() {
        let queue = Arc::new(MutexQueue::default());
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                let queue = queue.clone();
                std::thread::spawn(move || {
                    let mut taken = Vec::new();
                    for item in 0..1_000 {
                        queue.push(thread * 1_000 + item);
                        taken.extend(queue.pop());
                    }
                    taken
                })
            })
            .collect();
        let mut all: Vec<_> = threads.into_iter().flat_map(|it| it.join().unwrap()).collect();
        all.extend(std::iter::from_fn(|| queue.pop()));
        all.sort_unstable();
        assert_eq!(all, (0..3_000).collect::<Vec<_>>());
    }

    #[test]
    fn the_oldest_gives_way_to_what_is_one_too_many() {
        let queue = MutexQueue::default();
        let gave_way: Vec<_> = (0..4).map(|item| queue.push_evicting(item, 2)).collect();
        assert_eq!(gave_way, [None, None, Some(0), Some(1)]);
        assert_eq!(
            (queue.len(), queue.pop(), queue.pop(), queue.pop()),
            (2, Some(2), Some(3), None)
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn who_puts_down_while_another_is_at_it_leaves_the_processor() {
        let queue = Arc::new(MutexQueue::default());
        let locked = queue.items.lock();
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn({
            let queue = queue.clone();
            move || {
                sender.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
                queue.push(7);
            }
        });
        let stat = std::path::Path::new("/proc").join(receiver.recv().unwrap()).join("stat");
        // Behind the name in brackets: S is asleep, proc(5).
        while !std::fs::read_to_string(&stat).unwrap().contains(") S ") {
            std::thread::yield_now();
        }
        drop(locked);
        thread.join().unwrap();
        assert_eq!(queue.pop(), Some(7));
    }
}
