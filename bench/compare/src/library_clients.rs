//! The libraries that programs in Rust send with, on a tokio runtime of one thread: `reqwest` over
//! HTTP, and Touchdown's client over QUIC. Each transaction has a task, which stamps it right before
//! it calls the library.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue, CONTENT_TYPE};
use tokio::runtime::Runtime;
use touchdown_client::{
    Client, Config, Credential, Outcome, Protocol, SendError, SubmitOptions, Trust,
};
use touchdown_native::sync::clock::{monotonic_ns, NS_PER_S};

use crate::http_clients::{call_of, certificate_of, tls_of};
use crate::load::{Account, Clients, Ends, Load, Sender, Transport};

/// As long as the client waits for a verdict.
const ANSWER_NS_MAX: u64 = 5 * NS_PER_S;
const CLOSES_WITHIN: Duration = Duration::from_millis(50);

/// One client of a library. `reqwest` pools its connections; Touchdown's client has one.
#[derive(Clone)]
enum Library {
    Reqwest { client: reqwest::Client, url: String, is_json: bool },
    Touchdown { client: Arc<Client>, has_verdicts: bool },
}

impl Library {
    /// The body of its request. It is made before the stamp, on the runtime's thread.
    fn body_of(&self, index: usize, bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Reqwest { is_json: true, .. } => call_of(index, &bytes),
            _ => bytes,
        }
    }

    /// Waits for the answer, or where there is none until the edge's QUIC stack has received it;
    /// returns whether the edge accepted it.
    async fn submit(&self, bytes: Vec<u8>) -> Result<bool, Box<dyn Error>> {
        match self {
            Self::Reqwest { client, url, .. } => {
                let response = client.post(url).body(bytes).send().await?;
                let is_success = response.status().is_success();
                response.bytes().await?;
                Ok(is_success)
            }
            Self::Touchdown { client, has_verdicts: false } => match client.send(&bytes).await {
                Ok(()) => Ok(true),
                Err(SendError::Refused(_)) => Ok(false),
                Err(error) => Err(error.into()),
            },
            Self::Touchdown { client, has_verdicts: true } => {
                let verdict = client.submit(&bytes, SubmitOptions::default()).await?;
                Ok(!matches!(verdict.outcome, Outcome::Refused(_)))
            }
        }
    }
}

/// The clients of one account, which take turns.
struct AccountClients {
    clients: Vec<Library>,
    turn: usize,
}

/// The clients of all accounts, by group.
pub struct LibraryClients {
    runtime: Runtime,
    groups: Vec<Vec<AccountClients>>,
    /// By the transaction's index.
    sent_ns: Arc<Vec<AtomicU64>>,
    ends: Arc<Mutex<Ends>>,
    begun: usize,
}

impl LibraryClients {
    /// Opens the connections over QUIC; `reqwest` opens one where none is free.
    pub fn open(load: &Load) -> Result<Self, Box<dyn Error>> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let mut groups = Vec::new();
        for group in &load.groups {
            let mut accounts = Vec::new();
            for account in &group.accounts {
                let clients = match load.transport {
                    Transport::Reqwest | Transport::ReqwestJson => vec![reqwest_of(load, account)?],
                    _ => runtime.block_on(touchdown_of(load, account, group.connections))?,
                };
                accounts.push(AccountClients { clients, turn: 0 });
            }
            groups.push(accounts);
        }
        let sent_ns = (0..load.count).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { runtime, groups, sent_ns: Arc::new(sent_ns), ends: Arc::default(), begun: 0 })
    }

    /// Closes the connections over QUIC, so that the edge has none of them in the next run.
    fn close(&self) {
        for library in self.groups.iter().flatten().flat_map(|account| &account.clients) {
            if let Library::Touchdown { client, .. } = library {
                client.close();
            }
        }
        std::thread::sleep(CLOSES_WITHIN);
    }

    fn ends(&self) -> Ends {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Clients for LibraryClients {
    fn send(&mut self, sender: Sender, index: usize, bytes: &[u8]) -> Result<u64, Box<dyn Error>> {
        let account = &mut self.groups[sender.group][sender.account];
        let library = account.clients[account.turn].clone();
        account.turn = (account.turn + 1) % account.clients.len();
        let (bytes, sent_ns, ends) = (bytes.to_vec(), self.sent_ns.clone(), self.ends.clone());
        self.begun += 1;
        self.runtime.spawn(async move {
            let bytes = library.body_of(index, bytes);
            sent_ns[index].store(monotonic_ns(), Ordering::Relaxed);
            let end = library.submit(bytes).await;
            let mut ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
            match end {
                Ok(true) => ends.accepted += 1,
                Ok(false) => ends.refused += 1,
                Err(error) => {
                    ends.cut += 1;
                    ends.first_refusal.get_or_insert_with(|| error.to_string());
                }
            }
        });
        // `sent_ns` has it.
        Ok(0)
    }

    fn finish(&mut self) -> Result<Ends, Box<dyn Error>> {
        let patience_ns = monotonic_ns() + ANSWER_NS_MAX;
        loop {
            let ends = self.ends();
            let ended = ends.accepted + ends.refused + ends.cut;
            if ended == self.begun || monotonic_ns() > patience_ns {
                self.close();
                return Ok(ends);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn sent_ns(&self) -> Option<Vec<u64>> {
        Some(self.sent_ns.iter().map(|at_ns| at_ns.load(Ordering::Relaxed)).collect())
    }
}

fn reqwest_of(load: &Load, account: &Account) -> Result<Library, Box<dyn Error>> {
    let mut headers = HeaderMap::new();
    headers.insert("api-x-token", HeaderValue::from_str(&account.key)?);
    let is_json = load.transport == Transport::ReqwestJson;
    let kind = if is_json { "application/json" } else { "application/octet-stream" };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    let mut builder = reqwest::Client::builder().default_headers(headers).http1_only().no_proxy();
    let mut scheme = "http";
    if let Some(certificate) = &load.certificate {
        scheme = "https";
        builder = builder.use_preconfigured_tls((*tls_of(certificate)?).clone());
    }
    let path = if is_json { "sendTransaction" } else { "sendRawTransaction" };
    let url = format!("{scheme}://{}/api/v1/{path}", load.address);
    Ok(Library::Reqwest { client: builder.build()?, url, is_json })
}

async fn touchdown_of(
    load: &Load,
    account: &Account,
    connections: usize,
) -> Result<Vec<Library>, Box<dyn Error>> {
    let seed = *account.seed.first_chunk().ok_or("a seed has 32 bytes")?;
    let mut config = Config::new(load.address.to_string(), Credential::seed(seed));
    let has_verdicts = load.transport == Transport::Touchdown;
    if !has_verdicts {
        config.protocol = Protocol::SolanaTpu;
    }
    config.trust = match &load.certificate {
        Some(certificate) => Trust::Authorities(vec![certificate_of(certificate)?.to_vec()]),
        None => Trust::Any,
    };
    let mut clients = Vec::new();
    for _ in 0..connections {
        let client = Client::start(config.clone())?;
        client.ready().await?;
        clients.push(Library::Touchdown { client: Arc::new(client), has_verdicts });
    }
    Ok(clients)
}
