//! Hot path: one JSON-RPC call `sendTransaction`, read from its bytes without a tree of values.
//!
//! Reads the form that clients write: a single call, its four members in any order, base64 or base58
//! without escapes. Whatever else comes, valid or not, is not read here, and the caller's own parser says
//! what it is; so nothing is refused here, and what is read means the same there.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::GeneralPurposeConfig;
use base64::engine::simd::Simd;
use memchr::memchr;

use crate::base58;
use crate::limits::TRANSACTION_BYTES_MAX;

/// A call, with the transaction's bytes written where the caller said.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    /// Bytes of the transaction.
    pub size: usize,
    /// Where the id's JSON text starts and ends in the body.
    pub id: (usize, usize),
    /// `maxRetries`, where it is given.
    pub max_retries: Option<u64>,
}

impl Call {
    /// Size, `maxRetries` or -1, the id where that is a count or else -1, and where the id's text
    /// starts and ends in the body.
    #[must_use]
    pub fn numbers(&self, body: &[u8]) -> [f64; 5] {
        let (start, end) = self.id;
        let count = std::str::from_utf8(body.get(start..end).unwrap_or_default());
        let count = count.ok().and_then(|text| text.parse::<u64>().ok());
        let or_none = |number: Option<u64>| number.map_or(-1.0, |number| number as f64);
        let (retries, count) = (or_none(self.max_retries), or_none(count));
        [self.size as f64, retries, count, start as f64, end as f64]
    }
}

/// Reads a call and writes its transaction to the start of `out`. None: not the usual form, or
/// `out` is too small; what it holds is then of no use.
#[must_use]
pub fn read_call(body: &[u8], out: &mut [u8]) -> Option<Call> {
    let mut text = Text { bytes: body, at: 0 };
    let (mut version, mut method) = (false, false);
    let (mut id, mut params) = (None, None);
    text.expect(b'{')?;
    loop {
        let is_new = match text.key()? {
            b"jsonrpc" => text.simple_string()? == b"2.0" && !std::mem::replace(&mut version, true),
            b"method" => {
                text.simple_string()? == b"sendTransaction" && !std::mem::replace(&mut method, true)
            }
            b"id" => id.replace(text.id()?).is_none(),
            b"params" => params.replace(text.params(out)?).is_none(),
            _ => false,
        };
        if !is_new {
            return None;
        }
        match text.next_mark()? {
            b',' => {}
            b'}' => break,
            _ => return None,
        }
    }
    text.skip_blanks();
    let (size, max_retries) = params?;
    let is_whole = text.at == body.len() && version && method;
    is_whole.then_some(Call { size, id: id?, max_retries })
}

struct Text<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The transaction's size and `maxRetries`.
type Params = (usize, Option<u64>);

/// What stands behind the transaction.
#[derive(Default)]
struct Config {
    is_base58: bool,
    max_retries: Option<u64>,
}

