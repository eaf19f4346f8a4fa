//! JSON-RPC bodies of any form: single calls and batches, valid or not. As
//! `src/http/submit/json-rpc-parse.ts` reads them, with the same rejections in the same order; the
//! common form is read by `json_rpc`.

use std::sync::Arc;

use base64::Engine;

use crate::decode::base58;
use crate::decode::tx::starts_well;
use crate::http::json_rpc::BASE64;
use crate::http::json_text::{Json, Kind, Value};
use crate::http::message_template::{push_json, push_number, rendered};
use crate::http::rejection::Rejection;
use crate::http::rejection_table::{
    BAD_ID, BAD_METHOD, BAD_PARAMS, BAD_VERSION, BASE58_NEEDED, BASE58_TOO_LONG, BASE64_NEEDED,
    BATCH_SIZE, EMPTY_BODY, ENCODING_NEEDED, FOREIGN_METHOD, FOREIGN_METHODS, IN_BASE58, NO_METHOD,
    NOT_BASE58, NOT_BASE64, NOT_JSON, NOT_OBJECT, NOT_UTF8, OBJECT_NEEDED, PARAMS_NEEDED,
    RETRIES_NEEDED, RPC_BATCH_CALLS_MAX, Reason, TEXT_NEEDED,
};

/// The methods besides `getHealth` that need no key, and their results as JSON text: those of
/// `KEYLESS_METHODS` of `src/http/submit/json-rpc-parse.ts`.
#[derive(Debug, Default)]
pub struct KeylessMethods(Box<[(String, Arc<str>)]>);

impl KeylessMethods {
    /// Names, each with its result.
    #[must_use]
    pub fn new(results: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(results.into_iter().map(|(name, result)| (name, result.into())).collect())
    }

    fn find(&self, name: Value<'_>) -> Option<Keyless> {
        if name.is_text("getHealth") {
            return Some(Keyless::Health);
        }
        let (_, result) = self.0.iter().find(|(each, _)| name.is_text(each))?;
        Some(Keyless::Result(result.clone()))
    }

    /// Whether a call is one of such a method.
    #[must_use]
    pub fn include(&self, call: Value<'_>) -> bool {
        call.member("method").is_some_and(|method| self.find(method).is_some())
    }
}

/// A method that needs no key.
#[derive(Debug, PartialEq)]
pub enum Keyless {
    /// `getHealth`.
    Health,
    /// Another one, and its result as JSON text.
    Result(Arc<str>),
}

/// A call.
#[derive(Debug, PartialEq)]
pub enum Call {
    /// `sendTransaction`.
    Send {
        /// The transaction.
        bytes: Vec<u8>,
        /// The client's `maxRetries`.
        max_retries: Option<u64>,
    },
    /// A method that needs no key.
    Keyless(Keyless),
    /// A call with an error of form.
    Rejected(Rejection),
}

/// Parses a complete body.
///
/// # Errors
/// If it is no JSON.
pub fn parse_body(bytes: &[u8]) -> Result<Json<'_>, Rejection> {
    let parse_error = |message| Err(Rejection::new(Reason::ParseError, message));
    let size = bytes.len().to_string();
    if bytes.is_empty() {
        return parse_error(EMPTY_BODY.into());
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return parse_error(rendered(NOT_UTF8, &[&size]));
    };
    match Json::parse(text) {
        Some(json) => Ok(json),
        None => parse_error(rendered(NOT_JSON, &[&size])),
    }
}

/// The calls of a batch; None for a single call.
///
/// # Errors
/// If it has none or too many.
pub fn batch_of<'j>(body: &'j Json<'j>) -> Result<Option<Vec<Value<'j>>>, Rejection> {
    let root = body.root();
    if root.kind() != Kind::Array {
        return Ok(None);
    }
    let size = root.elements().count();
    if (1..=RPC_BATCH_CALLS_MAX).contains(&size) {
        return Ok(Some(root.elements().collect()));
    }
    let (found, needed) = (size.to_string(), RPC_BATCH_CALLS_MAX.to_string());
    let message = rendered(BATCH_SIZE, &[&found, &needed]);
    Err(Rejection::new(Reason::InvalidRequest, message)
        .with_number("found", size as f64)
        .with_number("needed", RPC_BATCH_CALLS_MAX as f64))
}

