//! What the program says, as JSON lines on stdout. Every value is a number, base58, base64 or a
//! word of ours, except the echo of an unknown command, which is why no JSON library is needed.

use {
    base64::{Engine, engine::general_purpose::STANDARD},
    solana_pubkey::Pubkey,
    std::{
        io::Write,
        net::SocketAddr,
        time::{SystemTime, UNIX_EPOCH},
    },
};

#[derive(Clone)]
pub struct Events;

impl Events {
    pub fn new() -> Self {
        Events
    }

    fn line(&self, text: String) {
        let mut out = std::io::stdout().lock();
        // A reader that is gone ends the test; there is nobody left to tell.
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }

    pub fn listening(&self, leader: usize, address: SocketAddr) {
        self.line(format!(
            r#"{{"event":"listening","leader":{leader},"address":"{address}"}}"#
        ));
    }

    pub fn stopped(&self, leader: usize) {
        self.line(format!(r#"{{"event":"stopped","leader":{leader}}}"#));
    }

    pub fn connected(&self, leader: usize) {
        self.line(format!(r#"{{"event":"connected","leader":{leader}}}"#));
    }

    pub fn done(&self, leader: usize, command: &str) {
        self.line(format!(
            r#"{{"event":"done","leader":{leader},"command":"{command}"}}"#
        ));
    }

    /// `at_us`: microseconds since the Unix epoch when the server handed the bytes on.
    pub fn transaction(&self, leader: usize, bytes: &[u8], peer: Option<Pubkey>, staked: bool) {
        let at_us = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |elapsed| elapsed.as_micros());
        let peer = peer.map_or("null".into(), |pubkey| format!("\"{pubkey}\""));
        let bytes = STANDARD.encode(bytes);
        self.line(format!(
            r#"{{"event":"transaction","leader":{leader},"bytes":"{bytes}","peer":{peer},"staked":{staked},"atUs":{at_us}}}"#
        ));
    }

    pub fn unknown(&self, command: &str) {
        let word: String = command
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == ' ')
            .collect();
        self.line(format!(r#"{{"event":"unknown","command":"{word}"}}"#));
    }
}
