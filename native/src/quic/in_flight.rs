//! Hot path: the copies whose streams were opened and whose outcome is not told yet.
//!
//! Streams are numbered in the order they are opened and come here in that order, mostly without a
//! gap, so a copy is found by its distance from the first, or else by halving: a stream that its
//! leader refuses before anything was written never comes here. The span is bounded: one copy that
//! a leader never acknowledges holds up at most so many after it.

use std::collections::VecDeque;

/// A copy whose stream was opened.
pub(crate) struct Flight {
    pub(crate) tx: u64,
    pub(crate) tag: u32,
    /// When it was wholly on the wire; 0: not yet.
    pub(crate) sent_ns: u64,
    index: u64,
    open: bool,
}

/// Copies in the order of their streams.
pub(crate) struct Flights {
    span: VecDeque<Flight>,
    open: u32,
    max: usize,
}

impl Flights {
    pub(crate) fn new(max: usize) -> Self {
        Self { span: VecDeque::new(), open: 0, max }
    }

    /// Whether no further stream may be opened.
    pub(crate) fn is_full(&self) -> bool {
        self.span.len() >= self.max
    }

    /// How many further streams may be opened.
    pub(crate) fn room(&self) -> usize {
        self.max.saturating_sub(self.span.len())
    }

    /// Most copies that may be here.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Copies without an outcome.
    pub(crate) fn count(&self) -> u32 {
        self.open
    }

    /// The copy of a stream that was opened after all that came before.
    pub(crate) fn push(&mut self, index: u64, tx: u64, tag: u32) {
        self.span.push_back(Flight { tx, tag, sent_ns: 0, index, open: true });
        self.open += 1;
    }

    /// Notes that a copy is on the wire; None when its outcome was told before.
    pub(crate) fn sent(&mut self, index: u64, at_ns: u64) -> Option<&Flight> {
        let flight = self.find(index)?;
        flight.sent_ns = at_ns;
        Some(flight)
    }

    /// Takes a copy out to tell its outcome; None when that was done before.
    pub(crate) fn land(&mut self, index: u64) -> Option<Flight> {
        let flight = self.find(index)?;
        flight.open = false;
        let landed = Flight { open: true, ..*flight };
        self.open = self.open.saturating_sub(1);
        while self.span.front().is_some_and(|flight| !flight.open) {
            self.span.pop_front();
        }
        Some(landed)
    }

    /// Takes out every copy without an outcome.
    pub(crate) fn land_all(&mut self) -> impl Iterator<Item = Flight> {
        self.open = 0;
        std::mem::take(&mut self.span).into_iter().filter(|flight| flight.open)
    }

    fn find(&mut self, index: u64) -> Option<&mut Flight> {
        let distance = index.checked_sub(self.span.front()?.index)?;
        let near = usize::try_from(distance).ok().and_then(|place| self.span.get(place));
        let place = match near {
            Some(flight) if flight.index == index => usize::try_from(distance).ok()?,
            _ => self.span.binary_search_by_key(&index, |flight| flight.index).ok()?,
        };
        self.span.get_mut(place).filter(|flight| flight.open)
    }
}

#[cfg(test)]
mod tests {
    use super::Flights;

    #[test]
    fn an_outcome_is_told_once_in_any_order() {
        let mut flights = Flights::new(8);
        for tx in 10..13 {
            flights.push(tx - 10, tx, 0);
        }
        assert!(flights.sent(1, 5).is_some());
        assert_eq!(flights.land(1).map(|flight| (flight.tx, flight.sent_ns)), Some((11, 5)));
        assert!(flights.land(1).is_none() && flights.sent(1, 6).is_none());
        assert_eq!(flights.land(0).map(|flight| flight.tx), Some(10));
        assert!(flights.land(0).is_none() && flights.land(3).is_none());
        assert_eq!(flights.count(), 1);
        assert_eq!(flights.land_all().map(|flight| flight.tx).collect::<Vec<_>>(), [12]);
        assert!(flights.land(2).is_none());
    }

    #[test]
    fn copies_are_found_beyond_streams_that_never_came() {
        let mut flights = Flights::new(8);
        for index in [3, 4, 9, 10, 200] {
            flights.push(index, index, 0);
        }
        for missing in [0, 2, 5, 8, 11, 199, 201, u64::MAX] {
            assert!(flights.land(missing).is_none(), "{missing}");
        }
        for index in [10, 3, 200, 4, 9] {
            assert_eq!(flights.land(index).map(|flight| flight.tx), Some(index));
        }
        assert!(flights.count() == 0 && flights.land(9).is_none());
    }

    #[test]
    fn one_copy_without_outcome_bounds_the_span() {
        let mut flights = Flights::new(3);
        for tx in 0..3 {
            flights.push(tx, tx, 0);
        }
        assert!(flights.land(1).is_some() && flights.land(2).is_some());
        assert!(flights.is_full());
        assert!(flights.land(0).is_some());
        assert!(!flights.is_full());
    }
}
