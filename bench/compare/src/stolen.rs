//! Steal time: on a rented machine the host shares the processors with other tenants, and a turn
//! with much steal time measures those more than the path.

/// Clock ticks a second in /proc; 100 on every Linux.
const TICKS_PER_S: f64 = 100.0;

/// The share of all processors' time that the host took between two readings.
pub struct Stolen {
    ticks: u64,
    at_ns: u64,
}

impl Stolen {
    /// Starts to count.
    pub fn since(now_ns: u64) -> Self {
        Self { ticks: stolen_ticks().unwrap_or(0), at_ns: now_ns }
    }

    /// From 0 to 1, in steps of a tick: 10 ms. Always 0 where the kernel does not report it.
    pub fn share(&self, now_ns: u64) -> f64 {
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let ticks = stolen_ticks().unwrap_or(0).saturating_sub(self.ticks) as f64;
        let whole_s = now_ns.saturating_sub(self.at_ns) as f64 / 1e9 * processors;
        if whole_s == 0.0 {
            0.0
        } else {
            ticks / TICKS_PER_S / whole_s
        }
    }
}

/// The eighth number of /proc/stat's first line, "steal" in proc(5).
fn stolen_ticks() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    text.lines().next()?.split_whitespace().nth(8)?.parse().ok()
}