impl<'a> Text<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// The next byte that is no blank, taken.
    fn next_mark(&mut self) -> Option<u8> {
        self.skip_blanks();
        let mark = self.peek()?;
        self.at += 1;
        Some(mark)
    }

    fn expect(&mut self, mark: u8) -> Option<()> {
        (self.next_mark()? == mark).then_some(())
    }

    /// A key and its colon.
    fn key(&mut self) -> Option<&'a [u8]> {
        let key = self.simple_string()?;
        self.expect(b':')?;
        Some(key)
    }

    /// A string of printable ASCII without escapes: its text is its value.
    fn simple_string(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let rest = self.bytes.get(self.at..)?;
        let size = rest.iter().take(STRING_MAX + 1).position(|byte| *byte == b'"')?;
        let value = rest.get(..size)?;
        self.at += size + 1;
        let is_simple = value.iter().all(|byte| (0x20..0x7f).contains(byte) && *byte != b'\\');
        is_simple.then_some(value)
    }

    /// A whole number without a sign, as it is written by who counts.
    fn count(&mut self) -> Option<u64> {
        self.skip_blanks();
        let start = self.at;
        let mut value = 0u64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            if self.at - start == DIGITS_MAX {
                return None;
            }
            value = value * 10 + u64::from(digit - b'0');
            self.at += 1;
        }
        let is_padded = self.bytes.get(start) == Some(&b'0') && self.at > start + 1;
        // What follows a number may make it another one: a point, an exponent.
        let ends = matches!(self.peek()?, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
        (self.at > start && !is_padded && ends).then_some(value)
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes.get(self.at..)?.starts_with(word).then(|| self.at += word.len())
    }

    /// Where the id starts and ends: a short string, a count or null.
    fn id(&mut self) -> Option<(usize, usize)> {
        self.skip_blanks();
        let start = self.at;
        match self.peek()? {
            b'"' => drop(self.simple_string()?),
            b'n' => self.word(b"null")?,
            _ => drop(self.count()?),
        }
        Some((start, self.at))
    }

    /// `[transaction]` or `[transaction, config]`.
    fn params(&mut self, out: &mut [u8]) -> Option<Params> {
        self.expect(b'[')?;
        self.expect(b'"')?;
        let rest = self.bytes.get(self.at..)?;
        // Which encoding it is stands behind it.
        let length = memchr(b'"', rest.get(..=TEXT_MAX).unwrap_or(rest))?;
        let text = rest.get(..length)?;
        self.at += length;
        // A blank here is the text's own.
        self.word(b"\"")?;
        let config = match self.next_mark()? {
            b']' => Config::default(),
            b',' => {
                let config = self.config()?;
                self.expect(b']')?;
                config
            }
            _ => return None,
        };
        let size =
            if config.is_base58 { base58::decode(text, out) } else { decode_base64(text, out) }?;
        Some((size, config.max_retries))
    }

    /// The object behind the transaction; its members that mean nothing here are passed over.
    fn config(&mut self) -> Option<Config> {
        self.expect(b'{')?;
        self.skip_blanks();
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(Config::default());
        }
        let (mut encoding, mut retries) = (None, None);
        loop {
            match self.key()? {
                b"encoding" => {
                    let is_base58 = match self.simple_string()? {
                        b"base64" => false,
                        b"base58" => true,
                        _ => return None,
                    };
                    if encoding.replace(is_base58).is_some() {
                        return None;
                    }
                }
                b"maxRetries" => {
                    if retries.replace(self.count()?).is_some() {
                        return None;
                    }
                }
                // It gives an object another prototype where values are made of the text.
                b"__proto__" => return None,
                _ => self.skip_scalar()?,
            }
            match self.next_mark()? {
                b',' => {}
                b'}' => break,
                _ => return None,
            }
        }
        Some(Config { is_base58: encoding.unwrap_or(false), max_retries: retries })
    }

    fn skip_scalar(&mut self) -> Option<()> {
        self.skip_blanks();
        match self.peek()? {
            b'"' => self.simple_string().map(drop),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.count().map(drop),
        }
    }
}

/// Writes the bytes of a text of padded base64 to the start of `out`; how many there are. None: not
/// what an encoder would have written, more than a transaction, or nothing.
fn decode_base64(text: &[u8], out: &mut [u8]) -> Option<usize> {
    let out = out.get_mut(..TRANSACTION_BYTES_MAX)?;
    BASE64.decode_slice(text, out).ok().filter(|size| *size > 0)
}

/// By the widest vectors that this processor has for it: a tenth of the time that a table takes.
static BASE64: LazyLock<Simd> = LazyLock::new(|| Simd::standard(GeneralPurposeConfig::new()));

