//! What becomes of the copies of one transaction at once.

/// What became of a copy at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// On the wire.
    Sent,
    /// Next in line on a live connection.
    Live,
    /// Waits for the connection.
    Waiting,
    /// Refused; its outcome is `Dropped`.
    No,
}

/// A bit for each copy, in the order given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendMask {
    /// On the wire now.
    pub wire: u16,
    /// On the wire, or next in line on a live connection.
    pub live: u16,
    /// Waiting for a connection.
    pub waiting: u16,
}

impl SendMask {
    /// Notes what became of one of the first 16 copies.
    pub(crate) fn note(&mut self, index: usize, taken: Taken) {
        let bit = 1 << index;
        match taken {
            Taken::Sent => {
                self.wire |= bit;
                self.live |= bit;
            }
            Taken::Live => self.live |= bit,
            Taken::Waiting => self.waiting |= bit,
            Taken::No => {}
        }
    }

    /// Bit i: copy i is on the wire; bit 16 + i: it was taken and waits.
    #[must_use]
    pub fn bits(self) -> u32 {
        u32::from(self.wire) | u32::from((self.live | self.waiting) & !self.wire) << 16
    }
}
