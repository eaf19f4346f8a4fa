//! One connection of a client: its unfinished streams, its credit and its timer.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Instant;

use bytes::Bytes;
use quinn_proto::crypto::rustls::HandshakeData;
use quinn_proto::{Connection, Dir, StreamEvent, StreamId, VarInt, WriteError};
use rustls::pki_types::CertificateDer;

use crate::quic_server::admission::Permit;
use crate::quic_server::control::{ControlStream, Greeting};
use crate::quic_server::first_byte::{CONTROL, Flags, split_flags};
use crate::quic_server::frame;
use crate::quic_server::handler::{
    Decision, QuicClient, QuicNumbers, QuicRefusal, StreamHandler, Submission,
};
use crate::quic_server::landing_waits::{LandingWaits, Waiter};
use crate::quic_server::limits::{
    ACK_DELAY, ACK_GAP_NS, LANDING_NS_MAX, LANDINGS_PER_CONNECTION, STREAM_BYTES_MAX,
};
use crate::quic_server::stream_bytes::{Arrived, Content, read_available};
use crate::quic_server::tls::{ALPN_TOUCHDOWN, public_key_of};
use crate::quic_server::verdict::{SIGNATURE_BYTES, VERDICT_BYTES, Verdict, microseconds_of};
use crate::sync::clock::{Clock, NEVER_NS};

/// What is known of the client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Phase {
    /// The handshake is in progress, or the client did not say yet who it is.
    Handshake,
    /// Its key is valid and belongs to this account.
    Open { key: [u8; 32], account: u64 },
    /// It is closed, and kept to answer what its client still sends.
    Closed,
}

/// What a connection uses of the listener while it is driven.
pub(super) struct Turn<'a> {
    /// The connection's.
    pub(super) handle: usize,
    pub(super) now_ns: u64,
    /// When what is read was received.
    pub(super) received_ns: u64,
    /// When streams that begin now must be finished.
    pub(super) finish_by_ns: u64,
    pub(super) clock: Clock,
    pub(super) waits: &'a mut LandingWaits,
    pub(super) numbers: &'a mut QuicNumbers,
}

pub(super) struct ClientConnection {
    pub(super) inner: Connection,
    pub(super) phase: Phase,
    /// Whether the client speaks `touchdown/1`; known once the handshake is complete.
    pub(super) is_touchdown: bool,
    /// The address that it counts for.
    pub(super) source: IpAddr,
    /// What it counts for; None once it has ended.
    pub(super) permit: Option<Permit>,
    /// When its handshake must be finished; once it is closed, when it is forgotten.
    pub(super) until_ns: u64,
    /// Whether it is listed to be driven.
    pub(super) is_listed: bool,
    /// The timer that is armed for it.
    pub(super) armed_ns: u64,
    /// When its credit is to be looked at again.
    pub(super) credit_at_ns: u64,
    /// When the first of its datagrams was received that it was not driven for yet.
    pub(super) received_ns: u64,
    /// When something was last sent to the client.
    pub(super) sent_ns: u64,
    /// The timer of the acknowledgement of the first datagram that was not acknowledged; an old
    /// one where all were.
    acknowledge_at: Option<Instant>,
    /// Streams of which something has arrived that was not read yet, and when it was received.
    readable: VecDeque<(StreamId, u64)>,
    pub(super) streams: HashMap<StreamId, UnfinishedStream>,
    pub(super) control: Option<ControlStream>,
    /// Whether the client wants receipts.
    pub(super) wants_receipts: bool,
    /// What the client said on its control stream and was not looked at yet.
    greeting: Option<Greeting>,
    /// Accepted transactions whose verdict waits for their end.
    waiting: HashMap<StreamId, Waiting>,
    /// Verdicts that the client's flow control did not admit as a whole, and what was written.
    unsent: HashMap<StreamId, ([u8; VERDICT_BYTES], usize)>,
}

pub(super) struct UnfinishedStream {
    bytes: Vec<u8>,
    finish_by_ns: u64,
}

impl UnfinishedStream {
    fn new(bytes: Vec<u8>, finish_by_ns: u64) -> Self {
        Self { bytes, finish_by_ns }
    }
}

