//! Both ends of the complete path in one process: the generator in front of an edge, and a leader
//! behind it. The driver of the comparison starts the process between them.
//!
//! Protocol in lines: it prints the leader's address and the tip account first. Each input line is
//! then a `Load` in JSON; the response is a line of JSON with the measurements. Latencies are in
//! microseconds.

use std::error::Error;
use std::io::{self, BufRead};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use crate::load::{fire, prepare, Load, Schedule, Shots};
use crate::transactions::{place_of, TIP_ACCOUNT_TEXT};

/// First arrivals of the current run.
#[derive(Default)]
struct Arrivals {
    run: u64,
    /// By index; 0: not yet.
    at_ns: Vec<u64>,
    copies: u64,
}

/// What a leader calls with each transaction and the time of its arrival.
pub type Take = Box<dyn Fn(&[u8], u64) + Send + Sync>;

/// How long to wait after the last response for deliveries still in flight.
const SETTLE: Duration = Duration::from_millis(200);

/// `start_leader` returns the leader's address.
pub fn run(
    start_leader: impl FnOnce(Take) -> Result<SocketAddr, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let arrivals = Arc::new(Mutex::new(Arrivals::default()));
    let noted = arrivals.clone();
    let address = start_leader(Box::new(move |bytes, now_ns| {
        let (Some((run, index)), Ok(mut arrivals)) = (place_of(bytes), noted.lock()) else {
            return;
        };
        if run != arrivals.run {
            return;
        }
        arrivals.copies += 1;
        if let Some(at_ns @ 0) = arrivals.at_ns.get_mut(index as usize) {
            *at_ns = now_ns;
        }
    }))?;
    println!("{address} {TIP_ACCOUNT_TEXT}");
    for line in io::stdin().lock().lines() {
        let load: Load = serde_json::from_str(&line?)?;
        let schedule = prepare(&load);
        {
            let mut arrivals = arrivals.lock().map_err(|_| "the leader's thread failed")?;
            *arrivals = Arrivals { run: load.run, at_ns: vec![0; load.count], copies: 0 };
        }
        let fired = fire(&load, &schedule);
        std::thread::sleep(SETTLE);
        let arrivals = arrivals.lock().map_err(|_| "the leader's thread failed")?;
        match fired {
            Ok(shots) => println!("{}", report(&load, &schedule, &shots, &arrivals)),
            Err(error) => println!("{}", json!({ "failed": error.to_string() })),
        }
    }
    Ok(())
}

fn report(
    load: &Load,
    schedule: &Schedule,
    shots: &Shots,
    arrivals: &Arrivals,
) -> serde_json::Value {
    let measured = load.warm..load.count;
    let all = measure(measured.clone().collect(), shots, arrivals);
    let groups = (0..load.groups.len()).map(|group| {
        let of_group = |index: &usize| schedule.senders[*index].group == group;
        measure(measured.clone().filter(of_group).collect(), shots, arrivals)
    });
    let groups: Vec<serde_json::Value> = groups.collect();
    let mut late: Vec<u64> = measured
        .clone()
        .map(|index| shots.sent_ns[index].saturating_sub(shots.due_ns[index]))
        .collect();
    // Rejected transactions are not lost.
    let missing = all["missing"].as_u64().unwrap_or(0);
    let count = measured.len() as f64;
    json!({
        "count": measured.len(),
        "accepted": shots.ends.accepted,
        "refused": shots.ends.refused,
        "first_refusal": shots.ends.first_refusal,
        "lost": missing.saturating_sub((shots.ends.refused + shots.ends.unsent) as u64),
        "copies": arrivals.copies,
        "ends": shots.ends,
        "groups": groups,
        "one_way_us": all["one_way_us"],
        "from_due_us": all["from_due_us"],
        "late_us": quantiles(&mut late),
        "cpu_us": shots.cpu_ns as f64 / 1e3 / count,
        "stolen": shots.stolen,
        "held_per_second": count * 1e9 / shots.took_ns as f64,
    })
}

/// How many of these arrived, and when.
fn measure(indexes: Vec<usize>, shots: &Shots, arrivals: &Arrivals) -> serde_json::Value {
    let (mut one_way, mut from_due) = (Vec::new(), Vec::new());
    let mut last_arrival_ns = 0;
    for &index in &indexes {
        let at_ns = arrivals.at_ns[index];
        if at_ns > 0 {
            one_way.push(at_ns.saturating_sub(shots.sent_ns[index]));
            from_due.push(at_ns.saturating_sub(shots.due_ns[index]));
            last_arrival_ns = last_arrival_ns.max(at_ns);
        }
    }
    json!({
        "count": indexes.len(),
        "missing": indexes.len() - one_way.len(),
        "last_arrival_ns": last_arrival_ns,
        "one_way_us": quantiles(&mut one_way),
        "from_due_us": quantiles(&mut from_due),
    })
}

/// p50, p99, p99.9 and the maximum, in microseconds.
pub fn quantiles(values_ns: &mut [u64]) -> serde_json::Value {
    values_ns.sort_unstable();
    let at = |per_mille: usize| {
        let place = (values_ns.len() * per_mille / 1000).min(values_ns.len().saturating_sub(1));
        values_ns.get(place).map_or(0.0, |ns| *ns as f64 / 1e3)
    };
    json!({ "p50": at(500), "p99": at(990), "p999": at(999), "max": at(1000) })
}