/// Most characters of a string besides the transaction.
const STRING_MAX: usize = 128;
/// Most characters of the transaction, in either encoding.
const TEXT_MAX: usize = base58::TRANSACTION_TEXT_MAX;
/// Most digits of a number: all of them are exact as a double.
const DIGITS_MAX: usize = 15;

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::{Call, read_call};

    fn read(body: &str) -> Option<(Vec<u8>, String, Option<u64>)> {
        let mut out = [0; 4096];
        let Call { size, id: (start, end), max_retries } = read_call(body.as_bytes(), &mut out)?;
        Some((out[..size].to_vec(), body[start..end].to_string(), max_retries))
    }

    fn call(params: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"sendTransaction","params":{params}}}"#)
    }

    #[test]
    fn what_clients_write_is_read() {
        let whole = [
            (call(r#"["AQID"]"#), vec![1, 2, 3], "1", None),
            (call(r#"["AQIDBA==",{}]"#), vec![1, 2, 3, 4], "1", None),
            (call(r#"["AQIDBAU=",{"encoding":"base64"}]"#), vec![1, 2, 3, 4, 5], "1", None),
            (call(r#"["Ldp",{"encoding":"base58"}]"#), vec![1, 2, 3], "1", None),
            (call(r#"["1Ldp",{"maxRetries":1,"encoding":"base58"}]"#), vec![0, 1, 2, 3], "1", Some(1)),
            (
                call(r#"["AQID", {"skipPreflight":true,"maxRetries":0,"preflightCommitment":"processed"}]"#),
                vec![1, 2, 3],
                "1",
                Some(0),
            ),
            (
                "\n{ \"params\" : [ \"////\" ] , \"id\":\"a b\", \"method\":\"sendTransaction\",\t\"jsonrpc\":\"2.0\" }\r\n"
                    .to_string(),
                vec![255, 255, 255],
                "\"a b\"",
                None,
            ),
        ];
        for (body, bytes, id, retries) in whole {
            assert_eq!(read(&body), Some((bytes, id.to_string(), retries)), "{body}");
        }
    }

    #[test]
    fn whatever_else_there_is_is_left_to_the_parser() {
        let others = [
            String::new(),
            "[]".into(),
            "{}".into(),
            call(r#"[]"#),
            call(r#"[""]"#),
            call(r#"["AQI"]"#),
            call(r#"["AQID=="]"#),
            call(r#"["AQIDBB=="]"#),
            call(r#"["AQIDBAV="]"#),
            call(r#"["AQIDBAU= "]"#),
            call("[\"AQIDBA==\n\"]"),
            call(r#"["AQID "]"#),
            call(r#"["AQI="#),
            call(r#"["AQ-_"]"#),
            call(r#"["AQID",null]"#),
            call(r#"["AQID",{}"#),
            call(r#"["AQID",{},{}]"#),
            call(r#"["AQI0",{"encoding":"base58"}]"#),
            call(r#"["",{"encoding":"base58"}]"#),
            call(r#"["AQIDBA==",{"encoding":"base58"}]"#),
            call(r#"["2 ",{"encoding":"base58"}]"#),
            call(r#"["2",{"encoding":"base58","encoding":"base58"}]"#),
            call(r#"["Ldp",{"encoding":"base64"}]"#),
            call(r#"["Ldp"]"#),
            call(r#"["AQID",{"encoding":null}]"#),
            call(r#"["AQID",{"encoding":"base64","encoding":"base64"}]"#),
            call(r#"["AQID",{"maxRetries":1.5}]"#),
            call(r#"["AQID",{"maxRetries":-1}]"#),
            call(r#"["AQID",{"maxRetries":01}]"#),
            call(r#"["AQID",{"maxRetries":null}]"#),
            call(r#"["AQID",{"other":{}}]"#),
            call(r#"["AQID",{"__proto__":null}]"#),
            call(r#"["AQID",{"en\u0063oding":"base64"}]"#),
            call(r#"["AQID"]"#) + "x",
            call(r#"["AQID"]"#).replace("2.0", "1.0"),
            call(r#"["AQID"]"#).replace("sendTransaction", "getHealth"),
            call(r#"["AQID"]"#).replace("\"id\":1", "\"id\":1e3"),
            call(r#"["AQID"]"#).replace("\"id\":1", "\"id\":9007199254740993"),
            call(r#"["AQID"]"#).replace("\"id\":1", "\"id\":1,\"id\":2"),
            call(r#"["AQID"]"#).replace("\"id\":1,", ""),
            call(&format!(r#"["{}"]"#, "A".repeat(5464))),
        ];
        for body in others {
            assert_eq!(read(&body), None, "{body}");
        }
    }

    #[test]
    fn a_transaction_of_any_size_is_read_up_to_the_largest() {
        let bytes: Vec<u8> = (0..4097usize).map(|at| (at * 131 + at / 7) as u8).collect();
        for size in (1..200).chain([1231, 1232, 4094, 4095, 4096]) {
            let text = STANDARD.encode(&bytes[..size]);
            let (read, ..) = read(&call(&format!(r#"["{text}"]"#))).unwrap();
            assert_eq!(read, &bytes[..size]);
        }
        let text = STANDARD.encode(&bytes);
        assert_eq!(read(&call(&format!(r#"["{text}"]"#))), None);
    }

    #[test]
    fn a_letter_that_is_none_is_found_wherever_it_stands() {
        let text = STANDARD.encode([7; 120]);
        // At the very end `=` is one of those that fill up.
        for at in 0..text.len() - 1 {
            for letter in ["-", " ", "=", "\u{e9}", "\\"] {
                let mut text = text.clone();
                text.replace_range(at..=at, letter);
                assert_eq!(read(&call(&format!(r#"["{text}"]"#))), None, "{text}");
            }
        }
    }

    #[test]
    fn a_call_that_ends_early_or_finds_no_room_is_not_read() {
        let body = call(r#"["AQIDBAU=",{"encoding":"base64","maxRetries":3}]"#);
        for size in 0..body.len() {
            assert_eq!(read(&body[..size]), None);
        }
        assert!(read_call(body.as_bytes(), &mut [0; 4095]).is_none());
    }
}
