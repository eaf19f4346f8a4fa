//! What a client sent instead of a transaction: text that encodes one, or a message without
//! signatures. Only rejected bodies are examined. As `diagnose` in TypeScript.

use crate::decode::errors::{DecodeError, Rejected};
use crate::decode::legacy::parse_message;
use crate::decode::parse_state::ParseState;
use crate::decode::tip::TipRule;

/// `DIAGNOSIS_SAMPLE_BYTES_MAX` of `src/decode/limits.ts`.
const DIAGNOSIS_SAMPLE_BYTES_MAX: usize = 256;
/// `ENCODED_LENGTH_MIN` of `src/decode/diagnosis.ts`.
const ENCODED_LENGTH_MIN: usize = 64;

/// The same rejection, or a more specific one where the bytes are a known mistake.
#[must_use]
pub fn diagnose(bytes: &[u8], rejected: Rejected) -> Rejected {
    let is_undecodable = (rejected.error as u8) < DecodeError::tip_absent as u8;
    if bytes.is_empty() || !is_undecodable {
        return rejected;
    }
    let error =
        text_error(bytes).or_else(|| is_message(bytes).then_some(DecodeError::message_only));
    let found = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    error.map_or(rejected, |error| Rejected { error, found, needed: 0 })
}

fn text_error(bytes: &[u8]) -> Option<DecodeError> {
    let sample = bytes.get(..DIAGNOSIS_SAMPLE_BYTES_MAX).unwrap_or(bytes);
    if !sample.iter().all(|byte| matches!(byte, 0x20..=0x7e | b'\t' | b'\n' | b'\r')) {
        return None;
    }
    let text = sample.trim_ascii();
    if matches!(text.first(), Some(b'[' | b'{' | b'"')) {
        return Some(DecodeError::text_json);
    }
    if text.len() < ENCODED_LENGTH_MIN {
        return Some(DecodeError::text_other);
    }
    let hex = text.strip_prefix(b"0x").unwrap_or(text);
    let size = text.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
    let body = text.get(..size).unwrap_or_default();
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/_-".contains(byte);
    Some(if hex.iter().all(u8::is_ascii_hexdigit) {
        DecodeError::text_hex
    } else if text.iter().all(|byte| byte.is_ascii_alphanumeric() && !b"0OIl".contains(byte)) {
        DecodeError::text_base58
    } else if !body.is_empty() && body.iter().all(is_base64) {
        DecodeError::text_base64
    } else {
        DecodeError::text_other
    })
}

/// Whether the bytes are one complete legacy or v0 message; the v1 parser detects its own.
fn is_message(bytes: &[u8]) -> bool {
    let mut state = ParseState::new(bytes);
    state.signature_count = state.byte(usize::from(state.byte(0) == 0x80));
    let no_tips = TipRule { accounts: [].into(), lamports_min: 0 };
    parse_message(&mut state, &no_tips, 0).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> DecodeError {
        let rejected = Rejected { error: DecodeError::signature_count, found: 1, needed: 2 };
        diagnose(bytes, rejected).error
    }

    /// A message of one signer and two other keys, without instructions.
    fn message() -> Vec<u8> {
        let mut bytes = vec![1, 0, 1, 3];
        bytes.extend([7; 32]);
        bytes.extend([9; 32]);
        bytes.extend([0; 32]);
        bytes.extend([8; 32]);
        bytes.push(0);
        bytes
    }

    #[test]
    fn text_is_named_by_its_encoding() {
        let text = |unit: &str| unit.repeat(40).into_bytes();
        assert_eq!(of(&text("ab0F")), DecodeError::text_hex);
        assert_eq!(of(&[b"0x".to_vec(), text("ab")].concat()), DecodeError::text_hex);
        assert_eq!(of(&text("abz")), DecodeError::text_base58);
        assert_eq!(of(&[text("abl"), b"==\r\n".to_vec()].concat()), DecodeError::text_base64);
        assert_eq!(of(&text("a-_+/")), DecodeError::text_base64);
        assert_eq!(of(&text("a b")), DecodeError::text_other);
        assert_eq!(of(&text("=")), DecodeError::text_other);
        assert_eq!(of(b" \t{"), DecodeError::text_json);
        assert_eq!((of(b"hello"), of(b"  ")), (DecodeError::text_other, DecodeError::text_other));
    }

    #[test]
    fn only_the_first_bytes_decide_whether_it_is_text() {
        let mut bytes = b"z".repeat(300);
        bytes[299] = 0;
        assert_eq!(of(&bytes), DecodeError::text_base58);
        bytes[255] = 0x7f;
        assert_eq!(of(&bytes), DecodeError::signature_count);
    }

    #[test]
    fn message_without_signatures_is_recognized() {
        let message = message();
        assert_eq!(of(&message), DecodeError::message_only);
        assert_eq!(of(&[&[0x80], &*message, &[0]].concat()), DecodeError::message_only);
        assert_eq!(of(&message[..message.len() - 1]), DecodeError::signature_count);
    }

    #[test]
    fn other_rejections_stay() {
        let tip = Rejected { error: DecodeError::tip_absent, found: 0, needed: 5 };
        assert_eq!(diagnose(b"text", tip), tip);
        let empty = Rejected { error: DecodeError::empty, found: 0, needed: 1 };
        assert_eq!(diagnose(b"", empty), empty);
        let other = diagnose(b"hello", Rejected { error: DecodeError::too_long, ..empty });
        assert_eq!((other.found, other.needed), (5, 0));
    }
}