struct Waiting {
    signature: [u8; SIGNATURE_BYTES],
    received_ns: u64,
    waiter: Waiter,
}

impl ClientConnection {
    pub(super) fn new(
        inner: Connection,
        source: IpAddr,
        permit: Permit,
        handshake_by_ns: u64,
    ) -> Self {
        Self {
            inner,
            phase: Phase::Handshake,
            is_touchdown: false,
            source,
            permit: Some(permit),
            until_ns: handshake_by_ns,
            is_listed: false,
            armed_ns: NEVER_NS,
            credit_at_ns: NEVER_NS,
            received_ns: NEVER_NS,
            sent_ns: 0,
            acknowledge_at: None,
            readable: VecDeque::new(),
            streams: HashMap::new(),
            control: None,
            wants_receipts: false,
            greeting: None,
            waiting: HashMap::new(),
            unsent: HashMap::new(),
        }
    }

    /// The client, if its key is known.
    pub(super) fn client(&self) -> Option<QuicClient> {
        match self.phase {
            Phase::Open { key, .. } => Some(self.client_of(key)),
            Phase::Handshake | Phase::Closed => None,
        }
    }

    pub(super) fn client_of(&self, key: [u8; 32]) -> QuicClient {
        let from = self.inner.remote_address().ip().to_canonical();
        QuicClient { key, from }
    }

    /// The Ed25519 public key that the client has proved; None without one.
    pub(super) fn proved_key(&self) -> Option<[u8; 32]> {
        let identity = self.inner.crypto_session().peer_identity()?;
        let certificates = identity.downcast::<Vec<CertificateDer<'static>>>().ok()?;
        public_key_of(certificates.first()?)
    }

    /// The handshake is complete: finds which protocol was agreed upon.
    pub(super) fn set_protocol(&mut self) {
        let data = self.inner.crypto_session().handshake_data();
        let data = data.and_then(|data| data.downcast::<HandshakeData>().ok());
        let protocol = data.and_then(|data| data.protocol);
        self.is_touchdown = protocol.as_deref() == Some(ALPN_TOUCHDOWN);
    }

    /// Lets the client open the one stream on which it says who it is.
    pub(super) fn await_hello(&mut self) {
        self.inner.set_max_concurrent_streams(Dir::Bi, VarInt::from_u32(1));
    }

    pub(super) fn take_greeting(&mut self) -> Option<Greeting> {
        self.greeting.take()
    }

    /// Closes it with the code of a refusal, which also every unfinished stream gets.
    pub(super) fn close<H: StreamHandler>(
        &mut self,
        refusal: QuicRefusal,
        now: Instant,
        handler: &mut H,
    ) {
        let client = self.client();
        let control = self.control.as_ref();
        let size = control.map_or(0, ControlStream::bytes_of_hello);
        let control = control.map(ControlStream::id);
        let unread = std::mem::take(&mut self.readable).into_iter().map(|(id, _)| id);
        for id in unread.filter(|id| Some(*id) != control) {
            // Those without their last byte are counted with the others.
            self.streams.entry(id).or_insert_with(|| UnfinishedStream::new(Vec::new(), NEVER_NS));
        }
        let streams = std::mem::take(&mut self.streams);
        if streams.is_empty() {
            handler.refused(client.as_ref(), refusal, size);
        }
        for stream in streams.into_values() {
            handler.refused(client.as_ref(), refusal, stream.bytes.len());
        }
        self.close_with(handler.code(refusal), refusal, now);
    }

    pub(super) fn close_with(&mut self, code: u32, refusal: QuicRefusal, now: Instant) {
        self.inner.close(now, VarInt::from_u32(code), Bytes::from_static(phrase_of(refusal)));
    }

