//! How long a client may take to send a request. Its head and its body each have one deadline as a
//! whole, which begins with the first byte, so that a byte now and then does not put it off.

/// What a front awaits from a client.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Part {
    /// Nothing: no byte of a request has come that is not answered or relayed.
    #[default]
    None,
    /// The rest of a head.
    Head,
    /// A body, of which nothing has come.
    BodyStart,
    /// The rest of a body.
    Body,
}

/// The part that is awaited, and since when.
#[derive(Debug, Default)]
pub(crate) struct ReadClock {
    part: Part,
    since_ns: u64,
}

impl ReadClock {
    /// That part is awaited now; its time goes on where it was awaited already.
    pub(crate) fn set(&mut self, part: Part, now_ns: u64) {
        if self.part != part {
            *self = Self { part, since_ns: now_ns };
        }
    }

    /// What is awaited.
    #[must_use]
    pub(crate) fn part(&self) -> Part {
        self.part
    }

    /// Whether a body is awaited.
    #[must_use]
    pub(crate) fn is_body(&self) -> bool {
        matches!(self.part, Part::BodyStart | Part::Body)
    }

    /// Whether what is awaited has taken longer than `timeout_ns`.
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
