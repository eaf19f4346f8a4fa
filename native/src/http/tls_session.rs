//! Hot path: the TLS session of a client's connection. `socket` passes it what it reads and writes;
//! it makes no system call.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::{Error, HandshakeKind, InvalidMessage, ServerConfig, ServerConnection};

use crate::http::handler::HandshakeResult;

/// A session.
#[derive(Debug)]
pub(super) struct TlsSession {
    connection: ServerConnection,
    /// Decrypted bytes that were not read yet.
    decrypted: usize,
    /// Whether the client said that it sends no more.
    is_closed: bool,
    /// Why it failed, as a handshake or later.
    failure: Option<HandshakeResult>,
}

impl TlsSession {
    /// Starts a session.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub(super) fn new(config: Arc<ServerConfig>) -> Result<Self, Error> {
        let mut connection = ServerConnection::new(config)?;
        // The caller bounds what it sends, and takes the records at once.
        connection.set_buffer_limit(None);
        Ok(Self { connection, decrypted: 0, is_closed: false, failure: None })
    }

    /// How the handshake ended; None while it continues.
    pub(super) fn handshake(&self) -> Option<HandshakeResult> {
        if self.failure.is_some() || self.connection.is_handshaking() {
            return self.failure;
        }
        match self.connection.handshake_kind() {
            Some(HandshakeKind::Resumed) => Some(HandshakeResult::Resumed),
            _ => Some(HandshakeResult::Full),
        }
    }

    /// Whether `take` returns decrypted bytes, or the end.
    pub(super) fn can_take(&self) -> bool {
        self.decrypted > 0 || self.is_closed
    }

    /// Reads decrypted bytes: 0 at the end, None if there are none now.
    pub(super) fn take(&mut self, into: &mut [u8]) -> Option<usize> {
        if self.decrypted == 0 {
            return self.is_closed.then_some(0);
        }
        let count = self.connection.reader().read(into).ok()?;
        self.decrypted -= count;
        Some(count)
    }

    /// Reads records once. Call it only when nothing decrypted is left.
    ///
    /// # Errors
    /// Those of `from`.
    pub(super) fn read_from(&mut self, from: &mut impl Read) -> io::Result<usize> {
        self.connection.read_tls(from)
    }

    /// Handles the records that were read. Afterwards `take_records` has what is to be sent: parts
    /// of the handshake, or the alert that says why the session ends.
    ///
    /// # Errors
    /// When the session has failed.
    pub(super) fn process(&mut self) -> Result<(), Error> {
        let processed = self.connection.process_new_packets();
        let state = processed.inspect_err(|error| self.failure = Some(failure_of(error)))?;
        self.decrypted = state.plaintext_bytes_to_read();
        self.is_closed |= state.peer_has_closed();
        Ok(())
    }

    /// The records for these bytes, behind those that are to be sent anyway.
    ///
    /// # Errors
    /// Never: nothing bounds the records.
    pub(super) fn encrypt(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        self.connection.writer().write_all(bytes)?;
        Ok(self.take_records())
    }

    /// The records that end the session; none unless it is established.
    pub(super) fn close(&mut self) -> Vec<u8> {
        if self.failure.is_some() || self.connection.is_handshaking() {
            return Vec::new();
        }
        self.connection.send_close_notify();
        self.take_records()
    }

    /// The records to be sent.
    pub(super) fn take_records(&mut self) -> Vec<u8> {
        let mut records = Vec::new();
        // Writing to memory cannot fail.
        while self.connection.wants_write() && self.connection.write_tls(&mut records).is_ok() {}
        records
    }
}

fn failure_of(error: &Error) -> HandshakeResult {
    match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => HandshakeResult::NotTls,
        _ => HandshakeResult::Failed,
    }
}

#[cfg(test)]
#[path = "tls_session_tests.rs"]
mod tests;
