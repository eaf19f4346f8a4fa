//! The common design of the senders in use: an HTTP server that decodes the body and passes the
//! bytes to `tpu-client-next`. No key, no limit, no validation of the transaction, no receipt.
//!
//! Prints its address once the leader has admitted it, and runs until it is killed.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{header, StatusCode};
use axum::response::IntoResponse;
use axum::routing::post;
use axum::serve::ListenerExt;
use axum::Router;
use base64::prelude::{Engine, BASE64_STANDARD};
use serde::Deserialize;
use solana_tpu_client_next::client_builder::TransactionSender;
use tokio::net::TcpListener;

use crate::sender::build_client;

/// Room for bursts, well above its author's defaults.
const CHANNEL_SIZE: usize = 4096;

/// Uses the identity that `sender::identity` derives from this number.
pub fn run(leader: SocketAddr, number: usize) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (sender, client) = build_client(runtime.handle(), leader, number, CHANNEL_SIZE)?;
    // It connects at the first transaction.
    sender.try_send_transactions_in_batch(vec![vec![0x5a; 8]])?;
    std::thread::sleep(std::time::Duration::from_millis(500));
    let served = runtime.block_on(async {
        let app = Router::new()
            .route("/api/v1/sendRawTransaction", post(raw))
            .route("/api/v1/sendTransaction", post(rpc))
            .with_state(Arc::new(sender));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        // As in every server tuned for latency.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        axum::serve(listener, app).await
    });
    drop(client);
    Ok(served?)
}

#[derive(Deserialize)]
struct Call {
    id: serde_json::Value,
    params: (String, serde_json::Value),
}

async fn raw(State(sender): State<Arc<TransactionSender>>, body: Bytes) -> impl IntoResponse {
    match pass_on(&sender, body.to_vec()).await {
        Some(signature) => {
            let text = format!(r#"{{"success":true,"signature":"{signature}"}}"#);
            (StatusCode::OK, JSON, text)
        }
        None => refused(),
    }
}

async fn rpc(State(sender): State<Arc<TransactionSender>>, body: Bytes) -> impl IntoResponse {
    let Ok(call) = serde_json::from_slice::<Call>(&body) else {
        return refused();
    };
    let Ok(bytes) = BASE64_STANDARD.decode(&call.params.0) else {
        return refused();
    };
    match pass_on(&sender, bytes).await {
        Some(signature) => {
            let id = call.id;
            let text = format!(r#"{{"jsonrpc":"2.0","result":"{signature}","id":{id}}}"#);
            (StatusCode::OK, JSON, text)
        }
        None => refused(),
    }
}

/// The first signature, for the response.
async fn pass_on(sender: &TransactionSender, bytes: Vec<u8>) -> Option<String> {
    let signature = bs58::encode(bytes.get(1..65)?).into_string();
    sender.send_transactions_in_batch(vec![bytes]).await.ok()?;
    Some(signature)
}

type Reply = (StatusCode, [(header::HeaderName, &'static str); 1], String);

const JSON: [(header::HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];

fn refused() -> Reply {
    (StatusCode::BAD_REQUEST, JSON, r#"{"error":"bad request"}"#.into())
}