    /// What has arrived was received at that time.
    pub(super) fn on_stream_event(
        &mut self,
        event: StreamEvent,
        received_ns: u64,
        turn: &mut Turn<'_>,
    ) {
        match event {
            StreamEvent::Opened { dir } => {
                while let Some(id) = self.inner.streams().accept(dir) {
                    self.readable.push_back((id, received_ns));
                }
            }
            // As often as a datagram has some of it.
            StreamEvent::Readable { id } if self.readable.iter().any(|(each, _)| *each == id) => {}
            StreamEvent::Readable { id } => self.readable.push_back((id, received_ns)),
            StreamEvent::Writable { id } => self.writable(id),
            StreamEvent::Stopped { id, error_code } => self.stopped(id, error_code, turn),
            StreamEvent::Finished { .. } | StreamEvent::Available { .. } => {}
        }
    }

    /// Whether something has arrived that was not read yet.
    pub(super) fn has_readable(&self) -> bool {
        !self.readable.is_empty()
    }

    /// Reads what has arrived of the next stream; false if there is none.
    pub(super) fn read_next<H: StreamHandler>(
        &mut self,
        turn: &mut Turn<'_>,
        handler: &mut H,
    ) -> bool {
        let Some((id, received_ns)) = self.readable.pop_front() else { return false };
        turn.received_ns = received_ns;
        self.read(id, turn, handler);
        true
    }

    fn read<H: StreamHandler>(&mut self, id: StreamId, turn: &mut Turn<'_>, handler: &mut H) {
        if self.phase == Phase::Closed {
            return;
        }
        let is_control = self.control.as_ref().is_some_and(|control| control.id() == id);
        let held = self.streams.remove(&id);
        let (held, finish_by_ns) = held
            .map_or((Vec::new(), turn.finish_by_ns), |stream| (stream.bytes, stream.finish_by_ns));
        let may_have_flags = self.is_touchdown;
        let Some(arrived) = read_available(&mut self.inner, id, held, may_have_flags) else {
            return;
        };
        match arrived {
            Arrived::Whole(content) if is_control => self.greet(content.bytes(), true),
            Arrived::Part(content) if is_control => self.greet(content.bytes(), false),
            Arrived::TooLarge if is_control => self.greeting = Some(Greeting::Invalid),
            // As its end: nothing follows HELLO.
            Arrived::Reset(_) if is_control => self.greet(&[], true),
            Arrived::Whole(content) if is_control_stream(id, &content) => {
                self.begin_control(id, &content, true, turn, handler);
            }
            Arrived::Part(content) if is_control_stream(id, &content) => {
                self.begin_control(id, &content, false, turn, handler);
            }
            Arrived::Whole(content) => self.finished(id, content.bytes(), turn, handler),
            Arrived::Part(content) => {
                let stream = UnfinishedStream::new(content.into_vec(), finish_by_ns);
                self.streams.insert(id, stream);
            }
            Arrived::TooLarge => {
                self.refuse_stream(id, QuicRefusal::TooLarge, STREAM_BYTES_MAX, turn, handler);
            }
            Arrived::Reset(code) => {
                turn.numbers.streams_aborted += 1;
                if id.dir() == Dir::Bi {
                    // It fails where the client has stopped it too.
                    let _ = self.inner.send_stream(id).reset(code);
                }
            }
        }
    }

    /// A stream is the control stream, which begins with these bytes.
    fn begin_control<H: StreamHandler>(
        &mut self,
        id: StreamId,
        content: &Content,
        has_ended: bool,
        turn: &mut Turn<'_>,
        handler: &mut H,
    ) {
        let bytes = content.bytes();
        if self.control.is_some() {
            return self.refuse_stream(id, QuicRefusal::SecondControl, bytes.len(), turn, handler);
        }
        let mut control = ControlStream::new(id, turn.finish_by_ns);
        if !self.is_wanted(id) {
            control.stop();
        }
        self.control = Some(control);
        self.greet(bytes.get(1..).unwrap_or_default(), has_ended);
    }

    fn greet(&mut self, bytes: &[u8], has_ended: bool) {
        let Some(control) = &mut self.control else { return };
        if let Some(greeting) = control.take(bytes, has_ended) {
            self.greeting = Some(greeting);
        }
    }

