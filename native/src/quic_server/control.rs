//! The control stream of one connection: the frame that a client begins with, and the frames that
//! wait for it to read.

use std::collections::VecDeque;

use quinn_proto::{Connection, StreamId};

use crate::quic_server::frame::{self, HELLO_BYTES_MAX, read_hello};
use crate::quic_server::handler::ClientLimits;
use crate::quic_server::limits::CONTROL_FRAMES_MAX;
use crate::quic_server::verdict::VERDICT_BYTES;

/// What a client said about itself.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Greeting {
    /// The client's frame: whether it wants receipts, and its API key or nothing.
    Hello { wants_receipts: bool, token: Vec<u8> },
    /// A transaction of a client that did not say who it is.
    None,
    /// Anything else.
    Invalid,
}

pub(super) struct ControlStream {
    id: StreamId,
    /// What has arrived of the client's frame.
    inbox: Vec<u8>,
    is_greeted: bool,
    /// When the client's frame must be complete.
    finish_by_ns: u64,
    /// Whether the client no longer takes frames.
    is_stopped: bool,
    frames: VecDeque<Frame>,
    /// Bytes of the first frame that were written.
    written: usize,
    /// Dropped receipts that no LOST frame counts yet.
    lost: u32,
    /// The limits of the last LIMITS frame.
    limits: Option<ClientLimits>,
}

struct Frame {
    bytes: Vec<u8>,
    is_receipt: bool,
    /// How many receipts it says were dropped.
    lost: u32,
}

impl ControlStream {
    pub(super) fn new(id: StreamId, finish_by_ns: u64) -> Self {
        Self {
            id,
            inbox: Vec::new(),
            is_greeted: false,
            finish_by_ns,
            is_stopped: false,
            frames: VecDeque::new(),
            written: 0,
            lost: 0,
            limits: None,
        }
    }

    pub(super) fn id(&self) -> StreamId {
        self.id
    }

    /// Takes what the client sent, and whether its side has ended. Returns what that completes.
    pub(super) fn take(&mut self, bytes: &[u8], has_ended: bool) -> Option<Greeting> {
        if self.is_greeted {
            return (!bytes.is_empty()).then_some(Greeting::Invalid);
        }
        if self.inbox.len() + bytes.len() > HELLO_BYTES_MAX {
            return Some(Greeting::Invalid);
        }
        self.inbox.extend_from_slice(bytes);
        match read_hello(&self.inbox) {
            Ok(None) => has_ended.then_some(Greeting::Invalid),
            Err(_) => Some(Greeting::Invalid),
            Ok(Some(hello)) => {
                self.is_greeted = true;
                let token = hello.token.to_vec();
                let wants_receipts = hello.wants_receipts;
                self.inbox = Vec::new();
                Some(Greeting::Hello { wants_receipts, token })
            }
        }
    }

    /// Whether the client's frame is late.
    pub(super) fn is_late(&self, now_ns: u64) -> bool {
        !self.is_greeted && self.finish_by_ns <= now_ns
    }

    /// Whether the client was greeted, and takes frames.
    pub(super) fn is_open(&self) -> bool {
        self.is_greeted && !self.is_stopped
    }

    /// How many bytes arrived of a frame that is not complete, with the stream's first one.
    pub(super) fn bytes_of_hello(&self) -> usize {
        if self.is_greeted { 0 } else { 1 + self.inbox.len() }
    }

    /// Whether the client takes no more frames.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// The client reads it no more.
    pub(super) fn stop(&mut self) {
        self.is_stopped = true;
        self.frames.clear();
    }

    /// Queues a frame that is no receipt.
    pub(super) fn push(&mut self, bytes: Vec<u8>) {
        if !self.is_stopped {
            self.frames.push_back(Frame { bytes, is_receipt: false, lost: 0 });
        }
    }

    /// Whether the last LIMITS frame has other limits; false while earlier frames wait.
    pub(super) fn needs_limits(&self, limits: ClientLimits) -> bool {
        self.frames.is_empty() && self.limits != Some(limits)
    }

    /// Queues the limits.
    pub(super) fn push_limits(&mut self, limits: ClientLimits, credit: u32, bytes_max: u32) {
        self.limits = Some(limits);
        self.push(frame::limits(&limits, credit, bytes_max));
    }

    /// Queues a receipt; returns whether another one was dropped for it.
    pub(super) fn push_receipt(&mut self, verdict: &[u8; VERDICT_BYTES]) -> bool {
        if !self.is_open() {
            return false;
        }
        let is_full = self.frames.len() >= CONTROL_FRAMES_MAX;
        if is_full {
            // One that is partly written must be completed.
            let first = usize::from(self.written > 0);
            let oldest = self.frames.iter().skip(first).position(|frame| frame.is_receipt);
            if let Some(at) = oldest {
                self.frames.remove(first + at);
            }
            self.lost = self.lost.saturating_add(1);
        }
        self.frames.push_back(Frame { bytes: frame::receipt(verdict), is_receipt: true, lost: 0 });
        is_full
    }

    /// Writes what the client's flow control admits.
    pub(super) fn flush(&mut self, connection: &mut Connection) {
        if self.is_stopped {
            return;
        }
        let mut stream = connection.send_stream(self.id);
        loop {
            let at = self.written;
            let Some(rest) = self.next().and_then(|bytes| bytes.get(at..)) else { return };
            match stream.write(rest) {
                Ok(written) if written < rest.len() => self.written += written,
                Ok(_) => {
                    self.frames.pop_front();
                    self.written = 0;
                }
                // It is blocked, or was stopped, which is an event of its own.
                Err(_) => return,
            }
        }
    }

