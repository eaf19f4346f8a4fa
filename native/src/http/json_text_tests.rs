//! Which texts are JSON, and what is read of them.

use super::*;

#[test]
fn texts_are_json_as_for_javascript() {
    for text in [
        "0",
        "-0",
        "1.5e+3",
        "1E-2",
        " \t\r\n null ",
        "true",
        "false",
        "\"\"",
        "[]",
        "{}",
        "[[],{}]",
        r#"{"a":[1,{"b":null}],"a":"\u00e9\ud800\"\\\/\b\f\n\r\t"}"#,
        "1e999",
        "\"\u{7f}é\"",
    ] {
        assert!(Json::parse(text).is_some(), "{text}");
    }
    for text in [
        "",
        " ",
        "01",
        "-",
        "1.",
        ".5",
        "+1",
        "1e",
        "1e+",
        "nul",
        "truex",
        "\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "[",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\":1]",
        "[1}",
        "1 2",
        "[] []",
        "]",
        "'a'",
        "NaN",
        "\u{feff}1",
        "\u{a0}1",
        "{\"a\" 1}",
        "{,}",
        "\"\\",
    ] {
        assert!(Json::parse(text).is_none(), "{text}");
    }
}

#[test]
fn depth_is_bounded_by_the_text_alone() {
    let deep = "[".repeat(8_000) + &"]".repeat(8_000);
    assert!(Json::parse(&deep).is_some());
    assert!(Json::parse(&deep[1..]).is_none());
    assert!(Json::parse(&"{\"a\":".repeat(3_000)).is_none());
}

#[test]
fn elements_and_members_are_found() {
    let json = Json::parse(r#"[1,[2,[3]],{"a":[4],"b":5,"\u0061":6},"x"]"#).unwrap();
    let elements: Vec<Value<'_>> = json.root().elements().collect();
    let kinds: Vec<Kind> = elements.iter().map(Value::kind).collect();
    assert_eq!(kinds, [Kind::Number, Kind::Array, Kind::Object, Kind::String]);
    assert_eq!(elements[1].elements().count(), 2);
    // The last of the same name counts.
    assert_eq!(elements[2].member("a").unwrap().text(), "6");
    assert_eq!(elements[2].member("b").unwrap().number(), 5.0);
    assert!(elements[2].member("c").is_none() && elements[1].member("a").is_none());
    assert!(elements[3].is_text("x") && !elements[3].is_text("y") && !elements[0].is_text("1"));
    let empty = Json::parse("[]").unwrap();
    assert_eq!(empty.root().elements().count(), 0);
}

#[test]
fn strings_keep_every_unit_and_numbers_their_text() {
    let json =
        Json::parse(r#"["é😀\ud83d\u00E9\"\\\/\b\f\n\r\t",123456789012345678901,1e999]"#).unwrap();
    let elements: Vec<Value<'_>> = json.root().elements().collect();
    let expected: Vec<u16> = "é😀"
        .encode_utf16()
        .chain([0xd83d])
        .chain("é\"\\/\u{8}\u{c}\n\r\t".encode_utf16())
        .collect();
    assert_eq!(elements[0].units(), expected);
    assert_eq!(elements[1].text(), "123456789012345678901");
    assert_eq!(
        (elements[1].number(), elements[2].number()),
        (123_456_789_012_345_680_000.0, f64::INFINITY)
    );
}
