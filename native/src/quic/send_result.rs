//! The immediate result of sending one transaction's deliveries.

/// The immediate result of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendResult {
    /// On the wire.
    Sent,
    /// Accepted; waits for the connection, for stream credit, for the congestion window, or for the
    /// thread that drives it.
    Queued,
    /// The queue is full, and nothing in it has a lower rank; it has no outcome.
    Saturated,
    /// Rejected; its outcome is `Dropped`.
    Rejected,
}

/// One bit per delivery, in the order given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendStatus {
    /// On the wire now.
    pub wire: u16,
    /// Accepted, and waiting.
    pub queued: u16,
    /// Not accepted, because the queue is full of deliveries of the same or a higher rank.
    pub saturated: u16,
}

impl SendStatus {
    /// Records the result of one of the first 16 deliveries.
    pub(crate) fn record(&mut self, index: usize, result: SendResult) {
        let bit = 1 << index;
        match result {
            SendResult::Sent => self.wire |= bit,
            SendResult::Queued => self.queued |= bit,
            SendResult::Saturated => self.saturated |= bit,
            SendResult::Rejected => {}
        }
    }

    /// Those that the engine accepted: each has an outcome.
    #[must_use]
    pub fn accepted(self) -> u16 {
        self.wire | self.queued
    }

    /// Bit i: delivery i is on the wire; bit 16 + i: it was accepted and waits.
    #[must_use]
    pub fn bits(self) -> u32 {
        u32::from(self.wire) | u32::from(self.queued) << 16
    }
}
