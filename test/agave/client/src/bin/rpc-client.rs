//! Agave's synchronous `RpcClient` as a program: sends the transactions on stdin, one a line in base64,
//! and says nothing for so many seconds between two of them. Prints each signature; ends with the
//! client's error when one fails.

use {
    serde_json::json,
    solana_rpc_client::{api::request::RpcRequest, rpc_client::RpcClient},
    std::{io::BufRead, process::exit, thread::sleep, time::Duration},
};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, seconds] = arguments.as_slice() else {
        eprintln!("rpc-client URL SECONDS < TRANSACTIONS");
        exit(2);
    };
    let silence = Duration::from_secs(seconds.parse().expect("a number of seconds"));
    let client = RpcClient::new(url.clone());
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        if number > 0 {
            sleep(silence);
        }
        let params = json!([line.expect("a line"), { "encoding": "base64" }]);
        match client.send::<String>(RpcRequest::SendTransaction, params) {
            Ok(signature) => println!("{signature}"),
            Err(error) => {
                eprintln!("{error}");
                exit(1);
            }
        }
    }
}