    /// A stream has its last byte.
    fn finished<H: StreamHandler>(
        &mut self,
        id: StreamId,
        bytes: &[u8],
        turn: &mut Turn<'_>,
        handler: &mut H,
    ) {
        let Some(client) = self.client() else {
            // A client that is not known has the control stream alone.
            self.greeting = Some(Greeting::None);
            return;
        };
        let split =
            if self.is_touchdown { split_flags(bytes) } else { Some((Flags::default(), bytes)) };
        let Some((flags, transaction)) = split else {
            return self.refuse_stream(id, QuicRefusal::Flags, bytes.len(), turn, handler);
        };
        let submission = Submission { bytes: transaction, flags };
        let decision = handler.submit(&client, &submission);
        if id.dir() == Dir::Bi {
            self.decided(id, decision, flags, turn, handler);
        }
    }

    /// Whether the client still wants what is written on a stream: it may have stopped it before
    /// its first bytes were read.
    fn is_wanted(&mut self, id: StreamId) -> bool {
        matches!(self.inner.send_stream(id).stopped(), Ok(None))
    }

    /// Answers a decision, or has the answer wait for the transaction's end.
    fn decided<H: StreamHandler>(
        &mut self,
        id: StreamId,
        decision: Decision,
        flags: Flags,
        turn: &mut Turn<'_>,
        handler: &mut H,
    ) {
        if !self.is_wanted(id) {
            return;
        }
        let Decision { code, signature, is_repeated } = decision;
        if code == 0 && flags.is_answered_when_landed {
            let has_room = !is_repeated && self.waiting.len() < LANDINGS_PER_CONNECTION;
            if has_room
                && let Some(signature) = signature
                && let Phase::Open { account, .. } = self.phase
            {
                let waiter = Waiter { handle: turn.handle, stream: id, account };
                if turn.waits.add(signature, waiter) {
                    let received_ns = turn.received_ns;
                    self.waiting.insert(id, Waiting { signature, received_ns, waiter });
                    return;
                }
            }
            turn.numbers.landings_unawaited += 1;
        }
        self.answer(id, Verdict::decided(code, signature), turn.received_ns, turn.clock, handler);
    }

    /// Refuses a stream, with a verdict where the client expects one.
    fn refuse_stream<H: StreamHandler>(
        &mut self,
        id: StreamId,
        refusal: QuicRefusal,
        size: usize,
        turn: &mut Turn<'_>,
        handler: &mut H,
    ) {
        let Some(client) = self.client() else {
            self.greeting = Some(Greeting::None);
            return;
        };
        let code = handler.refused(Some(&client), refusal, size);
        // It fails for a stream that ended meanwhile.
        let _ = self.inner.recv_stream(id).stop(VarInt::from_u32(code));
        if id.dir() == Dir::Bi {
            let verdict = Verdict::decided(code, None);
            self.answer(id, verdict, turn.received_ns, turn.clock, handler);
        }
    }

    /// Writes the verdict on a transaction that was received at that time.
    fn answer<H: StreamHandler>(
        &mut self,
        id: StreamId,
        verdict: Verdict,
        received_ns: u64,
        clock: Clock,
        handler: &H,
    ) {
        let credit = self.client().map_or(0, |client| handler.credit(&client).streams);
        let microseconds = microseconds_of(clock.now_ns().saturating_sub(received_ns));
        let bytes = Verdict { microseconds, credit, ..verdict }.bytes();
        self.write_verdict(id, bytes, 0);
    }

