//! Texts as JavaScript makes them: messages with inserted values, numbers, and strings in JSON.
//!
//! The main thread writes the same responses, so every form is that of JavaScript's `String` and
//! `JSON.stringify`.

use std::fmt::Write;

/// A message; `{0}` is the place of the value 0.
pub type Template = &'static str;

/// Appends the message with its values; `value` appends the one with that number.
pub fn render(out: &mut String, template: Template, mut value: impl FnMut(&mut String, usize)) {
    let mut text = template;
    while let Some((before, number, behind)) = split_at_value(text) {
        out.push_str(before);
        value(out, number);
        text = behind;
    }
    out.push_str(text);
}

/// What is before the first value, its number, and what is behind it.
fn split_at_value(text: &str) -> Option<(&str, usize, &str)> {
    text.match_indices('{').find_map(|(at, _)| {
        let &[b'{', digit @ b'0'..=b'9', b'}'] = text.as_bytes().get(at..at + 3)? else {
            return None;
        };
        Some((text.get(..at)?, usize::from(digit - b'0'), text.get(at + 3..)?))
    })
}

/// The message with these values.
#[must_use]
pub fn rendered(template: Template, values: &[&str]) -> String {
    let mut out = String::new();
    render(&mut out, template, |out, number| {
        out.push_str(values.get(number).copied().unwrap_or_default());
    });
    out
}

/// Appends a number as `String` writes it.
pub fn push_number(out: &mut String, number: f64) {
    let size = number.abs();
    // Writing to memory cannot fail. Both languages write the fewest digits that give the number.
    let _ = if number == 0.0 {
        write!(out, "0")
    } else if number.is_nan() {
        write!(out, "NaN")
    } else if number.is_infinite() {
        write!(out, "{}Infinity", if number < 0.0 { "-" } else { "" })
    } else if size >= 1e21 {
        write!(out, "{}", format!("{number:e}").replace('e', "e+"))
    } else if size < 1e-6 {
        write!(out, "{number:e}")
    } else {
        write!(out, "{number}")
    };
}

/// Appends a string in quotes as `JSON.stringify` writes it. `units` are UTF-16; a surrogate
/// without its other half is escaped.
pub fn push_json(out: &mut String, units: impl IntoIterator<Item = u16>) {
    out.push('"');
    for unit in char::decode_utf16(units) {
        // Writing to memory cannot fail.
        let _ = match unit {
            Ok('"') => out.write_str("\\\""),
            Ok('\\') => out.write_str("\\\\"),
            Ok('\u{8}') => out.write_str("\\b"),
            Ok('\u{c}') => out.write_str("\\f"),
            Ok('\n') => out.write_str("\\n"),
            Ok('\r') => out.write_str("\\r"),
            Ok('\t') => out.write_str("\\t"),
            Ok(control @ '\0'..=' ') if control < ' ' => {
                write!(out, "\\u{:04x}", u32::from(control))
            }
            Ok(other) => out.write_char(other),
            Err(half) => write!(out, "\\u{:04x}", half.unpaired_surrogate()),
        };
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: f64) -> String {
        let mut out = String::new();
        push_number(&mut out, value);
        out
    }

    fn json(units: &[u16]) -> String {
        let mut out = String::new();
        push_json(&mut out, units.iter().copied());
        out
    }

    // Each is what Node prints.
    #[test]
    fn numbers_are_written_as_by_javascript() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (5000.0, "5000"),
            (0.5, "0.5"),
            (0.001, "0.001"),
            (1e-6, "0.000001"),
            (1.5e-7, "1.5e-7"),
            (-2.25, "-2.25"),
            (9_007_199_254_740_993.0, "9007199254740992"),
            (9_223_372_036_854_775_807.0, "9223372036854776000"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e300, "1.5e+300"),
            (f64::INFINITY, "Infinity"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn strings_are_escaped_as_by_javascript() {
        let units: Vec<u16> =
            "a\"\\/\u{8}\u{c}\n\r\t\u{1}\u{1f}\u{7f}ä€😀".encode_utf16().collect();
        assert_eq!(json(&units), "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\u{7f}ä€😀\"");
        assert_eq!(json(&[0xd83d, 0x61, 0xde00]), "\"\\ud83da\\ude00\"");
    }

    #[test]
    fn values_are_inserted_at_their_places() {
        for (template, message) in [
            ("{1} of {0}", "two of three"),
            ("{0}{1}", "threetwo"),
            ("{\"a\":{0}} and {b} or {", "{\"a\":three} and {b} or {"),
            ("no value", "no value"),
            ("", ""),
        ] {
            assert_eq!(rendered(template, &["three", "two"]), message);
        }
        assert_eq!(rendered("{0}", &["{1}", "two"]), "{1}");
    }
}
