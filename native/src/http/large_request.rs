//! A submission that is larger than a thread's read buffer, as far as it has arrived.

use crate::http::permits::Permit;
use crate::http::socket::{BufferedSocket, ReadResult};

/// Requests of this kind, and unread responses to them, that a thread holds at a time: 34 MB.
/// Further ones are refused.
pub(crate) const LARGE_REQUESTS_MAX: usize = 256;

/// The request.
#[derive(Debug)]
pub(super) struct LargeRequest {
    bytes: Vec<u8>,
    received: usize,
    permit: Permit,
}

impl LargeRequest {
    /// One of `size` bytes that starts with these.
    pub(super) fn new(start: &[u8], size: usize, permit: Permit) -> Self {
        let mut bytes = start.to_vec();
        bytes.resize(size, 0);
        Self { bytes, received: start.len(), permit }
    }

    /// Reads once.
    pub(super) fn read(&mut self, socket: &mut BufferedSocket) -> ReadResult {
        let result = socket.read(self.bytes.get_mut(self.received..).unwrap_or_default());
        if let ReadResult::Data(count) = result {
            self.received += count;
        }
        result
    }

    /// Whether no byte is missing.
    pub(super) fn is_whole(&self) -> bool {
        self.received == self.bytes.len()
    }

    /// Its bytes, and what counts it, for as long as its response is unread.
    pub(super) fn into_parts(self) -> (Vec<u8>, Permit) {
        (self.bytes, self.permit)
    }
}
