//! Parses a node's WebSocket messages about slots.
//!
//! Equivalent to `src/cluster/slots/subscription.ts`: invalid messages are skipped, and so are
//! repetitions of the last event of the same subscription and kind.

use serde::Deserialize;

use crate::rpc::json_lenient::{Record, Scalar, is_present};

/// Subscriptions at a node; the number identifies the subscription to JavaScript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Subscription {
    /// All slot updates.
    SlotsUpdates,
    /// Slots that the node processes.
    Slot,
}

impl Subscription {
    /// The subscription of a number.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        [Self::SlotsUpdates, Self::Slot]
            .into_iter()
            .find(|subscription| *subscription as u32 == number)
    }

    /// The JSON-RPC request. `ServerMessage::Response` is its response.
    #[must_use]
    pub fn request(self) -> &'static str {
        match self {
            Self::SlotsUpdates => {
                r#"{"jsonrpc":"2.0","id":1,"method":"slotsUpdatesSubscribe","params":[]}"#
            }
            Self::Slot => r#"{"jsonrpc":"2.0","id":2,"method":"slotSubscribe","params":[]}"#,
        }
    }

    fn of_response_id(id: f64) -> Option<Self> {
        [(1.0, Self::SlotsUpdates), (2.0, Self::Slot)]
            .into_iter()
            .find_map(|(own, subscription)| (id == own).then_some(subscription))
    }
}

/// What an event reports about its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The slot has begun.
    Start,
    /// The slot is complete.
    End,
}

/// A slot event from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The subscription that delivered it.
    pub subscription: Subscription,
    /// What happened.
    pub kind: Kind,
    /// None if the node sent no valid slot.
    pub slot: Option<u64>,
}

/// A parsed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerMessage {
    /// Whether the node accepted the subscription.
    Response(Subscription, bool),
    /// A slot event.
    Event(Event),
}

#[derive(Default, Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    method: Scalar<'a>,
    #[serde(borrow, default)]
    id: Scalar<'a>,
    #[serde(default, deserialize_with = "is_present")]
    result: bool,
    #[serde(borrow, default)]
    params: Record<Params<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct Params<'a> {
    #[serde(borrow, default)]
    result: Record<Update<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct Update<'a> {
    #[serde(borrow, default)]
    r#type: Scalar<'a>,
    #[serde(borrow, default)]
    slot: Scalar<'a>,
}