    /// The frame to write next. A LOST frame with the number of dropped receipts precedes the next
    /// receipt; one that waits already gets the new number.
    fn next(&mut self) -> Option<&Vec<u8>> {
        let is_next = |frame: &Frame| frame.is_receipt || frame.lost > 0;
        if self.written == 0 && self.lost > 0 && self.frames.front().is_some_and(is_next) {
            let mut lost = std::mem::take(&mut self.lost);
            if let Some(waiting) = self.frames.front().filter(|frame| frame.lost > 0) {
                lost = lost.saturating_add(waiting.lost);
                self.frames.pop_front();
            }
            self.frames.push_front(Frame { bytes: frame::lost(lost), is_receipt: false, lost });
        }
        self.frames.front().map(|frame| &frame.bytes)
    }
}

#[cfg(test)]
mod tests {
    use quinn_proto::{Dir, Side};

    use super::*;

    const HELLO: &[u8] = b"\x01\0\x1a\0\x01\x01example-key-of-this-page";

    fn control() -> ControlStream {
        ControlStream::new(StreamId::new(Side::Client, Dir::Bi, 0), 7)
    }

    #[test]
    fn client_is_greeted_once_its_frame_is_complete() {
        let mut stream = control();
        assert_eq!(stream.take(&HELLO[..9], false), None);
        assert!(stream.is_late(7) && !stream.is_late(6) && !stream.is_open());
        let token = b"example-key-of-this-page".to_vec();
        let hello = Some(Greeting::Hello { wants_receipts: true, token });
        assert_eq!(stream.take(&HELLO[9..], true), hello);
        assert!(stream.is_open() && !stream.is_late(7));
        assert_eq!(stream.take(&[], true), None);
        assert_eq!(stream.take(&[0], false), Some(Greeting::Invalid));
    }

    #[test]
    fn anything_else_is_invalid() {
        assert_eq!(control().take(&[9], false), Some(Greeting::Invalid));
        assert_eq!(control().take(&HELLO[..9], true), Some(Greeting::Invalid));
        assert_eq!(control().take(&[], true), Some(Greeting::Invalid));
        assert_eq!(control().take(&[1; HELLO_BYTES_MAX + 1], false), Some(Greeting::Invalid));
        assert_eq!(control().take(&[HELLO, &[0]].concat(), false), Some(Greeting::Invalid));
    }

    #[test]
    fn oldest_receipts_are_dropped_and_the_client_hears_how_many() {
        let mut stream = control();
        let limits = ClientLimits { rate_per_second: 1.0, burst: 1 };
        assert!(!stream.push_receipt(&[0; VERDICT_BYTES]), "before the client is greeted");
        let _ = stream.take(HELLO, false);
        stream.push_limits(limits, 1, 2);
        for number in 0..CONTROL_FRAMES_MAX - 1 {
            assert!(!stream.push_receipt(&[number as u8; VERDICT_BYTES]));
        }
        assert!(stream.push_receipt(&[0xfe; VERDICT_BYTES]));
        assert!(stream.push_receipt(&[0xff; VERDICT_BYTES]));
        assert_eq!(stream.frames.len(), CONTROL_FRAMES_MAX);
        // The limits were kept, and are first.
        assert_eq!(stream.next().map(|bytes| bytes[0]), Some(0x81));
        stream.frames.pop_front();
        assert_eq!(stream.next().map(Vec::as_slice), Some(frame::lost(2).as_slice()));
        let receipts: Vec<u8> =
            stream.frames.iter().filter(|frame| frame.is_receipt).map(|it| it.bytes[4]).collect();
        assert_eq!((receipts[0], receipts.last()), (2, Some(&0xff)));
    }

    #[test]
    fn client_that_reads_nothing_holds_one_frame_for_all_that_were_dropped() {
        let mut stream = control();
        let _ = stream.take(HELLO, false);
        for number in 0..10 * CONTROL_FRAMES_MAX {
            stream.push_receipt(&[number as u8; VERDICT_BYTES]);
            // As a flush does that the client's flow control admits nothing of.
            let _ = stream.next();
        }
        assert_eq!(stream.frames.len(), CONTROL_FRAMES_MAX + 1);
        let lost = frame::lost(9 * CONTROL_FRAMES_MAX as u32);
        assert_eq!(stream.next(), Some(&lost));
    }

    #[test]
    fn receipt_that_is_partly_written_is_not_dropped() {
        let mut stream = control();
        let _ = stream.take(HELLO, false);
        for number in 0..CONTROL_FRAMES_MAX {
            stream.push_receipt(&[number as u8; VERDICT_BYTES]);
        }
        stream.written = 1;
        assert!(stream.push_receipt(&[9; VERDICT_BYTES]));
        let starts: Vec<u8> = stream.frames.iter().take(2).map(|frame| frame.bytes[4]).collect();
        assert_eq!(starts, [0, 2]);
        // The rest of it is next, not a frame in the middle of it.
        assert_eq!(stream.next().map(|bytes| bytes[0]), Some(0x84));
    }

    #[test]
    fn limits_are_told_again_when_they_change() {
        let mut stream = control();
        let _ = stream.take(HELLO, false);
        let one = ClientLimits { rate_per_second: 1.0, burst: 1 };
        let two = ClientLimits { burst: 2, ..one };
        assert!(stream.needs_limits(one));
        stream.push_limits(one, 1, 2);
        assert!(!stream.needs_limits(two), "earlier frames wait");
        stream.frames.clear();
        assert!(!stream.needs_limits(one) && stream.needs_limits(two));
        stream.stop();
        stream.push(Vec::new());
        assert!(stream.frames.is_empty() && !stream.push_receipt(&[0; VERDICT_BYTES]));
    }
}
