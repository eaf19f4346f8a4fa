//! The cost of idle connections: memory of the process and CPU of the I/O thread.
//!
//! `cargo bench --bench idle -- [CONNECTIONS] [SECONDS]`. The leader is a separate process, so that
//! its memory does not count.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use support::{ADMITTED, Leader, LeaderOptions, Sender, options};

fn main() {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if words.first().is_some_and(|word| word == "leader") {
        let leader = Leader::start(LeaderOptions::default());
        println!("{}", leader.address);
        std::thread::sleep(Duration::from_secs(600));
        return;
    }
    let number = |place: usize, default: usize| {
        words.get(place).map_or(default, |word| word.parse().unwrap())
    };
    let (connections, seconds) = (number(0, 1000), number(1, 10));
    let mut leader = Command::new(std::env::current_exe().unwrap())
        .arg("leader")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut address = String::new();
    BufReader::new(leader.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
    let address = address.trim().parse().unwrap();

    let mut sender = Sender::start(options());
    sender.open_admitted(address);
    let before_kb = resident_kb();
    for opened in 2..=connections {
        sender.open(address);
        // In steps, so that no handshake waits too long.
        if opened % 50 == 0 || opened == connections {
            sender.until("admitted", |events| {
                events.iter().filter(|one| one.kind == ADMITTED).count() == opened
            });
        }
    }
    std::thread::sleep(Duration::from_secs(3));
    let (after_kb, cpu_before_ms) = (resident_kb(), io_thread_cpu_ms());
    std::thread::sleep(Duration::from_secs(seconds as u64));
    let cpu_ms = io_thread_cpu_ms() - cpu_before_ms;
    leader.kill().unwrap();
    leader.wait().unwrap();

    println!("connections {connections}");
    println!("memory_mb {:.1}", (after_kb - before_kb) as f64 / 1024.0);
    println!("cpu_percent {:.2}", cpu_ms as f64 / 10.0 / seconds as f64);
}

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// CPU time of the I/O thread so far; the kernel counts it in nanoseconds here.
fn io_thread_cpu_ms() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let io = tasks.map(|task| task.unwrap().path()).find(|task| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "td-io")
    });
    let stat = std::fs::read_to_string(io.unwrap().join("schedstat")).unwrap();
    stat.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1_000_000
}