/// Parses a message; None if it carries nothing needed here.
#[must_use]
pub fn read(text: &str) -> Option<ServerMessage> {
    let Record(message) = serde_json::from_str::<Record<Message<'_>>>(text).ok()?;
    let Some(method) = message.method.text() else {
        return Some(ServerMessage::Response(
            Subscription::of_response_id(message.id.number()?)?,
            message.result,
        ));
    };
    let update = message.params.0.result.0;
    let (subscription, kind) = match method {
        "slotNotification" => (Subscription::Slot, Kind::Start),
        "slotsUpdatesNotification" => (Subscription::SlotsUpdates, kind_of(update.r#type.text()?)?),
        _ => return None,
    };
    Some(ServerMessage::Event(Event {
        subscription,
        kind,
        slot: update.slot.number().and_then(slot_of),
    }))
}

fn kind_of(update: &str) -> Option<Kind> {
    match update {
        "firstShredReceived" | "createdBank" => Some(Kind::Start),
        "completed" | "frozen" => Some(Kind::End),
        _ => None,
    }
}

/// A whole number that is exact as a double, in any notation.
fn slot_of(number: f64) -> Option<u64> {
    ((0.0..=SLOT_MAX).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

/// `Number.MAX_SAFE_INTEGER`.
const SLOT_MAX: f64 = 9_007_199_254_740_991.0;

/// The last reported slots.
#[derive(Debug, Default)]
pub struct LastSlots {
    slots: [[Option<u64>; 2]; 2],
}

impl LastSlots {
    /// Whether an event differs from the one before it of its subscription and kind.
    pub fn is_new(&mut self, Event { subscription, kind, slot }: Event) -> bool {
        let last = self
            .slots
            .get_mut(subscription as usize)
            .and_then(|kinds| kinds.get_mut(kind as usize));
        match (last, slot) {
            (Some(last), Some(_)) if *last != slot => {
                *last = slot;
                true
            }
            // The reader counts events without a valid slot.
            (_, slot) => slot.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn event(
        subscription: Subscription,
        kind: Kind,
        slot: impl Into<Option<u64>>,
    ) -> Option<ServerMessage> {
        Some(ServerMessage::Event(Event { subscription, kind, slot: slot.into() }))
    }

    fn update(result: &str) -> String {
        let params = format!(r#"{{"result":{result},"subscription":1}}"#);
        format!(r#"{{"jsonrpc":"2.0","method":"slotsUpdatesNotification","params":{params}}}"#)
    }

    fn slot(text: &str) -> Option<ServerMessage> {
        read(&format!(r#"{{"params":{{"result":{{"slot":{text}}}}},"method":"slotNotification"}}"#))
    }

    #[test]
    fn slot_notifications_are_parsed() {
        for (kind, updates) in [
            (Kind::Start, ["firstShredReceived", "createdBank"]),
            (Kind::End, ["completed", "frozen"]),
        ] {
            for name in updates {
                let text =
                    update(&format!(r#"{{"slot":7,"timestamp":1,"type":"{name}","parent":6}}"#));
                assert_eq!(read(&text), event(Subscription::SlotsUpdates, kind, 7));
            }
        }
        assert_eq!(slot("8"), event(Subscription::Slot, Kind::Start, 8));
    }

    #[test]
    fn accepted_and_rejected_subscriptions_are_distinguished() {
        for (text, expected) in [
            (
                r#"{"jsonrpc":"2.0","result":0,"id":1}"#,
                Some(ServerMessage::Response(Subscription::SlotsUpdates, true)),
            ),
            (
                r#"{"result":null,"id":2.0}"#,
                Some(ServerMessage::Response(Subscription::Slot, true)),
            ),
            (
                r#"{"error":{"code":-32601},"id":2}"#,
                Some(ServerMessage::Response(Subscription::Slot, false)),
            ),
            (r#"{"result":0,"id":3}"#, None),
            (r#"{"result":0,"id":"1"}"#, None),
            (r#"{"result":0,"id":null}"#, None),
            (r#"{"result":0,"id":1,"method":"other"}"#, None),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        for (id, subscription) in [(1.0, Subscription::SlotsUpdates), (2.0, Subscription::Slot)] {
            let request: Value = serde_json::from_str(subscription.request()).unwrap();
            assert_eq!(request["id"].as_f64(), Some(id));
        }
    }

    #[test]
    fn a_slot_is_a_whole_number_that_a_double_holds() {
        for (text, number) in [
            ("0", Some(0)),
            ("7.0", Some(7)),
            ("9007199254740991", Some(9_007_199_254_740_991)),
            ("9007199254740992", None),
            ("-1", None),
            ("1.5", None),
            ("1e300", None),
            ("\"7\"", None),
            ("null", None),
            ("[7]", None),
        ] {
            assert_eq!(slot(text), event(Subscription::Slot, Kind::Start, number), "{text}");
        }
        assert_eq!(
            read(r#"{"method":"slotNotification"}"#),
            event(Subscription::Slot, Kind::Start, None)
        );
    }

    #[test]
    fn invalid_messages_are_skipped() {
        let deep = "[".repeat(100_000);
        let closed = format!("{deep}{}", "]".repeat(100_000));
        for text in ["", "{", "[]", "null", "7", "-7", "7e0", "true", "{}", "\"method\"", &deep] {
            assert_eq!(read(text), None, "{text}");
        }
        let inside = format!(r#"{{"x":{closed},"params":{closed},"method":"slotNotification"}}"#);
        assert_eq!(read(&inside), event(Subscription::Slot, Kind::Start, None));
        assert_eq!(read(&inside.replace("params", "method")), None);
        // A member name with a special meaning in serde_json.
        let text = r#"{\"method\":\"slotNotification\",\"params\":{\"result\":{\"slot\":7}}}"#;
        let hidden = format!(r#"{{"$serde_json::private::RawValue":"{text}"}}"#);
        assert_eq!(read(&hidden), None);
        let list = r#"{"method":"slotNotification","params":[{"slot":7}]}"#;
        assert_eq!(read(list), event(Subscription::Slot, Kind::Start, None));
        for result in ["null", "{}", r#"{"type":7,"slot":1}"#, r#"{"type":"root","slot":1}"#] {
            assert_eq!(read(&update(result)), None, "{result}");
        }
        assert_eq!(read(r#"{"method":"rootNotification","params":{"result":{"slot":1}}}"#), None);
        assert_eq!(read(r#"{"method":7,"params":{"result":{"slot":1}}}"#), None);
    }

    #[test]
    fn repeated_events_are_not_new() {
        let mut last_slots = LastSlots::default();
        let mut is_new =
            |subscription, kind, slot| last_slots.is_new(Event { subscription, kind, slot });
        use Subscription::{Slot, SlotsUpdates};
        assert!(is_new(SlotsUpdates, Kind::Start, Some(0)));
        assert!(!is_new(SlotsUpdates, Kind::Start, Some(0)));
        assert!(is_new(SlotsUpdates, Kind::End, Some(0)));
        assert!(is_new(Slot, Kind::Start, Some(0)));
        assert!(is_new(SlotsUpdates, Kind::Start, Some(1)));
        assert!(is_new(SlotsUpdates, Kind::Start, Some(0)));
        assert!(!is_new(Slot, Kind::Start, Some(0)));
        assert!(is_new(Slot, Kind::Start, None) && is_new(Slot, Kind::Start, None));
        assert!(!is_new(Slot, Kind::Start, Some(0)));
    }
}