    fn write_verdict(&mut self, id: StreamId, bytes: [u8; VERDICT_BYTES], mut written: usize) {
        let mut stream = self.inner.send_stream(id);
        // Until a write is refused: only then quinn-proto reports the stream as writable, once the
        // connection has room again.
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            match stream.write(rest) {
                Ok(more) => written += more,
                Err(WriteError::Blocked) => {
                    self.unsent.insert(id, (bytes, written));
                    return;
                }
                // The client no longer wants it.
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return,
            }
        }
        // It fails where the client has stopped it.
        let _ = stream.finish();
    }

    /// The client's flow control admits more on a stream.
    fn writable(&mut self, id: StreamId) {
        if let Some((bytes, written)) = self.unsent.remove(&id) {
            self.write_verdict(id, bytes, written);
        }
    }

    /// The client no longer wants what is written on a stream.
    fn stopped(&mut self, id: StreamId, code: VarInt, turn: &mut Turn<'_>) {
        self.unsent.remove(&id);
        if let Some(Waiting { signature, waiter, .. }) = self.waiting.remove(&id) {
            turn.waits.remove(&signature, waiter);
        }
        if let Some(control) = self.control.as_mut().filter(|control| control.id() == id) {
            control.stop();
        }
        // It fails for a stream that ended meanwhile.
        let _ = self.inner.send_stream(id).reset(code);
    }

    /// A transaction for whose end a verdict waits has ended.
    pub(super) fn landed<H: StreamHandler>(
        &mut self,
        id: StreamId,
        verdict: Verdict,
        clock: Clock,
        handler: &H,
    ) {
        if let Some(Waiting { received_ns, .. }) = self.waiting.remove(&id) {
            self.answer(id, verdict, received_ns, clock, handler);
        }
    }

    /// Answers those that waited since `before_ns` or longer for the end of their transaction.
    pub(super) fn answer_waiting<H: StreamHandler>(
        &mut self,
        before_ns: u64,
        turn: &mut Turn<'_>,
        handler: &H,
    ) {
        let is_due = |waiting: &Waiting| waiting.received_ns <= before_ns;
        let due: Vec<StreamId> =
            self.waiting.iter().filter(|(_, waiting)| is_due(waiting)).map(|(id, _)| *id).collect();
        for id in due {
            let Some(Waiting { signature, received_ns, waiter }) = self.waiting.remove(&id) else {
                continue;
            };
            turn.waits.remove(&signature, waiter);
            turn.numbers.landings_unawaited += 1;
            let verdict = Verdict::decided(0, Some(signature));
            self.answer(id, verdict, received_ns, turn.clock, handler);
        }
    }

    /// Looks for what is late or has changed: tells the client new limits, answers the verdicts
    /// that waited for too long, and stops the streams that were not finished in time. Returns
    /// whether it may have something to send.
    pub(super) fn check<H: StreamHandler>(&mut self, turn: &mut Turn<'_>, handler: &mut H) -> bool {
        let is_queued = self.push_limits(handler);
        let is_waiting = !self.waiting.is_empty();
        if is_waiting {
            self.answer_waiting(turn.now_ns.saturating_sub(LANDING_NS_MAX), turn, handler);
        }
        if !self.streams.is_empty() {
            self.stop_late_streams(turn, handler);
            return true;
        }
        is_queued || is_waiting
    }

    fn stop_late_streams<H: StreamHandler>(&mut self, turn: &mut Turn<'_>, handler: &mut H) {
        let is_late = |stream: &UnfinishedStream| stream.finish_by_ns <= turn.now_ns;
        let late: Vec<StreamId> =
            self.streams.iter().filter(|(_, stream)| is_late(stream)).map(|(id, _)| *id).collect();
        for id in late {
            let size = self.streams.remove(&id).map_or(0, |stream| stream.bytes.len());
            self.refuse_stream(id, QuicRefusal::Slow, size, turn, handler);
        }
    }

    /// The refusal of a client whose handshake takes too long.
    pub(super) fn lateness(&self) -> QuicRefusal {
        if self.is_touchdown { QuicRefusal::NoHello } else { QuicRefusal::Slow }
    }

    /// Has the verdicts of this connection wait in `waits` again.
    pub(super) fn wait_again(&mut self, waits: &mut LandingWaits) {
        self.waiting.retain(|_, waiting| waits.add(waiting.signature, waiting.waiter));
    }

    /// Forgets its streams; returns how many were unfinished.
    pub(super) fn clear_streams(&mut self, waits: &mut LandingWaits) -> usize {
        for (_, Waiting { signature, waiter, .. }) in self.waiting.drain() {
            waits.remove(&signature, waiter);
        }
        self.unsent.clear();
        self.control = None;
        self.greeting = None;
        let unfinished = self.streams.len() + self.readable.len();
        self.streams.clear();
        self.readable.clear();
        unfinished
    }

    /// Whether no transaction is on its way, and no verdict unacknowledged.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.streams.is_empty() && self.readable.is_empty() && self.open_verdicts() == 0
    }

    /// Bidirectional streams that are open, apart from the control stream, which is not open for
    /// sure once the client has stopped it.
    fn open_verdicts(&mut self) -> u64 {
        let open = self.inner.streams().remote_open_streams(Dir::Bi);
        let is_control_open = self.control.as_ref().is_some_and(|control| !control.is_stopped());
        open.saturating_sub(u64::from(is_control_open))
    }

    /// Queues a LIMITS frame if the client has a control stream and its limits changed; returns
    /// whether it did.
    pub(super) fn push_limits<H: StreamHandler>(&mut self, handler: &H) -> bool {
        let Some(client) = self.client() else { return false };
        let Some(control) = self.control.as_mut().filter(|control| control.is_open()) else {
            return false;
        };
        let Some(limits) = handler.limits(&client) else { return false };
        if !control.needs_limits(limits) {
            return false;
        }
        let credit = handler.credit(&client).streams;
        // A transaction's size, some thousand.
        control.push_limits(limits, credit, STREAM_BYTES_MAX as u32);
        true
    }

    /// Acknowledges what was received, unless something was sent to the client a short time ago.
    /// Otherwise the thread would often wake up once more for the acknowledgement alone.
    /// quinn-proto has no call for it, but its timer for acknowledgements may run early: it does
    /// nothing else, and no other is due before.
    pub(super) fn acknowledge_in_turn(&mut self, now: Instant, now_ns: u64) {
        let timer = self.inner.poll_timeout();
        if timer == Some(now + ACK_DELAY) {
            self.acknowledge_at = timer;
        }
        let is_due = now_ns.saturating_sub(self.sent_ns) >= ACK_GAP_NS;
        if let Some(at) = self.acknowledge_at.filter(|_| is_due && timer == self.acknowledge_at) {
            self.inner.handle_timeout(at);
        }
    }

    /// Queues a DRAINING frame if the client has a control stream.
    pub(super) fn push_drain(&mut self, address: &str) {
        if let Some(control) = self.control.as_mut().filter(|control| control.is_open()) {
            control.push(frame::draining(address));
        }
    }

    /// Queues a RECEIPT frame; returns whether another one was dropped for it.
    pub(super) fn push_receipt<H: StreamHandler>(
        &mut self,
        receipt: &Verdict,
        handler: &H,
    ) -> bool {
        let Some(client) = self.client() else { return false };
        let credit = handler.credit(&client).streams;
        let bytes = Verdict { credit, ..*receipt }.bytes();
        self.control.as_mut().is_some_and(|control| control.push_receipt(&bytes))
    }

    /// Writes the frames that wait for the client.
    pub(super) fn flush_control(&mut self) {
        if let Some(control) = &mut self.control {
            control.flush(&mut self.inner);
        }
    }
}

/// Whether a stream that begins so is the control stream.
fn is_control_stream(id: StreamId, content: &Content) -> bool {
    id.dir() == Dir::Bi && content.bytes().first() == Some(&CONTROL)
}

/// The reason phrase of a CONNECTION_CLOSE.
fn phrase_of(refusal: QuicRefusal) -> &'static [u8] {
    match refusal {
        QuicRefusal::Unauthorized => b"unauthorized: no valid key",
        QuicRefusal::NoHello => b"unauthorized: no HELLO in time",
        QuicRefusal::KeysUnread => b"overloaded: this edge has not read its keys yet",
        QuicRefusal::AccountConnections => b"rate_limited: too many connections",
        QuicRefusal::Followers => b"rate_limited: too many connections with receipts",
        QuicRefusal::TooLarge => b"too_large",
        QuicRefusal::Slow => b"undecodable: not finished in time",
        QuicRefusal::Draining => b"overloaded: this edge drains",
        QuicRefusal::Flags => b"invalid_request: an unknown flag",
        QuicRefusal::Frame => b"invalid_request: no valid frame on the control stream",
        QuicRefusal::SecondControl => b"invalid_request: a second control stream",
    }
}

#[path = "stream_credit.rs"]
mod stream_credit;
