//! Thread priorities: lower for background threads; for latency-critical ones a short slice, or
//! real-time.
//!
//! A thread that was just woken preempts the running one, which on a busy machine is often the
//! thread that serves clients. Threads that build tables lose nothing by a millisecond, so they run
//! at a lower priority: they do not preempt others on waking, and still get a tenth of a processor
//! when all are busy.
//!
//! Decision: docs/decisions/0016-background-threads-have-lower-priority.md

#[cfg(feature = "ingress")]
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// Steps below the default priority. 10 is a tenth of the default weight: sched(7), 2026-11.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Lowers the priority of the calling thread. Has no effect where the system does not support it.
pub(crate) fn lower_priority() {
    // On Linux it applies to the thread; elsewhere it would apply to the process.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(NICE);
}

/// The least slice that the kernel grants: sched_setattr(2), 2026-11.
#[cfg(target_os = "linux")]
const SHORT_SLICE_NS: u64 = 100_000;

/// Has the calling thread preempt, when it is woken, threads with longer slices, which have 3 ms by
/// default. It needs no privilege. Before Linux 6.12 it has no effect, nor on a thread that an
/// operator gave a real-time policy.
///
/// Decision: docs/decisions/0059-threads-that-send-have-a-short-slice.md
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub(crate) fn shorten_slice() {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: 0,
        // Of a real-time policy, priority 0 is an error, so such a thread stays as it is.
        sched_flags: libc::SCHED_FLAG_KEEP_POLICY as u64,
        sched_nice: rustix::process::getpriority_process(None).unwrap_or(0),
        sched_priority: 0,
        sched_runtime: SHORT_SLICE_NS,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel reads `size` bytes behind the pointer, which outlives the call, and
    // changes no memory. 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// Has no effect elsewhere.
#[cfg(not(target_os = "linux"))]
pub(crate) fn shorten_slice() {}

/// The lowest real-time priority, which is above all others: sched(7), 2026-11.
#[cfg(feature = "ingress")]
const LEAST_REALTIME: ThreadPriority = ThreadPriority::Min;

/// Gives the calling thread a real-time priority; false where the system does not allow it. Threads
/// that it starts would inherit it.
#[cfg(feature = "ingress")]
pub(crate) fn set_realtime() -> bool {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);
    set_thread_priority_and_policy(thread_native_id(), LEAST_REALTIME, policy).is_ok()
}

#[cfg(all(test, target_os = "linux", feature = "ingress"))]
mod tests {
    use rustix::process::getpriority_process;

    use thread_priority::{
        NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
        set_thread_priority_and_policy, thread_native_id,
    };

    use super::{NICE, SHORT_SLICE_NS, lower_priority, set_realtime, shorten_slice};

    #[test]
    fn lowered_priority_applies_to_the_calling_thread_only() {
        let before = getpriority_process(None).unwrap();
        let other = std::thread::spawn(|| {
            lower_priority();
            getpriority_process(None).unwrap()
        });
        assert_eq!(other.join().unwrap(), (before + NICE).min(19));
        assert_eq!(getpriority_process(None).unwrap(), before);
    }

    #[test]
    fn a_short_slice_keeps_nice_value_and_policy_of_the_calling_thread() {
        // Where the kernel shows it; a slice can be set since Linux 6.12.
        let slice = || {
            let shown = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
            let line = shown.lines().find(|line| line.starts_with("se.slice"))?;
            line.split(':').nth(1)?.trim().parse::<u64>().ok()
        };
        let before = getpriority_process(None).unwrap();
        let (usual, short, nice) = std::thread::spawn(move || {
            lower_priority();
            let usual = slice();
            shorten_slice();
            (usual, slice(), getpriority_process(None).unwrap())
        })
        .join()
        .unwrap();
        assert_eq!(nice, (before + NICE).min(19));
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let mut version = release.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        if (version.next(), version.next()) >= (Some(6), Some(12)) {
            assert_eq!(short, usual.map(|_| SHORT_SLICE_NS));
        }
        assert_eq!(slice(), usual);
        let policy = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            stat.rsplit(')').next().unwrap().split_whitespace().nth(38).unwrap().to_owned()
        };
        let (before, after) = std::thread::spawn(move || {
            let batch = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Batch);
            let priority = ThreadPriority::Crossplatform(0.try_into().unwrap());
            set_thread_priority_and_policy(thread_native_id(), priority, batch).unwrap();
            let before = policy();
            shorten_slice();
            (before, policy())
        })
        .join()
        .unwrap();
        // SCHED_BATCH is 3.
        assert_eq!((before.as_str(), after.as_str()), ("3", "3"));
    }

    #[test]
    fn realtime_priority_applies_to_the_calling_thread_only() {
        let policies = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            // After the name in brackets: real-time priority and policy are fields 40 and 41,
            // proc(5).
            let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
            (fields[37].to_owned(), fields[38].to_owned())
        };
        let usual = ("0".to_owned(), "0".to_owned());
        assert_eq!(policies(), usual);
        let (went, had) = std::thread::spawn(move || (set_realtime(), policies())).join().unwrap();
        // SCHED_RR is 2.
        assert_eq!(had, if went { ("1".to_owned(), "2".to_owned()) } else { usual.clone() });
        assert_eq!(policies(), usual);
    }
}
