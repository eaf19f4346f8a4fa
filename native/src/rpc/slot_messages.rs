//! What a node says over its WebSocket about slots.
//!
//! The same as `feed-socket.ts` reads: whatever makes no sense is passed over, and so is what says
//! only what was said last of the same feed and kind.

use serde::Deserialize;

use crate::rpc::json_lenient::{Record, Scalar, is_present};

/// Which events a node is asked to send; the number is the feed's for JavaScript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Subscription {
    /// All that becomes of slots.
    SlotsUpdates,
    /// Slots that the node processes.
    Slot,
}

impl Subscription {
    /// The feed of a number.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        [Self::SlotsUpdates, Self::Slot]
            .into_iter()
            .find(|subscription| *subscription as u32 == number)
    }

    /// Asks the node for it. What `Said::Answer` answers.
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

/// What an event says about its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// It has begun.
    Start,
    /// All of it is there.
    End,
}

/// What a node tells of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Over which of its feeds.
    pub subscription: Subscription,
    /// What happened.
    pub kind: Kind,
    /// None where the node names none.
    pub slot: Option<u64>,
}

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerMessage {
    /// Whether it will send the feed's events.
    Response(Subscription, bool),
    /// Something happened to a slot.
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

/// Reads a message; None where it says nothing that is needed here.
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

/// A whole number that is exact as a double, however it is written.
fn slot_of(number: f64) -> Option<u64> {
    ((0.0..=SLOT_MAX).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

/// `Number.MAX_SAFE_INTEGER`.
const SLOT_MAX: f64 = 9_007_199_254_740_991.0;

/// What was last told.
#[derive(Debug, Default)]
pub struct LastSlots {
    slots: [[Option<u64>; 2]; 2],
}

impl LastSlots {
    /// Whether an event says something else than the one before it of its feed and kind.
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
            // What names no slot is counted by whoever takes it.
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
    fn what_a_node_says_of_slots_is_read() {
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
    fn answers_are_told_from_refusals() {
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
    fn what_makes_no_sense_is_passed_over() {
        let deep = "[".repeat(100_000);
        let closed = format!("{deep}{}", "]".repeat(100_000));
        for text in ["", "{", "[]", "null", "7", "-7", "7e0", "true", "{}", "\"method\"", &deep] {
            assert_eq!(read(text), None, "{text}");
        }
        let inside = format!(r#"{{"x":{closed},"params":{closed},"method":"slotNotification"}}"#);
        assert_eq!(read(&inside), event(Subscription::Slot, Kind::Start, None));
        assert_eq!(read(&inside.replace("params", "method")), None);
        // A name that means something to serde_json.
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
    fn the_same_again_is_no_news() {
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
