//! How long a client may take to send a request. Head and body each have one deadline that starts
//! with the first byte, so that trickling bytes do not extend it. That of a TLS handshake starts
//! with the connection.

/// The part of a request that is pending.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Part {
    /// Nothing: every received byte belongs to a request that was answered or proxied.
    #[default]
    None,
    /// The rest of the TLS handshake.
    Handshake,
    /// The rest of a head.
    Head,
    /// A body of which no byte has arrived.
    BodyStart,
    /// The rest of a body.
    Body,
}

/// The pending part, and since when.
#[derive(Debug, Default)]
pub(crate) struct ReadClock {
    part: Part,
    since_ns: u64,
}

impl ReadClock {
    /// This part is pending now; its clock keeps running if it already was.
    pub(crate) fn set(&mut self, part: Part, now_ns: u64) {
        if self.part != part {
            *self = Self { part, since_ns: now_ns };
        }
    }

    /// The pending part.
    #[must_use]
    pub(crate) fn part(&self) -> Part {
        self.part
    }

    /// Whether a body is pending.
    #[must_use]
    pub(crate) fn is_body(&self) -> bool {
        matches!(self.part, Part::BodyStart | Part::Body)
    }

    /// Whether the part has been pending for longer than `timeout_ns`.
    #[must_use]
    pub(crate) fn is_late(&self, now_ns: u64, timeout_ns: u64) -> bool {
        self.part != Part::None && is_past(now_ns, self.since_ns, timeout_ns)
    }
}

/// Whether more than `for_ns` have passed since then.
#[must_use]
pub(crate) fn is_past(now_ns: u64, since_ns: u64, for_ns: u64) -> bool {
    now_ns.saturating_sub(since_ns) > for_ns
}

#[cfg(test)]
#[path = "deadline_tests.rs"]
mod tests;
