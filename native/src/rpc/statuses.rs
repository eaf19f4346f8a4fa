//! Signature statuses: builds the request `getSignatureStatuses` and parses its response.
//!
//! Only responses of the usual form are parsed: a list with a status or null for each signature.
//! Any other is passed on unchanged to the complete parser (`src/cluster/rpc/json-rpc.ts`). The two
//! parsers agree on every response that this one accepts
//! (`test/cluster/rpc/native-http-client.test.ts`).

use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::decode::base58::{SIGNATURE_TEXT_MAX, signature_text};
use crate::rpc::json_object::Object;

/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 64;
/// Largest integer that a JavaScript number represents exactly.
const COUNT_MAX: u64 = (1 << 53) - 1;
/// In `Statuses::write`, the slot of a transaction that is in no recent block.
const ABSENT: f64 = -1.0;

/// The JSON-RPC request for signatures of 64 bytes each.
#[must_use]
pub fn request(signatures: &[u8]) -> Vec<u8> {
    let (signatures, _) = signatures.as_chunks::<SIGNATURE_BYTES>();
    let room = HEAD.len() + TAIL.len() + signatures.len() * (SIGNATURE_TEXT_MAX + 3);
    let mut text = Vec::with_capacity(room);
    text.extend_from_slice(HEAD);
    let mut name = [0; SIGNATURE_TEXT_MAX];
    for (index, signature) in signatures.iter().enumerate() {
        let size = signature_text(signature, &mut name);
        text.extend_from_slice(if index == 0 { b"\"" } else { b",\"" });
        text.extend_from_slice(name.get(..size).unwrap_or_default());
        text.push(b'"');
    }
    text.extend_from_slice(TAIL);
    text
}

/// The statuses of all requested signatures.
#[derive(Debug, PartialEq)]
pub struct Statuses {
    /// The slot that the node had processed.
    pub slot: u64,
    /// In the order of the signatures; None for one that is in no recent block.
    pub each: Vec<Option<Status>>,
}

/// The status of one transaction that is in a block.
#[derive(Debug, PartialEq)]
pub struct Status {
    /// The block's slot.
    pub slot: u64,
    /// Whether the cluster confirmed the block.
    pub confirmed: bool,
    /// The transaction's error as JSON; None for success.
    pub error: Option<String>,
}

/// Parses a response about `count` signatures; None for one of another form.
#[must_use]
pub fn read(body: &[u8], count: usize) -> Option<Statuses> {
    let Object(response) = serde_json::from_slice::<Object<Response>>(body).ok()?;
    let Response { id: ID, result: Object(result), error: None } = response else {
        return None;
    };
    let Object(Context { slot }) = result.context;
    let slot = counted(slot)?;
    let each = result.value.into_iter().map(status).collect::<Option<Vec<_>>>()?;
    (each.len() == count).then_some(Statuses { slot, each })
}

impl Statuses {
    /// Serializes in columns: the node's slot and the slot of each or -1, as little-endian doubles
    /// of 8 bytes; one byte for each, 1 if the block is confirmed; then, for each failed one, its
    /// index and the error's size, as doubles, and the error.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.each.len() * 9 + 8);
        bytes.extend_from_slice(&(self.slot as f64).to_le_bytes());
        for status in &self.each {
            let slot = status.as_ref().map_or(ABSENT, |status| status.slot as f64);
            bytes.extend_from_slice(&slot.to_le_bytes());
        }
        for status in &self.each {
            bytes.push(u8::from(status.as_ref().is_some_and(|status| status.confirmed)));
        }
        for (index, status) in self.each.iter().enumerate() {
            if let Some(error) = status.as_ref().and_then(|status| status.error.as_deref()) {
                bytes.extend_from_slice(&(index as f64).to_le_bytes());
                bytes.extend_from_slice(&(error.len() as f64).to_le_bytes());
                bytes.extend_from_slice(error.as_bytes());
            }
        }
        bytes
    }
}

fn status(entry: Option<Object<StatusEntry<'_>>>) -> Option<Option<Status>> {
    let Some(Object(entry)) = entry else {
        return Some(None);
    };
    let slot = counted(entry.slot)?;
    // Nodes before 1.4 send no commitment; null confirmations then mean that the block is rooted.
    let confirmed = match entry.confirmation_status {
        Some(name) => !is_text(name, "processed")?,
        None => entry.confirmations.is_some_and(|count| count.get() == "null"),
    };
    let error = entry.err.filter(|error| error.get() != "null").map(|error| error.get().to_owned());
    Some(Some(Status { slot, confirmed, error }))
}

/// Whether a value is that text; None if it is not a text, or one with escapes.
fn is_text(value: &RawValue, text: &str) -> Option<bool> {
    let inside = value.get().strip_prefix('"')?.strip_suffix('"')?;
    (!inside.contains('\\')).then_some(inside == text)
}

fn counted(count: u64) -> Option<u64> {
    (count <= COUNT_MAX).then_some(count)
}

