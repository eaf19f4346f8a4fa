//! JSON-RPC bodies, from `fuzz/corpus/json_rpc` or a fuzzer. Whatever the parser reads must equal
//! what a complete JSON parser reads.

use serde_json::Value;
use touchdown_native::http::json_rpc::read_call;

/// Parses a body; returns whether it had the usual form. Panics if the result differs from the
/// complete parser's.
pub fn feed(body: &[u8]) -> bool {
    // Its last bytes must not change: nothing is written past the transaction's maximum size.
    let mut out = [MARK; OUT_BYTES + 4];
    let Some(call) = read_call(body, &mut out) else {
        assert!(out.ends_with(&[MARK; 4]), "written past the bound");
        return false;
    };
    assert!(out.ends_with(&[MARK; 4]), "written past the bound");
    let whole: Value = serde_json::from_slice(body).expect("read, but no JSON");
    assert_eq!(whole["jsonrpc"], "2.0");
    assert_eq!(whole["method"], "sendTransaction");
    assert_eq!(whole.as_object().map(|members| members.len()), Some(4));
    let (start, end) = call.id;
    let id: Value = serde_json::from_slice(&body[start..end]).expect("the id's text");
    assert_eq!(whole["id"], id);
    let params = whole["params"].as_array().expect("the params");
    let text = params[0].as_str().expect("the transaction");
    let config = params.get(1);
    assert!(params.len() <= 2 && config.is_none_or(Value::is_object));
    let member = |name| config.and_then(|config| config.get(name));
    let written = match member("encoding").map(|encoding| encoding.as_str()) {
        None | Some(Some("base64")) => base64(&out[..call.size]),
        Some(Some("base58")) => base58(&out[..call.size]),
        other => panic!("{other:?} was read"),
    };
    assert_eq!(written, text);
    assert_eq!(member("maxRetries").and_then(Value::as_u64), call.max_retries);
    assert_eq!(member("maxRetries").is_some(), call.max_retries.is_some());
    true
}

/// RFC 4648 section 4, with padding.
fn base64(bytes: &[u8]) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let word = (0..3).fold(0, |word, at| word << 8 | u32::from(*three.get(at).unwrap_or(&0)));
        for place in 0..4 {
            let letter = letters[(word >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// By long division, digit by digit.
fn base58(bytes: &[u8]) -> String {
    let letters = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let mut digits: Vec<u32> = Vec::new();
    for byte in &bytes[zeros..] {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry += *digit << 8;
            *digit = carry % 58;
            carry /= 58;
        }
        while carry > 0 {
            digits.push(carry % 58);
            carry /= 58;
        }
    }
    let ones = std::iter::repeat_n(&0, zeros);
    ones.chain(digits.iter().rev()).map(|digit| char::from(letters[*digit as usize])).collect()
}

const MARK: u8 = 0xa5;
/// The maximum transaction size, and the size of the caller's array.
const OUT_BYTES: usize = 4096;
