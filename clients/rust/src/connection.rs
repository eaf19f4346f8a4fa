//! One connection to an edge, from the handshake to its end.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quinn::{ClientConfig, Endpoint, RecvStream, SendStream, VarInt};
use tokio::net::lookup_host;
use tokio::sync::{broadcast, watch};
use tokio::time::sleep;

use crate::config::{Config, Protocol};
use crate::credential::Kind;
use crate::error::{ConnectError, SendError};
use crate::event::Event;
use crate::frame::{self, CONTENT_BYTES_MAX, HEAD_BYTES};
use crate::reason::Reason;
use crate::verdict::{VERDICT_BYTES, Verdict};

/// How long an edge, which acknowledges within milliseconds, may leave a transaction unacknowledged
/// before the connection is lost, if it is silent in the second half of that. An edge that has crashed
/// says nothing, and QUIC alone notices that after the idle timeout.
const SILENCE: Duration = Duration::from_secs(2);

/// Why one transaction has no verdict from this connection.
pub(crate) enum Failure {
    /// The connection is over; another one may take the transaction.
    Lost,
    /// The transaction itself.
    Send(SendError),
}

/// The control stream of an authenticated connection, with the event that said so.
pub(crate) struct Control {
    stream: RecvStream,
    first: Option<Event>,
}

/// A connection that the edge has authenticated.
#[derive(Clone)]
pub(crate) struct Connection {
    quic: quinn::Connection,
    /// The stream whose credit showed that the edge has authenticated the client (`solana-tpu`); the
    /// first transaction takes it.
    first_stream: Arc<Mutex<Option<SendStream>>>,
}

impl Connection {
    /// Connects to an address, and returns once the edge has authenticated the client. With
    /// `solana-tpu` that shows only when streams are granted, or the connection is closed. An edge
    /// whose streams are all in use grants none for a while, so that this wait ends with the
    /// connection: by the edge, or after 60 s without an answer to the client's pings.
    pub(crate) async fn open(
        config: &Config,
        tls: &ClientConfig,
        address: &str,
    ) -> Result<(Self, Option<Control>), ConnectError> {
        let (host, remotes) = resolve(address).await?;
        let mut failed = ConnectError::Failed("no attempt".into());
        for remote in remotes {
            let attempt = Self::open_to(config, tls, &host, remote);
            failed = match tokio::time::timeout(config.connect_timeout, attempt).await {
                Ok(Ok((connection, control))) => {
                    if config.protocol == Protocol::SolanaTpu {
                        connection.until_streams().await?;
                    }
                    return Ok((connection, control));
                }
                Ok(Err(error)) => error,
                Err(_) => ConnectError::Failed(format!("{remote} did not answer in time")),
            };
        }
        Err(failed)
    }

