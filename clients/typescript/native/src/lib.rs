//! The Rust client for Node: every option is present, errors are values, and events go to one
//! function. `src/client.ts` is what programs use.

use std::sync::Arc;
use std::time::Duration;

use napi::bindgen_prelude::{BigInt, Function, Uint8Array, within_runtime_if_available};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;
use tokio::sync::broadcast::error::RecvError;
use touchdown_client::{
    Client, Config, ConnectError, Credential, Event, Outcome, Protocol, Reason, SendError,
    SubmitOptions, Trust, Verdict,
};

/// Events that wait for JavaScript; further ones are dropped.
const EVENTS_MAX: usize = 1024;

/// The settings of a client, all present.
#[napi(object)]
pub struct NativeConfig {
    /// `host:port`.
    pub address: String,
    /// 0: a seed of 32 bytes; 1: an API key; 2: a certificate derived from an API key.
    pub credential_kind: u8,
    /// The seed, or the bytes of the API key.
    pub credential: Uint8Array,
    /// Whether to speak `solana-tpu` instead of `touchdown/1`.
    pub is_solana_tpu: bool,
    /// Whether any server certificate is accepted.
    pub trusts_any: bool,
    /// Authorities, each in PEM or DER; none: those of the system.
    pub authorities: Vec<Uint8Array>,
    /// As in `Config` of the Rust client.
    pub receipts: bool,
    /// As in `Config` of the Rust client.
    pub connect_timeout_ms: u32,
    /// As in `Config` of the Rust client.
    pub reconnects_max: u32,
    /// As in `Config` of the Rust client.
    pub backoff_min_ms: u32,
    /// As in `Config` of the Rust client.
    pub backoff_max_ms: u32,
    /// As in `Config` of the Rust client.
    pub timeout_ms: u32,
    /// As in `Config` of the Rust client.
    pub pending_max: u32,
    /// As in `Config` of the Rust client.
    pub keep_alive_ms: u32,
}

/// Why something failed.
#[napi(object)]
pub struct NativeError {
    /// `ErrorKind` of `src/errors.ts`.
    pub kind: String,
    /// The sentence.
    pub message: String,
    /// The code of the edge's reason; 0: none.
    pub code: u32,
}

/// A verdict.
#[napi(object)]
pub struct NativeVerdict {
    /// `Outcome` of `src/verdict.ts`.
    pub outcome: String,
    /// The code of the reason of a refusal; 0: none.
    pub code: u32,
    /// Base58; empty where the edge found none.
    pub signature: String,
    /// From the last byte at the edge to the verdict.
    pub microseconds: u32,
    /// Further transactions that the limits admit.
    pub credit: u32,
    /// 0: not known.
    pub slot: f64,
    /// Whether it landed and its execution failed.
    pub has_execution_failed: bool,
}

/// A verdict, or why there is none.
#[napi(object)]
pub struct NativeAnswer {
    /// One of the two.
    pub verdict: Option<NativeVerdict>,
    /// One of the two.
    pub error: Option<NativeError>,
}

/// An event; what does not belong to its kind is absent.
#[napi(object)]
pub struct NativeEvent {
    /// `ClientEvent["kind"]` of `src/events.ts`.
    pub kind: String,
    /// Of `connected` and `draining`.
    pub address: Option<String>,
    /// Of `disconnected` and `failed`.
    pub error: Option<NativeError>,
    /// Of `limits`: rate, burst, credit. Of `receipts_lost`: how many.
    pub numbers: Vec<f64>,
    /// Of `tips`.
    pub lamports_min: Option<BigInt>,
    /// Of `tips`, in base58.
    pub accounts: Vec<String>,
    /// Of `receipt`.
    pub verdict: Option<NativeVerdict>,
}

/// A client.
#[napi]
pub struct NativeClient {
    client: Arc<Client>,
}

type OnEvent =
    ThreadsafeFunction<NativeEvent, (), NativeEvent, napi::Status, false, true, EVENTS_MAX>;

