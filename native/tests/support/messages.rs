//! Messages of a node's WebSocket, from `fuzz/corpus/slot_messages` or a fuzzer. Whatever the
//! parser reads must equal what a complete JSON parser finds.

use serde_json::Value;
use touchdown_native::rpc::slot_messages::{Kind, LastSlots, ServerMessage, Subscription, read};

/// Parses a message; returns whether it was an event or a response. Panics if the complete parser
/// disagrees.
pub fn feed(bytes: &[u8]) -> bool {
    let Some((text, message)) =
        std::str::from_utf8(bytes).ok().and_then(|text| Some((text, read(text)?)))
    else {
        return false;
    };
    // That parser limits the depth, and treats some numbers and names specially.
    let Ok(whole) = serde_json::from_str::<Value>(text) else {
        return true;
    };
    if text.contains("$serde_json") {
        return true;
    }
    let method = whole.get("method").and_then(Value::as_str);
    match message {
        ServerMessage::Response(feed, accepted) => {
            assert_eq!(method, None);
            assert_eq!(whole["id"].as_f64(), Some(f64::from(feed as u8) + 1.0));
            assert_eq!(whole.get("result").is_some(), accepted);
        }
        ServerMessage::Event(event) => {
            let update = whole.get("params").and_then(|params| params.get("result"));
            let member = |name| update.and_then(|update| update.get(name));
            let slot = member("slot").and_then(Value::as_f64);
            assert_eq!(
                event.slot,
                slot.filter(|slot| *slot >= 0.0 && *slot < 2f64.powi(53) && slot.fract() == 0.0)
                    .map(|slot| slot as u64)
            );
            match event.subscription {
                Subscription::Slot => assert_eq!(method, Some("slotNotification")),
                Subscription::SlotsUpdates => {
                    assert_eq!(method, Some("slotsUpdatesNotification"));
                    let starts = ["firstShredReceived", "createdBank"];
                    let ends = ["completed", "frozen"];
                    let kinds = if event.kind == Kind::Start { starts } else { ends };
                    assert!(kinds.contains(&member("type").and_then(Value::as_str).unwrap_or("")));
                }
            }
            let mut last_slots = LastSlots::default();
            assert!(last_slots.is_new(event));
            assert_eq!(last_slots.is_new(event), event.slot.is_none());
        }
    }
    true
}
