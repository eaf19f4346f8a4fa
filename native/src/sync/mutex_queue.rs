//! Hot path: a FIFO queue between threads, behind a mutex.
//!
//! A mutex, not a lock-free queue: there a reader spins until a writer is done, and the other way
//! round. If the kernel preempts the writer for a thread that spins, that thread spins until the
//! writer moves to another processor: up to a second if the spinning thread has real-time priority.
//! A thread that finds this mutex locked sleeps, so that the owner can continue. It is held for a
//! few memory moves.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Capacity that is kept when the queue becomes empty.
const CAPACITY_KEPT: usize = 64;

pub(crate) struct MutexQueue<T> {
    items: Mutex<VecDeque<T>>,
    /// Number of items; changed under the lock, read without it.
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

    /// Removes the oldest item.
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
    fn items_are_popped_in_push_order() {
        let queue = MutexQueue::default();
        assert!(queue.is_empty() && queue.pop().is_none());
        (0..3).for_each(|item| queue.push(item));
        assert_eq!((queue.pop(), queue.len()), (Some(0), 2));
        queue.push(3);
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!((rest, queue.is_empty()), (vec![1, 2, 3], true));
    }

    #[test]
    fn empty_queue_releases_the_capacity_of_a_burst() {
        let queue = MutexQueue::default();
        (0..10 * CAPACITY_KEPT).for_each(|item| queue.push(item));
        while queue.pop().is_some() {}
        assert!(queue.items.lock().capacity() <= CAPACITY_KEPT);
    }

    #[test]
    fn concurrent_push_and_pop_lose_and_duplicate_nothing() {
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

    #[cfg(target_os = "linux")]
    #[test]
    fn push_sleeps_while_the_mutex_is_locked() {
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
        // After the name in brackets: S is asleep, proc(5).
        while !std::fs::read_to_string(&stat).unwrap().contains(") S ") {
            std::thread::yield_now();
        }
        drop(locked);
        thread.join().unwrap();
        assert_eq!(queue.pop(), Some(7));
    }
}