#[napi]
impl NativeClient {
    /// Begins to connect. Throws where the settings contradict each other.
    #[napi(factory)]
    pub fn start(
        config: NativeConfig,
        on_event: Function<'_, NativeEvent, ()>,
    ) -> napi::Result<Self> {
        let config = config_of(&config)?;
        let on_event: OnEvent = on_event
            .build_threadsafe_function()
            .weak::<true>()
            .max_queue_size::<EVENTS_MAX>()
            .build()?;
        let client = within_runtime_if_available(|| Client::start(config));
        let client = Arc::new(client.map_err(|error| napi::Error::from_reason(error.to_string()))?);
        pass_on_events(&client, on_event);
        Ok(Self { client })
    }

    /// Waits until the edge has authenticated the client; returns why it gave up.
    #[napi]
    pub async fn ready(&self) -> Option<NativeError> {
        self.client.ready().await.err().map(|error| connect_error(&error))
    }

    /// Submits a transaction. A thread of tokio reads `bytes` after this returns, so `client.ts` passes a
    /// copy that no program writes to.
    #[napi]
    pub async fn submit(&self, bytes: Uint8Array, once: bool, when_landed: bool) -> NativeAnswer {
        let transaction = bytes.to_vec();
        match self.client.submit(&transaction, SubmitOptions { once, when_landed }).await {
            Ok(verdict) => NativeAnswer { verdict: Some(native_verdict(&verdict)), error: None },
            Err(error) => NativeAnswer { verdict: None, error: Some(send_error(&error)) },
        }
    }

    /// Sends a transaction without a verdict; returns why it was not sent. `bytes` as for `submit`.
    #[napi]
    pub async fn send(&self, bytes: Uint8Array) -> Option<NativeError> {
        let transaction = bytes.to_vec();
        self.client.send(&transaction).await.err().map(|error| send_error(&error))
    }

    /// Closes the connection.
    #[napi]
    pub fn close(&self) {
        self.client.close();
    }
}

