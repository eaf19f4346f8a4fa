//! Removes the unused parts of a node's long responses.
//!
//! On mainnet the list of nodes is 2 MB of JSON once a minute, of which three members each are
//! read. Parsing all of it blocked the thread that accepts transactions for 5 to 13 ms; so the RPC
//! thread removes the rest. The remaining parts stay as the node wrote them, in a response of the
//! same form, for the reader that knows their meaning (`src/cluster/rpc/responses.ts`). It reads
//! filtered and unfiltered responses alike (`test/cluster/rpc/native-http-client.test.ts`): one of
//! another form is passed on unchanged.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::rpc::json_object::Object;

/// The reduced response to a request; None if all of it may be read, or it has another form.
#[must_use]
pub fn filtered(request: &[u8], response: &[u8]) -> Option<Vec<u8>> {
    let Object(RequestMethod { method }) = serde_json::from_slice(request).ok()?;
    match &*method {
        "getClusterNodes" => rewrite::<Vec<Object<Node<'_>>>>(response),
        "getVoteAccounts" => rewrite::<Object<Votes<'_>>>(response),
        _ => None,
    }
}

fn rewrite<'a, T: Deserialize<'a> + Serialize>(response: &'a [u8]) -> Option<Vec<u8>> {
    let response: Object<Response<'a, T>> = serde_json::from_slice(response).ok()?;
    if response.0.error.is_some() {
        return None;
    }
    serde_json::to_vec(&response).ok()
}

#[derive(Deserialize)]
struct RequestMethod<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
}

#[derive(Deserialize, Serialize)]
struct Response<'a, T> {
    #[serde(borrow)]
    id: &'a RawValue,
    result: T,
    #[serde(borrow, default, skip_serializing)]
    error: Option<&'a RawValue>,
}

/// From `getClusterNodes`. A null member is omitted: the reader treats it as absent.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Node<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pubkey: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    tpu_quic: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    version: Option<&'a RawValue>,
}

/// The result of `getVoteAccounts`.
#[derive(Deserialize, Serialize)]
struct Votes<'a> {
    #[serde(borrow)]
    current: Vec<Object<Vote<'a>>>,
    #[serde(borrow)]
    delinquent: Vec<Object<Vote<'a>>>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Vote<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    node_pubkey: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(method: &str, response: &str) -> Option<String> {
        let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[]}}"#);
        let bytes = filtered(request.as_bytes(), response.as_bytes())?;
        Some(String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn nodes_keep_the_members_that_are_read() {
        let response = r#"{"jsonrpc":"2.0","result":[
            {"pubkey":"A","gossip":"1.2.3.4:1","tpuQuic":"1.2.3.4:5","version":"2.3","tvu":null},
            {"tpuQuic":null,"pubkey":"\u0042","rpc":[{"x":{}}]},
            {"pubkey":7,"version":{"a":1}},{}],"id":1}"#;
        let nodes = r#"{"pubkey":"A","tpuQuic":"1.2.3.4:5","version":"2.3"},{"pubkey":"\u0042"},"#;
        let odd = r#"{"pubkey":7,"version":{"a":1}},{}"#;
        let wanted = format!(r#"{{"id":1,"result":[{nodes}{odd}]}}"#);
        assert_eq!(short("getClusterNodes", response), Some(wanted));
    }

    #[test]
    fn vote_accounts_keep_the_current_voters() {
        let response = r#"{"id":"x","error":null,"result":{
            "current":[{"nodePubkey":"A","votePubkey":"V","epochCredits":[[1,2,3]]}],
            "delinquent":[{"nodePubkey":"B"}]}}"#;
        let votes = r#"{"current":[{"nodePubkey":"A"}],"delinquent":[{"nodePubkey":"B"}]}"#;
        let wanted = format!(r#"{{"id":"x","result":{votes}}}"#);
        assert_eq!(short("getVoteAccounts", response), Some(wanted));
    }

    #[test]
    fn responses_of_another_form_or_request_are_passed_on_unchanged() {
        let nodes = "getClusterNodes";
        for response in [
            r#"{"id":1,"result":[["A","1.2.3.4:5","2.3"]]}"#,
            r#"{"id":1,"result":[null]}"#,
            r#"{"id":1,"result":{}}"#,
            r#"[1,[]]"#,
            r#"{"result":[]}"#,
            r#"{"id":1,"result":[],"error":{"code":1}}"#,
            r#"{"id":1,"result":[{"pubkey":"A","pubkey":"B"}]}"#,
            r#"{"id":1,"result":[]}x"#,
            "",
        ] {
            assert_eq!(short(nodes, response), None, "{response}");
        }
        assert_eq!(short("getLeaderSchedule", r#"{"id":1,"result":[]}"#), None);
        let batch = br#"[{"method":"getClusterNodes"}]"#;
        assert_eq!(filtered(batch, br#"{"id":1,"result":[]}"#), None);
    }
}