/// The id of any call as JSON text, `null` where it has none that can be echoed.
#[must_use]
pub fn call_id(call: Value<'_>) -> String {
    id_text(call).unwrap_or_else(|| "null".into())
}

/// Reads one call; returns its id as JSON text too.
#[must_use]
pub fn read_call(call: Value<'_>, keyless: &KeylessMethods) -> (String, Call) {
    let invalid = |id: Option<String>, template, found: &str| {
        let rejection = Rejection::new(Reason::InvalidRequest, rendered(template, &[found]));
        (id.unwrap_or_else(|| "null".into()), Call::Rejected(rejection))
    };
    if call.kind() != Kind::Object {
        return invalid(None, NOT_OBJECT, &describe(Some(call)));
    }
    let Some(id) = id_text(call) else {
        return invalid(None, BAD_ID, &describe(call.member("id")));
    };
    let version = call.member("jsonrpc");
    if !version.is_some_and(|version| version.is_text("2.0")) {
        return invalid(Some(id), BAD_VERSION, &quote(version));
    }
    let method = call.member("method");
    let Some(name) = method.filter(|method| method.kind() == Kind::String) else {
        return invalid(Some(id), BAD_METHOD, &describe(method));
    };
    if name.is_text("sendTransaction") {
        let call = read_send(call.member("params")).unwrap_or_else(Call::Rejected);
        return (id, call);
    }
    if let Some(method) = keyless.find(name) {
        return (id, Call::Keyless(method));
    }
    let foreign = FOREIGN_METHODS.iter().find(|(each, _)| name.is_text(each));
    let message = match foreign {
        Some((_, instead)) => rendered(FOREIGN_METHOD, &[&quote(method), instead]),
        None => rendered(NO_METHOD, &[&quote(method)]),
    };
    (id, Call::Rejected(Rejection::new(Reason::MethodNotFound, message)))
}

fn read_send(params: Option<Value<'_>>) -> Result<Call, Rejection> {
    let Some(list) = params.filter(|params| params.kind() == Kind::Array) else {
        return Err(bad_params("params", &describe(params), PARAMS_NEEDED));
    };
    let mut elements = list.elements();
    let (first, second, third) = (elements.next(), elements.next(), elements.next());
    let (Some(first), None) = (first, third) else {
        return Err(bad_params("params", &describe(params), PARAMS_NEEDED));
    };
    if first.kind() != Kind::String {
        return Err(bad_params("params[0]", &describe(Some(first)), TEXT_NEEDED));
    }
    // Clients write null for an argument that they leave out.
    let config = given(second);
    if config.is_some_and(|config| config.kind() != Kind::Object) {
        return Err(bad_params("params[1]", &describe(config), OBJECT_NEEDED));
    }
    let option = |name| given(config.and_then(|config| config.member(name)));
    let encoding = option("encoding");
    let is_base58 = encoding.is_some_and(|encoding| encoding.is_text("base58"));
    if !is_base58 && !encoding.is_none_or(|encoding| encoding.is_text("base64")) {
        return Err(bad_params("encoding", &quote(encoding), ENCODING_NEEDED));
    }
    let retries = option("maxRetries");
    let max_retries = retries.and_then(count_of);
    if max_retries.is_none() && retries.is_some() {
        return Err(bad_params("maxRetries", &quote(retries), RETRIES_NEEDED));
    }
    let units = first.units();
    // A character that is not ASCII is in neither alphabet.
    let text: Vec<u8> = units.iter().map(|unit| u8::try_from(*unit).unwrap_or(0xff)).collect();
    let bytes = if is_base58 { read_base58(&text) } else { read_base64(&text) }?;
    Ok(Call::Send { bytes, max_retries })
}

/// The transaction of a text in padded base64, in which line breaks are ignored; None for any other
/// body, which the decoder rejects: `decodedText` of `src/http/submit/raw.ts`.
#[must_use]
pub fn decode_text(body: &[u8]) -> Option<Vec<u8>> {
    let text: Vec<u8> =
        body.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let bytes = BASE64.decode(&text).ok()?;
    (starts_well(&bytes) || !is_in_base58(&text)).then_some(bytes)
}

