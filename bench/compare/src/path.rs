//! Both ends of the complete path in one process: the generator in front of an edge, the Agave
//! server behind it. The driver of the comparison starts the process between them.
//!
//! Protocol in lines: it prints the leader's address and the tip account first. Each input line is
//! then a `Load` in JSON; the response is a line of JSON with the measurements. Latencies are in
//! microseconds.

use std::error::Error;
use std::io::{self, BufRead};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use crate::leader;
use crate::load::{fire, prepare, Load, Shots};
use crate::transactions::{place_of, TIP_ACCOUNT};

/// First arrivals of the current run.
#[derive(Default)]
struct Arrivals {
    run: u64,
    /// By index; 0: not yet.
    at_ns: Vec<u64>,
    copies: u64,
}

/// How long to wait after the last response for deliveries still in flight.
const SETTLE: Duration = Duration::from_millis(200);

/// `public_keys` are the identities that hold stake.
pub fn run(public_keys: &[&str]) -> Result<(), Box<dyn Error>> {
    let arrivals = Arc::new(Mutex::new(Arrivals::default()));
    let noted = arrivals.clone();
    let address = leader::serve(public_keys, move |bytes, now_ns| {
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
    })?;
    println!("{address} {}", bs58::encode(TIP_ACCOUNT).into_string());
    for line in io::stdin().lock().lines() {
        let load: Load = serde_json::from_str(&line?)?;
        let requests = prepare(&load);
        {
            let mut arrivals = arrivals.lock().map_err(|_| "the leader's thread failed")?;
            *arrivals = Arrivals { run: load.run, at_ns: vec![0; load.count], copies: 0 };
        }
        let fired = fire(&load, &requests);
        std::thread::sleep(SETTLE);
        let arrivals = arrivals.lock().map_err(|_| "the leader's thread failed")?;
        match fired {
            Ok(shots) => println!("{}", report(&load, &shots, &arrivals)),
            Err(error) => println!("{}", json!({ "failed": error.to_string() })),
        }
    }
    Ok(())
}

fn report(load: &Load, shots: &Shots, arrivals: &Arrivals) -> serde_json::Value {
    let (mut one_way, mut from_due, mut late) = (Vec::new(), Vec::new(), Vec::new());
    let mut lost = 0u64;
    for index in load.warm..load.count {
        late.push(shots.sent_ns[index].saturating_sub(shots.due_ns[index]));
        match arrivals.at_ns[index] {
            0 => lost += 1,
            at_ns => {
                one_way.push(at_ns.saturating_sub(shots.sent_ns[index]));
                from_due.push(at_ns.saturating_sub(shots.due_ns[index]));
            }
        }
    }
    // Does not wait for rejected transactions.
    let lost = u64::saturating_sub(lost, shots.refused as u64);
    let measured = (load.count - load.warm) as f64;
    json!({
        "count": load.count - load.warm,
        "accepted": shots.accepted,
        "refused": shots.refused,
        "first_refusal": shots.first_refusal,
        "lost": lost,
        "copies": arrivals.copies,
        "one_way_us": quantiles(&mut one_way),
        "from_due_us": quantiles(&mut from_due),
        "late_us": quantiles(&mut late),
        "cpu_us": shots.cpu_ns as f64 / 1e3 / measured,
        "stolen": shots.stolen,
        "held_per_second": measured * 1e9 / shots.took_ns as f64,
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
