//! A parser of complete JSON texts, for requests of an unusual form. It accepts what `JSON.parse`
//! of JavaScript accepts, and keeps what a double or a UTF-8 string would lose: the text of each
//! number, and surrogates without their other half.
//!
//! The values are one flat list in the order of the text, each with the place behind its last
//! member. So nothing recurses, however deep the text is nested; its size bounds the list.

/// What a value is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true`
    True,
    /// `false`
    False,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object; its members alternate keys and values.
    Object,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    kind: Kind,
    /// Its text, with the quotes of a string. A container's ends at its start.
    start: usize,
    end: usize,
    /// Index of the node behind it.
    next: usize,
}

/// A parsed text.
#[derive(Debug)]
pub struct Json<'a> {
    text: &'a str,
    nodes: Vec<Node>,
}

/// One value of a parsed text.
#[derive(Clone, Copy, Debug)]
pub struct Value<'j> {
    json: &'j Json<'j>,
    at: usize,
}

impl<'a> Json<'a> {
    /// None if the text is not JSON.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut parser =
            Parser { bytes: text.as_bytes(), at: 0, nodes: Vec::new(), open: Vec::new() };
        parser.text()?;
        Some(Self { text, nodes: parser.nodes })
    }

    /// The value that the text is.
    #[must_use]
    pub fn root(&self) -> Value<'_> {
        Value { json: self, at: 0 }
    }
}

impl<'j> Value<'j> {
    fn node(&self) -> Node {
        // Every value has a node.
        let none = Node { kind: Kind::Null, start: 0, end: 0, next: usize::MAX };
        self.json.nodes.get(self.at).copied().unwrap_or(none)
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.node().kind
    }

    /// The text of a scalar.
    #[must_use]
    pub fn text(&self) -> &'j str {
        let Node { start, end, .. } = self.node();
        self.json.text.get(start..end).unwrap_or_default()
    }

    /// The elements of an array; keys and values of an object.
    pub fn elements(&self) -> impl Iterator<Item = Value<'j>> + use<'j> {
        let (json, end) = (self.json, self.node().next);
        let first = Some(self.at + 1).filter(|at| *at < end);
        let at = std::iter::successors(first, move |at| {
            let next = json.nodes.get(*at)?.next;
            (next < end).then_some(next)
        });
        at.map(move |at| Value { json, at })
    }

    /// The last member of an object with this name, which is ASCII.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Value<'j>> {
        if self.kind() != Kind::Object {
            return None;
        }
        let mut found = None;
        let mut elements = self.elements();
        while let (Some(key), Some(value)) = (elements.next(), elements.next()) {
            if key.is_text(name) {
                found = Some(value);
            }
        }
        found
    }

    /// Whether it is this string, which is ASCII.
    #[must_use]
    pub fn is_text(&self, expected: &str) -> bool {
        if self.kind() != Kind::String {
            return false;
        }
        let text = inner(self.text());
        // An ASCII character has at most 6 bytes, of the longest escape.
        if text.len() > 6 * expected.len() {
            return false;
        }
        if text.contains('\\') {
            self.units().into_iter().eq(expected.encode_utf16())
        } else {
            text == expected
        }
    }

    /// The UTF-16 units of a string.
    #[must_use]
    pub fn units(&self) -> Vec<u16> {
        let mut units = Vec::new();
        let mut rest = inner(self.text()).chars();
        while let Some(next) = rest.next() {
            if next != '\\' {
                units.extend_from_slice(next.encode_utf16(&mut [0; 2]));
                continue;
            }
            units.push(match rest.next() {
                Some('b') => 8,
                Some('f') => 12,
                Some('n') => 10,
                Some('r') => 13,
                Some('t') => 9,
                Some('u') => {
                    let digits = rest.by_ref().take(4).filter_map(|digit| digit.to_digit(16));
                    digits.fold(0, |unit, digit| unit << 4 | digit as u16)
                }
                // A quote, a slash or a backslash.
                Some(other) => other as u16,
                None => 0,
            });
        }
        units
    }

    /// A number as a double.
    #[must_use]
    pub fn number(&self) -> f64 {
        self.text().parse().unwrap_or(f64::NAN)
    }
}