fn read_base64(text: &[u8]) -> Result<Vec<u8>, Rejection> {
    let Ok(bytes) = BASE64.decode(text) else {
        return Err(bad_params("params[0]", NOT_BASE64, BASE64_NEEDED));
    };
    if !starts_well(&bytes) && is_in_base58(text) {
        return Err(bad_params("params[0]", IN_BASE58, BASE64_NEEDED));
    }
    Ok(bytes)
}

/// Whether a text may be a legacy transaction in base58, which Solana's own RPC assumes where no
/// encoding is given.
fn is_in_base58(text: &[u8]) -> bool {
    if text.len() > base58::LEGACY_TEXT_MAX {
        return false;
    }
    base58::decode_all(text)
        .is_some_and(|bytes| bytes.len() <= base58::LEGACY_BYTES_MAX && starts_well(&bytes))
}

fn read_base58(text: &[u8]) -> Result<Vec<u8>, Rejection> {
    if text.len() > base58::TRANSACTION_TEXT_MAX {
        let (found, needed) = (text.len(), base58::TRANSACTION_TEXT_MAX);
        let message = rendered(BASE58_TOO_LONG, &[&found.to_string(), &needed.to_string()]);
        return Err(Rejection::new(Reason::Undecodable, message)
            .with_number("found", found as f64)
            .with_number("needed", needed as f64));
    }
    // The longest text may be a few bytes more than a transaction: the decoder reports that.
    base58::decode_all(text).ok_or_else(|| bad_params("params[0]", NOT_BASE58, BASE58_NEEDED))
}

fn bad_params(place: &str, found: &str, needed: &str) -> Rejection {
    let message = rendered(BAD_PARAMS, &[place, found, needed]);
    Rejection::new(Reason::InvalidParams, message)
        .with_text("param", place)
        .with_text("found", found)
        .with_text("needed", needed)
}

/// The id as JSON text; None when it is missing or neither string, number nor null. A number that a
/// double may not hold keeps its text.
fn id_text(call: Value<'_>) -> Option<String> {
    let id = call.member("id")?;
    let mut text = String::new();
    match id.kind() {
        Kind::Null => text.push_str("null"),
        Kind::String => push_json(&mut text, id.units()),
        Kind::Number if is_safe(id.number()) => push_number(&mut text, id.number()),
        Kind::Number => text.push_str(id.text()),
        Kind::True | Kind::False | Kind::Array | Kind::Object => return None,
    }
    Some(text)
}

/// A value that is given and not null.
fn given(value: Option<Value<'_>>) -> Option<Value<'_>> {
    value.filter(|value| value.kind() != Kind::Null)
}

/// `Number.isSafeInteger` of JavaScript.
fn is_safe(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() <= SAFE_MAX
}

fn count_of(value: Value<'_>) -> Option<u64> {
    let number = value.number();
    let is_count = value.kind() == Kind::Number && is_safe(number) && number >= 0.0;
    is_count.then_some(number as u64)
}

/// A description of a value's type.
fn describe(value: Option<Value<'_>>) -> String {
    let Some(value) = value else { return "missing".into() };
    match value.kind() {
        Kind::Null => "null".into(),
        Kind::Array => format!("an array of {}", value.elements().count()),
        Kind::Object => "an object".into(),
        Kind::String => "a string".into(),
        Kind::Number => "a number".into(),
        Kind::True | Kind::False => "a boolean".into(),
    }
}

/// A short value as it was written, a longer one by its type.
fn quote(value: Option<Value<'_>>) -> String {
    let mut text = String::new();
    match value.map(|value| (value.kind(), value)) {
        Some((Kind::String, value)) => {
            push_json(&mut text, value.units().into_iter().take(QUOTE_CHARS_MAX));
        }
        Some((Kind::Number, value)) => push_number(&mut text, value.number()),
        Some((Kind::True | Kind::False, value)) => text.push_str(value.text()),
        _ => return describe(value),
    }
    text
}

/// Largest integer that a double represents without doubt.
const SAFE_MAX: f64 = 9_007_199_254_740_991.0;
/// `QUOTE_CHARS_MAX` of `src/http/submit/json-rpc-parse.ts`.
const QUOTE_CHARS_MAX: usize = 64;

#[cfg(test)]
#[path = "rpc_body_tests.rs"]
mod tests;
