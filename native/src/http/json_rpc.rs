//! Hot path: one JSON-RPC call `sendTransaction`, read from its bytes without a tree of values.
//!
//! Reads the form that clients write: a single call, its four members in any order, base64 or
//! base58 without escapes. Any other input, valid or not, is left to a parser of any form
//! (`rpc_body`, or that of the main thread); so nothing is rejected here, and what is read has the
//! same meaning there.
//!
//! Decision: docs/decisions/0033-native-json-rpc-fast-path.md

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::GeneralPurposeConfig;
use base64::engine::simd::Simd;
use memchr::memchr;

use crate::decode::base58;
use crate::decode::limits::TRANSACTION_BYTES_MAX;

/// A call; its transaction was written to the caller's buffer.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    /// Bytes of the transaction.
    pub size: usize,
    /// Start and end of the id's JSON text in the body.
    pub id: (usize, usize),
    /// `maxRetries`, if given.
    pub max_retries: Option<u64>,
}

/// Reads a call and writes its transaction to the start of `out`. None: another form, or `out` is
/// too small; its content is then undefined.
#[must_use]
pub fn read_call(body: &[u8], out: &mut [u8]) -> Option<Call> {
    let mut params = None;
    let id = Text { bytes: body, at: 0 }.call(|text| {
        let given = text.params(out)?;
        Some(params.replace(given).is_none())
    })?;
    let (size, max_retries) = params?;
    Some(Call { size, id, max_retries })
}

struct Text<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The transaction's size and `maxRetries`.
type Params = (usize, Option<u64>);

/// The options after the transaction.
#[derive(Default)]
struct Config {
    is_base58: bool,
    max_retries: Option<u64>,
}

impl<'a> Text<'a> {
    /// Reads a complete call of `sendTransaction`; returns start and end of its id. `params` reads
    /// those and returns whether they are the first.
    fn call(mut self, mut params: impl FnMut(&mut Self) -> Option<bool>) -> Option<(usize, usize)> {
        let (mut version, mut method) = (false, false);
        let mut id = None;
        self.expect(b'{')?;
        loop {
            let is_new = match self.key()? {
                b"jsonrpc" => {
                    self.simple_string()? == b"2.0" && !std::mem::replace(&mut version, true)
                }
                b"method" => {
                    self.simple_string()? == b"sendTransaction"
                        && !std::mem::replace(&mut method, true)
                }
                b"id" => id.replace(self.id()?).is_none(),
                b"params" => params(&mut self)?,
                _ => false,
            };
            if !is_new {
                return None;
            }
            match self.next_mark()? {
                b',' => {}
                b'}' => break,
                _ => return None,
            }
        }
        self.skip_blanks();
        let is_whole = self.at == self.bytes.len() && version && method;
        id.filter(|_| is_whole)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Consumes and returns the next byte that is no blank.
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

    /// A non-negative integer without leading zeros.
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
        // A point or an exponent after the digits would change the number.
        let ends = matches!(self.peek()?, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
        (self.at > start && !is_padded && ends).then_some(value)
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes.get(self.at..)?.starts_with(word).then(|| self.at += word.len())
    }

    /// Start and end of the id: a short string, an integer or null.
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
        // The encoding is given after it.
        let length = memchr(b'"', rest.get(..=TEXT_MAX).unwrap_or(rest))?;
        let text = rest.get(..length)?;
        self.at += length;
        // A blank here would belong to the text.
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

    /// The object after the transaction; members without a meaning here are skipped.
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
                // It sets the prototype where the text is parsed into objects.
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

/// Decodes padded base64 to the start of `out`; returns the number of bytes. None: not canonical,
/// larger than a transaction, or empty.
fn decode_base64(text: &[u8], out: &mut [u8]) -> Option<usize> {
    let out = out.get_mut(..TRANSACTION_BYTES_MAX)?;
    BASE64.decode_slice(text, out).ok().filter(|size| *size > 0)
}

/// Uses the widest vectors of this processor: a tenth of the time of a table.
pub(crate) static BASE64: LazyLock<Simd> =
    LazyLock::new(|| Simd::standard(GeneralPurposeConfig::new()));

/// Most characters of a string other than the transaction.
const STRING_MAX: usize = 128;
/// Most characters of the transaction, in either encoding.
const TEXT_MAX: usize = base58::TRANSACTION_TEXT_MAX;
/// Most digits of a number: all such numbers are exact as a double.
const DIGITS_MAX: usize = 15;

#[cfg(test)]
#[path = "json_rpc_tests.rs"]
mod tests;
