//! The run: starts the processes, alternates the senders, prints rounds and medians.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use solana_signer::Signer;

use crate::sender::{identity, SENDERS};

const RATES: [u64; 3] = [200, 1_000, 5_000];

/// Without rates, the standard ones.
pub fn run(rounds: u64, seconds: u64, rates: &[u64]) -> Result<(), Box<dyn Error>> {
    let mut leader_arguments = vec!["leader".to_string()];
    for sender in 0..SENDERS.len() {
        leader_arguments.push(identity(sender)?.pubkey().to_string());
    }
    let mut leader = Process::start(&leader_arguments)?;
    let address = leader.line()?;
    let mut senders = Vec::new();
    for name in SENDERS {
        let mut sender = Process::start(&["sender".into(), name.into(), address.clone()])?;
        sender.line()?;
        senders.push(sender);
    }
    // Warms caches, path MTU and congestion windows before the first measurement.
    for sender in &mut senders {
        sender.ask("run 1000 1")?;
    }

    println!("rate sender count lost p50_us p99_us p99.9_us cpu_us leader_cpu_us");
    for &rate in if rates.is_empty() { &RATES[..] } else { rates } {
        let mut figures = vec![Vec::new(); SENDERS.len()];
        for round in 0..rounds {
            for turn in 0..SENDERS.len() {
                // The first sender alternates, so that neither always follows the other.
                let number = (turn + round as usize) % SENDERS.len();
                let row = measure(&mut leader, &mut senders[number], number, rate, seconds)?;
                print(rate, SENDERS[number], &row);
                figures[number].push(row);
            }
        }
        for (number, rows) in figures.iter().enumerate() {
            let median = std::array::from_fn(|column| {
                let mut values: Vec<f64> = rows.iter().map(|row| row[column]).collect();
                values.sort_by(f64::total_cmp);
                values[values.len() / 2]
            });
            print(rate, &format!("median:{}", SENDERS[number]), &median);
        }
    }
    Ok(())
}

/// Count, lost, p50, p99, p99.9, and the CPU of sender and leader per transaction; us.
type Row = [f64; 7];

fn measure(
    leader: &mut Process,
    sender: &mut Process,
    number: usize,
    rate: u64,
    seconds: u64,
) -> Result<Row, Box<dyn Error>> {
    leader.say("reset")?;
    let sent = numbers(&sender.ask(&format!("run {rate} {seconds}"))?)?;
    std::thread::sleep(Duration::from_millis(200));
    let report = numbers(&leader.ask("report")?)?;
    let [count, p50, p99, p999] = std::array::from_fn(|column| report[number * 4 + column]);
    let lost = sent[0] - count;
    let leader_cpu = report[8] / count;
    Ok([count, lost, p50 / 1e3, p99 / 1e3, p999 / 1e3, sent[1] / sent[0], leader_cpu])
}

fn print(rate: u64, name: &str, row: &Row) {
    let [count, lost, p50, p99, p999, cpu, leader] = row;
    println!("{rate} {name} {count} {lost} {p50:.1} {p99:.1} {p999:.1} {cpu:.1} {leader:.1}");
}

fn numbers(line: &str) -> Result<Vec<f64>, Box<dyn Error>> {
    Ok(line.split(' ').map(str::parse).collect::<Result<_, _>>()?)
}

struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    fn start(arguments: &[String]) -> Result<Self, Box<dyn Error>> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take().ok_or("no stdin")?;
        let stdout = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        Ok(Self { child, stdin, stdout })
    }

    fn say(&mut self, line: &str) -> Result<(), Box<dyn Error>> {
        Ok(writeln!(self.stdin, "{line}")?)
    }

    fn line(&mut self) -> Result<String, Box<dyn Error>> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        match line.trim_end() {
            "" => Err("a process ended early".into()),
            text => Ok(text.to_string()),
        }
    }

    fn ask(&mut self, line: &str) -> Result<String, Box<dyn Error>> {
        self.say(line)?;
        self.line()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