/// Until the client is gone.
fn pass_on_events(client: &Arc<Client>, on_event: OnEvent) {
    let mut events = client.events();
    napi::bindgen_prelude::spawn(async move {
        loop {
            match events.recv().await {
                Ok(event) => {
                    if let Some(event) = native_event(event) {
                        // A full queue drops it.
                        on_event.call(event, ThreadsafeFunctionCallMode::NonBlocking);
                    }
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    });
}

fn config_of(native: &NativeConfig) -> napi::Result<Config> {
    let wrong = |what: &str| napi::Error::from_reason(what.to_owned());
    let text = || str::from_utf8(&native.credential).map_err(|_| wrong("an API key is ASCII"));
    let credential = match native.credential_kind {
        0 => {
            let seed = native.credential.as_ref().try_into();
            Credential::seed(seed.map_err(|_| wrong("a seed has 32 bytes"))?)
        }
        1 => Credential::api_key(text()?),
        _ => Credential::derived(text()?),
    };
    let milliseconds = |value: u32| Duration::from_millis(u64::from(value));
    let mut config = Config::new(native.address.clone(), credential);
    if native.is_solana_tpu {
        config.protocol = Protocol::SolanaTpu;
    }
    if native.trusts_any {
        config.trust = Trust::Any;
    } else if !native.authorities.is_empty() {
        let authorities = native.authorities.iter().map(|authority| authority.to_vec());
        config.trust = Trust::Authorities(authorities.collect());
    }
    config.receipts = native.receipts;
    config.connect_timeout = milliseconds(native.connect_timeout_ms);
    config.reconnects_max = native.reconnects_max;
    config.backoff_min = milliseconds(native.backoff_min_ms);
    config.backoff_max = milliseconds(native.backoff_max_ms);
    config.timeout = milliseconds(native.timeout_ms);
    config.pending_max = native.pending_max as usize;
    config.keep_alive = milliseconds(native.keep_alive_ms);
    Ok(config)
}

fn code_of(reason: Reason) -> u32 {
    u32::try_from(reason.code()).unwrap_or(u32::MAX)
}

fn connect_error(error: &ConnectError) -> NativeError {
    let (kind, code) = match error {
        ConnectError::Refused(reason) => ("connection_refused", code_of(*reason)),
        ConnectError::Closed => ("closed", 0),
        ConnectError::Config(_) => ("config", 0),
        _ => ("not_connected", 0),
    };
    NativeError { kind: kind.into(), message: error.to_string(), code }
}

fn send_error(error: &SendError) -> NativeError {
    let (kind, code) = match error {
        SendError::Connect(error) => return connect_error(error),
        SendError::Size(_) => ("size", 0),
        SendError::TooMany => ("too_many", 0),
        SendError::Timeout => ("timeout", 0),
        SendError::Refused(reason) => ("stream_refused", code_of(*reason)),
        SendError::NoVerdicts => ("no_verdicts", 0),
        _ => ("protocol", 0),
    };
    NativeError { kind: kind.into(), message: error.to_string(), code }
}

fn native_verdict(verdict: &Verdict) -> NativeVerdict {
    let (outcome, code) = match verdict.outcome {
        Outcome::Refused(reason) => ("refused", code_of(reason)),
        Outcome::Processed => ("processed", 0),
        Outcome::Landed => ("landed", 0),
        Outcome::Expired => ("expired", 0),
        Outcome::Dropped => ("dropped", 0),
        _ => ("accepted", 0),
    };
    NativeVerdict {
        outcome: outcome.into(),
        code,
        signature: signature_text(&verdict.signature),
        microseconds: verdict.microseconds,
        credit: verdict.credit,
        slot: verdict.slot.unwrap_or(0) as f64,
        has_execution_failed: verdict.has_execution_failed,
    }
}

fn signature_text(signature: &[u8; 64]) -> String {
    if signature.iter().all(|byte| *byte == 0) {
        return String::new();
    }
    let mut text = [0; five8::BASE58_ENCODED_64_MAX_LEN];
    let size = usize::from(five8::encode_64(signature, &mut text));
    String::from_utf8_lossy(&text[..size]).into_owned()
}

fn key_text(key: &[u8; 32]) -> String {
    let mut text = [0; five8::BASE58_ENCODED_32_MAX_LEN];
    let size = usize::from(five8::encode_32(key, &mut text));
    String::from_utf8_lossy(&text[..size]).into_owned()
}

/// None for an event that this version of the addon does not know.
fn native_event(event: Event) -> Option<NativeEvent> {
    let mut native = NativeEvent {
        kind: String::new(),
        address: None,
        error: None,
        numbers: Vec::new(),
        lamports_min: None,
        accounts: Vec::new(),
        verdict: None,
    };
    native.kind = match event {
        Event::Connected { address } => {
            native.address = Some(address);
            "connected"
        }
        Event::Disconnected(error) => {
            native.error = Some(connect_error(&error));
            "disconnected"
        }
        Event::Failed(error) => {
            native.error = Some(connect_error(&error));
            "failed"
        }
        Event::Limits { rate_per_second, burst, credit } => {
            native.numbers = vec![rate_per_second, f64::from(burst), f64::from(credit)];
            "limits"
        }
        Event::Tips { lamports_min, accounts } => {
            native.lamports_min = Some(BigInt::from(lamports_min));
            native.accounts = accounts.iter().map(key_text).collect();
            "tips"
        }
        Event::Draining { address } => {
            native.address = address;
            "draining"
        }
        Event::Receipt(verdict) => {
            native.verdict = Some(native_verdict(&verdict));
            "receipt"
        }
        Event::ReceiptsLost(count) => {
            native.numbers = vec![f64::from(count)];
            "receipts_lost"
        }
        _ => return None,
    }
    .into();
    Some(native)
}
