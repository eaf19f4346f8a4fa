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
fn usual_calls_are_read() {
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
fn other_forms_are_left_to_the_parser() {
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
fn transactions_up_to_the_largest_size_are_read() {
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
fn invalid_base64_character_is_found_at_any_position() {
    let text = STANDARD.encode([7; 120]);
    // The last character may be padding.
    for at in 0..text.len() - 1 {
        for letter in ["-", " ", "=", "\u{e9}", "\\"] {
            let mut text = text.clone();
            text.replace_range(at..=at, letter);
            assert_eq!(read(&call(&format!(r#"["{text}"]"#))), None, "{text}");
        }
    }
}

#[test]
fn truncated_call_or_small_buffer_is_not_read() {
    let body = call(r#"["AQIDBAU=",{"encoding":"base64","maxRetries":3}]"#);
    for size in 0..body.len() {
        assert_eq!(read(&body[..size]), None);
    }
    assert!(read_call(body.as_bytes(), &mut [0; 4095]).is_none());
}