/// A string's text without its quotes.
fn inner(text: &str) -> &str {
    text.get(1..text.len().max(2) - 1).unwrap_or_default()
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    /// Nodes of the containers that are not closed.
    open: Vec<usize>,
}

impl Parser<'_> {
    /// One value and nothing else.
    fn text(&mut self) -> Option<()> {
        loop {
            if self.value()? {
                continue;
            }
            // A value is complete, and with it maybe the containers around it.
            loop {
                self.skip_blanks();
                let Some(&container) = self.open.last() else {
                    return (self.at == self.bytes.len()).then_some(());
                };
                let is_object = self.nodes.get(container)?.kind == Kind::Object;
                match (self.take()?, is_object) {
                    (b',', true) => {
                        self.key()?;
                        break;
                    }
                    (b',', false) => break,
                    (b'}', true) | (b']', false) => self.close(),
                    _ => return None,
                }
            }
        }
    }

    /// The start of a value; whether another value must follow, the first inside of it.
    fn value(&mut self) -> Option<bool> {
        self.skip_blanks();
        let start = self.at;
        let kind = match self.take()? {
            b'{' => return self.container(Kind::Object, start, b'}'),
            b'[' => return self.container(Kind::Array, start, b']'),
            b'"' => {
                self.string()?;
                Kind::String
            }
            b'n' => self.word(b"ull", Kind::Null)?,
            b't' => self.word(b"rue", Kind::True)?,
            b'f' => self.word(b"alse", Kind::False)?,
            first @ (b'-' | b'0'..=b'9') => {
                self.number(first)?;
                Kind::Number
            }
            _ => return None,
        };
        self.scalar(kind, start);
        Some(false)
    }

    fn scalar(&mut self, kind: Kind, start: usize) {
        let next = self.nodes.len() + 1;
        self.nodes.push(Node { kind, start, end: self.at, next });
    }

    fn container(&mut self, kind: Kind, start: usize, end: u8) -> Option<bool> {
        self.open.push(self.nodes.len());
        self.nodes.push(Node { kind, start, end: start, next: usize::MAX });
        self.skip_blanks();
        if self.peek()? == end {
            self.at += 1;
            self.close();
            return Some(false);
        }
        if kind == Kind::Object {
            self.key()?;
        }
        Some(true)
    }

    fn close(&mut self) {
        let next = self.nodes.len();
        if let Some(node) = self.open.pop().and_then(|container| self.nodes.get_mut(container)) {
            node.next = next;
        }
    }

    /// A key and its colon.
    fn key(&mut self) -> Option<()> {
        self.skip_blanks();
        let start = self.at;
        if self.take()? != b'"' {
            return None;
        }
        self.string()?;
        self.scalar(Kind::String, start);
        self.skip_blanks();
        (self.take()? == b':').then_some(())
    }

    /// The rest of a string, to its end.
    fn string(&mut self) -> Option<()> {
        loop {
            match self.take()? {
                b'"' => return Some(()),
                b'\\' => match self.take()? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                    b'u' => {
                        for _ in 0..4 {
                            self.take()?.is_ascii_hexdigit().then_some(())?;
                        }
                    }
                    _ => return None,
                },
                0..=0x1f => return None,
                _ => {}
            }
        }
    }

    /// The rest of a number.
    fn number(&mut self, first: u8) -> Option<()> {
        let first = if first == b'-' { self.take()? } else { first };
        match first {
            b'0' => {}
            b'1'..=b'9' => drop(self.digits()),
            _ => return None,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            (self.digits() > 0).then_some(())?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            (self.digits() > 0).then_some(())?;
        }
        Some(())
    }

    /// Skips digits; returns how many.
    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn word(&mut self, rest: &[u8], kind: Kind) -> Option<Kind> {
        let is_there = self.bytes.get(self.at..)?.starts_with(rest);
        self.at += rest.len();
        is_there.then_some(kind)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }
}

#[cfg(test)]
#[path = "json_text_tests.rs"]
mod tests;