#[derive(serde::Deserialize)]
struct Response<'a> {
    id: u64,
    #[serde(borrow)]
    result: Object<Result<'a>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(serde::Deserialize)]
struct Result<'a> {
    context: Object<Context>,
    #[serde(borrow)]
    value: Vec<Option<Object<StatusEntry<'a>>>>,
}

#[derive(serde::Deserialize)]
struct Context {
    slot: u64,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusEntry<'a> {
    slot: u64,
    /// Null and absent differ here, which an Option cannot express.
    #[serde(borrow, default, deserialize_with = "present")]
    confirmations: Option<&'a RawValue>,
    #[serde(borrow, default)]
    err: Option<&'a RawValue>,
    #[serde(borrow, default)]
    confirmation_status: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// The id of a single request, as `json-rpc.ts` assigns it.
const ID: u64 = 1;
const HEAD: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"getSignatureStatuses","params":[["#;
const TAIL: &[u8] = br#"],{"searchTransactionHistory":false}]}"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn response(value: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","result":{{"context":{{"slot":9}},"value":{value}}},"id":1}}"#)
    }

    fn one(status: &str) -> Option<Status> {
        read(response(&format!("[{status}]")).as_bytes(), 1)?.each.remove(0)
    }

    #[test]
    fn the_request_lists_each_signature_in_order() {
        let signatures = [[1; 64], [255; 64]].concat();
        let text: serde_json::Value = serde_json::from_slice(&request(&signatures)).unwrap();
        let names = text["params"][0].as_array().unwrap();
        let mut name = [0; SIGNATURE_TEXT_MAX];
        for (signature, entry) in signatures.as_chunks::<64>().0.iter().zip(names) {
            let size = signature_text(signature, &mut name);
            assert_eq!(entry.as_str().unwrap().as_bytes(), &name[..size]);
        }
        assert_eq!((names.len(), text["id"].as_u64()), (2, Some(1)));
        assert_eq!(text["params"][1]["searchTransactionHistory"], false);
        assert_eq!(text["method"], "getSignatureStatuses");
    }

    #[test]
    fn absent_unconfirmed_confirmed_and_failed_are_distinguished() {
        let each = response(
            r#"[null,{"slot":7,"confirmations":0,"err":null,"confirmationStatus":"processed"},
            {"slot":8,"err":{"InstructionError":[0,{"Custom":1}]},"confirmationStatus":"finalized"}]"#,
        );
        let error = r#"{"InstructionError":[0,{"Custom":1}]}"#;
        let statuses = read(each.as_bytes(), 3).unwrap();
        let seven = Status { slot: 7, confirmed: false, error: None };
        let eight = Status { slot: 8, confirmed: true, error: Some(error.to_owned()) };
        assert_eq!(statuses, Statuses { slot: 9, each: vec![None, Some(seven), Some(eight)] });
        let mut bytes = Vec::new();
        for number in [9.0f64, -1.0, 7.0, 8.0] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&[0, 0, 1]);
        bytes.extend_from_slice(&2.0f64.to_le_bytes());
        bytes.extend_from_slice(&(error.len() as f64).to_le_bytes());
        bytes.extend_from_slice(error.as_bytes());
        assert_eq!(statuses.write(), bytes);
    }

    #[test]
    fn without_a_commitment_a_rooted_block_is_confirmed() {
        assert!(one(r#"{"slot":1,"confirmations":null}"#).unwrap().confirmed);
        assert!(!one(r#"{"slot":1,"confirmations":3}"#).unwrap().confirmed);
        assert!(!one(r#"{"slot":1}"#).unwrap().confirmed);
        let null = r#"{"slot":1,"confirmations":null,"confirmationStatus":null}"#;
        assert!(one(null).unwrap().confirmed);
    }

    #[test]
    fn responses_of_another_form_are_not_parsed() {
        let bodies = [
            response("[null,null]"),
            response("[7]"),
            response(r#"[[7,null,null,"confirmed"]]"#),
            r#"[1,{"context":{"slot":9},"value":[null]},null]"#.to_owned(),
            r#"{"id":1,"result":[{"slot":9},[null]]}"#.to_owned(),
            r#"{"id":1,"result":{"context":[9],"value":[null]}}"#.to_owned(),
            response("{}"),
            response(r#"[{"slot":-1}]"#),
            response(r#"[{"slot":1.5}]"#),
            response(r#"[{"slot":9007199254740992}]"#),
            response(r#"[{"slot":1,"confirmationStatus":7}]"#),
            response("[null]").replace(r#""id":1"#, r#""id":2"#),
            response("[null]").replace(r#""id":1"#, r#""id":1,"error":{}"#),
            response("[null]") + "x",
            r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"no"},"id":1}"#.to_owned(),
            String::new(),
        ];
        for body in bodies {
            assert_eq!(read(body.as_bytes(), 1), None, "{body}");
        }
        let odd = response("[null]").replace(r#""id":1"#, r#""id":1,"error":null"#);
        assert!(read(odd.as_bytes(), 1).is_some());
    }
}