    async fn open_to(
        config: &Config,
        tls: &ClientConfig,
        host: &str,
        remote: SocketAddr,
    ) -> Result<(Self, Option<Control>), ConnectError> {
        let local = match remote {
            SocketAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let endpoint = Endpoint::client(local).map_err(failed)?;
        let connecting = endpoint.connect_with(tls.clone(), remote, host).map_err(failed)?;
        let quic = connecting.await.map_err(|error| closed(&error))?;
        let connection = Self { quic, first_stream: Arc::default() };
        if config.protocol == Protocol::SolanaTpu {
            return Ok((connection, None));
        }
        let control = connection.authenticate(config).await?;
        Ok((connection, Some(control)))
    }

    /// Waits until the edge grants a unidirectional stream.
    async fn until_streams(&self) -> Result<(), ConnectError> {
        let stream = self.quic.open_uni().await.map_err(|error| closed(&error))?;
        *self.first_stream.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
        Ok(())
    }

    async fn authenticate(&self, config: &Config) -> Result<Control, ConnectError> {
        let key = match &config.credential.0 {
            Kind::ApiKey(key) => key.as_str(),
            Kind::Seed(_) => "",
        };
        let (mut send, receive) = self.quic.open_bi().await.map_err(|error| closed(&error))?;
        let hello = frame::hello(key, config.receipts);
        send.write_all(&hello).await.map_err(|_| self.lost())?;
        send.finish().map_err(|_| self.lost())?;
        let mut control = Control { stream: receive, first: None };
        let first = self.next_event(&mut control).await?;
        if !matches!(first, Event::Limits { .. }) {
            return Err(ConnectError::Failed("the edge's first frame is not LIMITS".into()));
        }
        control.first = Some(first);
        Ok(control)
    }

    /// Why the connection is over.
    fn lost(&self) -> ConnectError {
        match self.quic.close_reason() {
            Some(error) => closed(&error),
            None => ConnectError::Failed("the edge ended the control stream".into()),
        }
    }

    /// The next event of the control stream.
    async fn next_event(&self, control: &mut Control) -> Result<Event, ConnectError> {
        if let Some(first) = control.first.take() {
            return Ok(first);
        }
        loop {
            let mut head = [0; HEAD_BYTES];
            control.stream.read_exact(&mut head).await.map_err(|_| self.lost())?;
            let (kind, size) = frame::head(head);
            if size > CONTENT_BYTES_MAX {
                return Err(ConnectError::Failed(format!("a frame of {size} bytes")));
            }
            let mut content = vec![0; size];
            control.stream.read_exact(&mut content).await.map_err(|_| self.lost())?;
            if let Some(event) = frame::event(kind, &content) {
                return Ok(event);
            }
        }
    }

    /// Passes on the control stream's events until the connection is over; returns why.
    pub(crate) async fn run(
        self,
        control: Option<Control>,
        events: broadcast::Sender<Event>,
        draining: watch::Sender<Option<String>>,
    ) -> ConnectError {
        let Some(mut control) = control else { return closed(&self.quic.closed().await) };
        loop {
            match self.next_event(&mut control).await {
                Ok(event) => {
                    if let Event::Draining { address } = &event {
                        draining.send_replace(address.clone());
                    }
                    // An error: the program reads no events.
                    let _ = events.send(event);
                }
                // The edge may end the control stream, and serve the connection to its end.
                Err(_) => return closed(&self.quic.closed().await),
            }
        }
    }

    /// Writes on a unidirectional stream, and returns once the edge's stack has received it all.
    pub(crate) async fn send(&self, transaction: &[u8]) -> Result<(), Failure> {
        let stream = match self.first_stream() {
            Some(stream) => stream,
            None => self.quic.open_uni().await.map_err(|_| Failure::Lost)?,
        };
        let mut stream = Whole::new(stream);
        let written = stream.send.write_all(transaction).await;
        match written {
            Ok(()) => {}
            Err(quinn::WriteError::Stopped(code)) => return Err(refused(code)),
            Err(_) => return Err(Failure::Lost),
        }
        // A stream that was stopped meanwhile is finished by that: `stopped` says so.
        stream.finish();
        self.watch(&stream.send);
        match stream.send.stopped().await {
            Ok(None) => Ok(()),
            Ok(Some(code)) => Err(refused(code)),
            Err(_) => Err(Failure::Lost),
        }
    }

    /// Writes on a bidirectional stream, after a flags byte where there is one, and reads the
    /// verdict.
    pub(crate) async fn submit(
        &self,
        flags: Option<u8>,
        transaction: &[u8],
    ) -> Result<Verdict, Failure> {
        let (send, mut receive) = self.quic.open_bi().await.map_err(|_| Failure::Lost)?;
        let mut stream = Whole::new(send);
        let write = async {
            if let Some(flags) = flags {
                stream.send.write_all(&[flags]).await?;
            }
            stream.send.write_all(transaction).await
        };
        match write.await {
            // Refused before its last byte: there is a verdict all the same.
            Ok(()) | Err(quinn::WriteError::Stopped(_)) => {}
            Err(_) => return Err(Failure::Lost),
        }
        stream.finish();
        self.watch(&stream.send);
        let answer = match receive.read_to_end(VERDICT_BYTES + 1).await {
            Ok(answer) => answer,
            Err(quinn::ReadToEndError::Read(quinn::ReadError::Reset(code))) => {
                return Err(refused(code));
            }
            Err(quinn::ReadToEndError::Read(_)) => return Err(Failure::Lost),
            Err(quinn::ReadToEndError::TooLong) => {
                return Err(Failure::Send(SendError::Protocol(VERDICT_BYTES + 1)));
            }
        };
        Verdict::parse(&answer).ok_or(Failure::Send(SendError::Protocol(answer.len())))
    }

    /// Datagrams that came from the edge.
    fn heard(&self) -> u64 {
        self.quic.stats().udp_rx.datagrams
    }

    /// Closes the connection if the edge does not acknowledge the finished stream in time. A task of its
    /// own does, because the transaction's time may be over before.
    fn watch(&self, stream: &SendStream) {
        let (connection, acknowledged) = (self.clone(), stream.stopped());
        tokio::spawn(async move {
            let silence = async {
                // What the edge sent before it crashed may come now, and after a pause of this program
                // what came meanwhile is read in the second half.
                sleep(SILENCE / 2).await;
                let heard = connection.heard();
                sleep(SILENCE / 2).await;
                if connection.heard() == heard {
                    connection.close();
                }
            };
            tokio::select! {
                _ = acknowledged => {}
                () = silence => {}
            }
        });
    }

    fn first_stream(&self) -> Option<SendStream> {
        self.first_stream.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether both are the same connection.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.quic.stable_id() == other.quic.stable_id()
    }

    pub(crate) fn close(&self) {
        self.quic.close(VarInt::from_u32(0), b"");
    }
}

/// A stream for one whole transaction. Dropped before `finish`, as when the time is over, it is reset:
/// a dropped stream of quinn is finished, and the edge takes, and charges, what came as a transaction.
struct Whole {
    send: SendStream,
    is_finished: bool,
}

impl Whole {
    fn new(send: SendStream) -> Self {
        Self { send, is_finished: false }
    }

