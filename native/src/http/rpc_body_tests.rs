//! Calls in unusual forms. `test/native` compares with the main thread's parser.

use super::*;

fn read(text: &str) -> (String, Call) {
    let json = Json::parse(text).unwrap();
    read_call(json.root(), &keyless())
}

fn keyless() -> KeylessMethods {
    KeylessMethods::new([("getVersion".into(), "[7]".into())])
}

fn message(text: &str) -> String {
    match read(text).1 {
        Call::Rejected(rejection) => rejection.message,
        other => panic!("{other:?}"),
    }
}

fn call(rest: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"sendTransaction",{rest}}}"#)
}

#[test]
fn escapes_order_and_numbers_are_read() {
    let text = r#"{"params":["\u0041QID",{"maxRetries":1e1,"encoding":null}],"method":"send\u0054ransaction",
        "id":1,"id":12345678901234567890,"jsonrpc":"2.0"}"#;
    let expected = Call::Send { bytes: vec![1, 2, 3], max_retries: Some(10) };
    assert_eq!(read(text), ("12345678901234567890".into(), expected));
    assert_eq!(
        read(&call(r#""params":["",null]"#)).1,
        Call::Send { bytes: vec![], max_retries: None }
    );
}

#[test]
fn ids_are_echoed_by_value_and_large_ones_by_text() {
    for (id, text) in [
        ("1.0", "1"),
        ("-0", "0"),
        ("1e2", "100"),
        ("1.50", "1.50"),
        ("1e999", "1e999"),
        ("null", "null"),
        (r#""\u00e9\ud800\/""#, "\"é\\ud800/\""),
    ] {
        let text_of = format!(r#"{{"id":{id},"jsonrpc":"2.0","method":"getHealth"}}"#);
        assert_eq!(read(&text_of), (text.into(), Call::Keyless(Keyless::Health)));
    }
    let json = Json::parse(r#"[{"id":[]},{"id":"a"},7]"#).unwrap();
    let ids: Vec<String> = json.root().elements().map(call_id).collect();
    assert_eq!(ids, ["null", "\"a\"", "null"]);
}

#[test]
fn methods_that_need_no_key_are_those_that_are_given() {
    let of = |method: &str| format!(r#"{{"id":1,"jsonrpc":"2.0","method":"{method}"}}"#);
    for (method, expected) in [
        ("getHealth", Keyless::Health),
        ("get\\u0048ealth", Keyless::Health),
        ("getVersion", Keyless::Result("[7]".into())),
    ] {
        let text = of(method);
        assert!(keyless().include(Json::parse(&text).unwrap().root()));
        assert_eq!(read(&text).1, Call::Keyless(expected));
    }
    for text in [of("sendTransaction"), of("getTipAccounts"), "{}".into(), "7".into()] {
        assert!(!keyless().include(Json::parse(&text).unwrap().root()), "{text}");
        assert!(matches!(read(&text).1, Call::Rejected(_)));
    }
}

#[test]
fn errors_of_form_are_found_in_a_fixed_order() {
    assert_eq!(message("7"), "the request is a number, a JSON-RPC object is needed");
    assert!(message("{}").starts_with("id is missing"));
    assert!(message(r#"{"id":true}"#).starts_with("id is a boolean"));
    assert!(message(r#"{"id":1,"jsonrpc":2.50}"#).starts_with("jsonrpc is 2.5,"));
    assert!(
        message(r#"{"id":1,"jsonrpc":"2.0","method":[1,[2]]}"#)
            .starts_with("method is an array of 2")
    );
    let long = format!(r#"{{"id":1,"jsonrpc":"2.0","method":"{}"}}"#, "x".repeat(70));
    assert!(message(&long).starts_with(&format!("there is no method \"{}\" on", "x".repeat(64))));
    assert!(message(&call(r#""params":{}"#)).starts_with("params is an object"));
    assert!(message(&call(r#""params":[1,2,3]"#)).starts_with("params is an array of 3"));
    assert!(message(&call(r#""params":[1]"#)).starts_with("params[0] is a number"));
    assert!(message(&call(r#""params":["",1]"#)).starts_with("params[1] is a number"));
    assert!(message(&call(r#""params":["",{"encoding":"x"}]"#)).starts_with("encoding is \"x\""));
    assert!(message(&call(r#""params":["",{"maxRetries":-1}]"#)).starts_with("maxRetries is -1"));
    assert!(
        message(&call(r#""params":["a"]"#)).starts_with("params[0] is a text that is not base64")
    );
    assert!(message(&call(r#""params":["é\ud800é="]"#)).contains("not base64"));
    assert!(message(&call(r#""params":["0",{"encoding":"base58"}]"#)).contains("not base58"));
    let long = call(&format!(r#""params":["{}",{{"encoding":"base58"}}]"#, "1".repeat(5_596)));
    assert!(message(&long).contains("its base58 text has 5596 characters"));
}

#[test]
fn body_and_batch_are_bounded() {
    let message = |bytes: &[u8]| parse_body(bytes).unwrap_err().message;
    assert_eq!(message(b""), "the body is empty, JSON is needed");
    assert_eq!(message(b"\xff"), "the body of 1 bytes is not JSON in UTF-8");
    assert_eq!(message(b"{ "), "the body of 2 bytes is not JSON");
    let size = |count: usize| {
        let text = format!("[{}]", vec!["1"; count].join(","));
        let json = Json::parse(&text).unwrap();
        batch_of(&json).map(|calls| calls.map(|calls| calls.len())).map_err(|error| error.message)
    };
    assert_eq!((size(1), size(16)), (Ok(Some(1)), Ok(Some(16))));
    assert_eq!(size(0), Err("the batch has 0 calls, 1 to 16 are needed".into()));
    assert_eq!(size(17), Err("the batch has 17 calls, 1 to 16 are needed".into()));
    assert!(batch_of(&Json::parse("{}").unwrap()).unwrap().is_none());
}
