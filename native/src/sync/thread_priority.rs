//! Threads that may wait a little, and threads that may not.
//!
//! A thread that has just been woken takes the processor from whoever runs there, which on a busy
//! machine is often the thread that serves clients. What asks the node, hears of slots or makes
//! tables loses nothing by a millisecond, so it runs at a lower priority: it is not woken into
//! another's turn, and still has a tenth of a processor when everybody wants one.
//!
//! Decision: docs/decisions/0016-background-threads-have-lower-priority.md

#[cfg(feature = "ingress")]
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

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

/// The least of the real-time priorities, which is above all others: sched(7), 2026-11.
#[cfg(feature = "ingress")]
const LEAST_REALTIME: ThreadPriority = ThreadPriority::Min;

/// Has the calling thread go before all that have no real-time priority, from now on; false where
/// the system does not allow it. Threads that it starts would do so too.
#[cfg(feature = "ingress")]
pub(crate) fn go_first() -> bool {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);
    set_thread_priority_and_policy(thread_native_id(), LEAST_REALTIME, policy).is_ok()
}

#[cfg(all(test, target_os = "linux", feature = "ingress"))]
mod tests {
    use rustix::process::getpriority_process;

    use super::{NICE, give_way, go_first};

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

    #[test]
    fn a_thread_goes_first_where_it_may_and_the_others_do_not() {
        let policies = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            // Behind the name in brackets: real-time priority and policy are 40 and 41, proc(5).
            let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
            (fields[37].to_owned(), fields[38].to_owned())
        };
        let usual = ("0".to_owned(), "0".to_owned());
        assert_eq!(policies(), usual);
        let (went, had) = std::thread::spawn(move || (go_first(), policies())).join().unwrap();
        // SCHED_RR is 2.
        assert_eq!(had, if went { ("1".to_owned(), "2".to_owned()) } else { usual.clone() });
        assert_eq!(policies(), usual);
    }
}
