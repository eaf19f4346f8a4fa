//! Hot path: deliveries whose streams were opened and whose outcome is not reported yet.
//!
//! Streams are numbered in the order they are opened and are added in that order, mostly without a
//! gap, so a delivery is found by its distance from the first, or else by binary search: a stream
//! that the leader stops before anything was written is never added. The span is bounded: a
//! delivery that the leader never acknowledges holds up at most as many after it as the capacity.

use std::collections::VecDeque;

/// A delivery whose stream was opened.
pub(crate) struct InFlightDelivery {
    pub(crate) tx: u64,
    pub(crate) tag: u32,
    /// When it was completely on the wire; 0: not yet.
    pub(crate) sent_ns: u64,
    index: u64,
    open: bool,
}

/// Deliveries in stream order.
pub(crate) struct InFlight {
    span: VecDeque<InFlightDelivery>,
    open: u32,
    max: usize,
}

impl InFlight {
    pub(crate) fn new(max: usize) -> Self {
        Self { span: VecDeque::new(), open: 0, max }
    }

    /// Whether no further stream may be opened.
    pub(crate) fn is_full(&self) -> bool {
        self.span.len() >= self.max
    }

    /// How many further streams may be opened.
    pub(crate) fn remaining_capacity(&self) -> usize {
        self.max.saturating_sub(self.span.len())
    }

    /// Maximum number of deliveries.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Deliveries without an outcome.
    pub(crate) fn count(&self) -> u32 {
        self.open
    }

    /// Adds the delivery of a stream that was opened after all added before.
    pub(crate) fn push(&mut self, index: u64, tx: u64, tag: u32) {
        self.span.push_back(InFlightDelivery { tx, tag, sent_ns: 0, index, open: true });
        self.open += 1;
    }

    /// Records that a delivery is on the wire; None if its outcome was already reported.
    pub(crate) fn sent(&mut self, index: u64, at_ns: u64) -> Option<&InFlightDelivery> {
        let delivery = self.find(index)?;
        delivery.sent_ns = at_ns;
        Some(delivery)
    }

    /// Removes a delivery to report its outcome; None if that was already done.
    pub(crate) fn resolve(&mut self, index: u64) -> Option<InFlightDelivery> {
        let delivery = self.find(index)?;
        delivery.open = false;
        let resolved = InFlightDelivery { open: true, ..*delivery };
        self.open = self.open.saturating_sub(1);
        while self.span.front().is_some_and(|delivery| !delivery.open) {
            self.span.pop_front();
        }
        Some(resolved)
    }

    /// Removes every delivery without an outcome.
    pub(crate) fn resolve_all(&mut self) -> impl Iterator<Item = InFlightDelivery> {
        self.open = 0;
        std::mem::take(&mut self.span).into_iter().filter(|delivery| delivery.open)
    }

    fn find(&mut self, index: u64) -> Option<&mut InFlightDelivery> {
        let distance = index.checked_sub(self.span.front()?.index)?;
        let near = usize::try_from(distance).ok().and_then(|position| self.span.get(position));
        let position = match near {
            Some(delivery) if delivery.index == index => usize::try_from(distance).ok()?,
            _ => self.span.binary_search_by_key(&index, |delivery| delivery.index).ok()?,
        };
        self.span.get_mut(position).filter(|delivery| delivery.open)
    }
}

#[cfg(test)]
mod tests {
    use super::InFlight;

    #[test]
    fn each_outcome_is_reported_once_in_any_order() {
        let mut in_flight = InFlight::new(8);
        for tx in 10..13 {
            in_flight.push(tx - 10, tx, 0);
        }
        assert!(in_flight.sent(1, 5).is_some());
        assert_eq!(
            in_flight.resolve(1).map(|delivery| (delivery.tx, delivery.sent_ns)),
            Some((11, 5))
        );
        assert!(in_flight.resolve(1).is_none() && in_flight.sent(1, 6).is_none());
        assert_eq!(in_flight.resolve(0).map(|delivery| delivery.tx), Some(10));
        assert!(in_flight.resolve(0).is_none() && in_flight.resolve(3).is_none());
        assert_eq!(in_flight.count(), 1);
        assert_eq!(in_flight.resolve_all().map(|delivery| delivery.tx).collect::<Vec<_>>(), [12]);
        assert!(in_flight.resolve(2).is_none());
    }

    #[test]
    fn deliveries_are_found_after_gaps_in_stream_numbers() {
        let mut in_flight = InFlight::new(8);
        for index in [3, 4, 9, 10, 200] {
            in_flight.push(index, index, 0);
        }
        for missing in [0, 2, 5, 8, 11, 199, 201, u64::MAX] {
            assert!(in_flight.resolve(missing).is_none(), "{missing}");
        }
        for index in [10, 3, 200, 4, 9] {
            assert_eq!(in_flight.resolve(index).map(|delivery| delivery.tx), Some(index));
        }
        assert!(in_flight.count() == 0 && in_flight.resolve(9).is_none());
    }

    #[test]
    fn one_delivery_without_outcome_bounds_the_span() {
        let mut in_flight = InFlight::new(3);
        for tx in 0..3 {
            in_flight.push(tx, tx, 0);
        }
        assert!(in_flight.resolve(1).is_some() && in_flight.resolve(2).is_some());
        assert!(in_flight.is_full());
        assert!(in_flight.resolve(0).is_some());
        assert!(!in_flight.is_full());
    }
}
