//! Threads that may wait a little.
//!
//! A thread that has just been woken takes the processor from whoever runs there, which on a busy
//! machine is often the thread that serves clients. What asks the node, hears of slots or makes
//! tables loses nothing by a millisecond, so it runs at a lower priority: it is not woken into
//! another's turn, and still has a tenth of a processor when everybody wants one.

/// Steps below the usual priority. 10 is a tenth of the usual weight: sched(7), 2026-11.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Lets other threads go before the calling one from now on. Where the system does not do so, all
/// are alike.
pub(crate) fn give_way() {
    // On Linux it is the thread's own; elsewhere it would be the whole process's.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(NICE);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::getpriority_process;

    use super::{NICE, give_way};

    #[test]
    fn a_thread_gives_way_and_the_others_do_not() {
        let before = getpriority_process(None).unwrap();
        let other = std::thread::spawn(|| {
            give_way();
            getpriority_process(None).unwrap()
        });
        assert_eq!(other.join().unwrap(), (before + NICE).min(19));
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