    fn finish(&mut self) {
        self.is_finished = true;
        let _ = self.send.finish();
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if !self.is_finished {
            // One that the edge has stopped, or whose connection is over, needs none.
            let _ = self.send.reset(VarInt::from_u32(0));
        }
    }
}

/// The host name, and its addresses in the system's order.
async fn resolve(address: &str) -> Result<(String, Vec<SocketAddr>), ConnectError> {
    let wrong = |cause: String| ConnectError::Address { address: address.to_owned(), cause };
    let (host, _) = address.rsplit_once(':').ok_or_else(|| wrong("needs host:port".into()))?;
    let remotes = lookup_host(address).await.map_err(|error| wrong(error.to_string()))?;
    let remotes: Vec<SocketAddr> = remotes.collect();
    if remotes.is_empty() {
        return Err(wrong("has no address".into()));
    }
    Ok((host.trim_matches(['[', ']']).to_owned(), remotes))
}

fn failed(cause: impl ToString) -> ConnectError {
    ConnectError::Failed(cause.to_string())
}

fn closed(error: &quinn::ConnectionError) -> ConnectError {
    match error {
        quinn::ConnectionError::ApplicationClosed(close) => {
            ConnectError::Refused(Reason::from_code(close.error_code.into_inner()))
        }
        // `watch` closed it. After `Client::close` the client reports its own state, and not this.
        quinn::ConnectionError::LocallyClosed => failed("the edge does not answer"),
        other => ConnectError::Failed(other.to_string()),
    }
}

fn refused(code: VarInt) -> Failure {
    Failure::Send(SendError::Refused(Reason::from_code(code.into_inner())))
}
