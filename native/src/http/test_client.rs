//! A client with real sockets for tests of the event loop, and its requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

/// Far longer than anything takes; a longer wait is a failure.
pub(super) const GUARD: Duration = Duration::from_secs(20);

/// A client of an ingress thread.
pub(super) struct TestClient {
    pub(super) stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl TestClient {
    pub(super) fn to(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).unwrap())
    }

    /// With this address as its own.
    pub(super) fn from(own: Ipv4Addr, address: SocketAddr) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((own, 0)).into()).unwrap();
        socket.connect(&address.into()).unwrap();
        Self::over(socket.into())
    }

    fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(GUARD)).unwrap();
        stream.set_write_timeout(Some(GUARD)).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        Self { stream, reader }
    }

    pub(super) fn send_text(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// Reads a response with a size; returns its body.
    pub(super) fn receive(&mut self) -> String {
        let head = read_head_text(&mut self.reader).unwrap();
        let mut body = vec![0; length_of(&head)];
        self.reader.read_exact(&mut body).unwrap();
        String::from_utf8(body).unwrap()
    }

    /// Reads a response up to its body.
    pub(super) fn receive_head(&mut self) -> String {
        read_head_text(&mut self.reader).unwrap()
    }

    /// Reads until the connection is closed or reset.
    pub(super) fn receive_all(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        match self.reader.read_to_end(&mut all) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
        }
        all
    }

    pub(super) fn read_exact(&mut self, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        self.reader.read_exact(&mut bytes).unwrap();
        bytes
    }
}

pub(super) fn read_head_text(reader: &mut impl BufRead) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        match reader.read_line(&mut head) {
            Ok(1..) => {}
            _ => return None,
        }
    }
    Some(head)
}

pub(super) fn length_of(head: &str) -> usize {
    let head = head.to_ascii_lowercase();
    let mut lines = head.lines().filter_map(|line| line.strip_prefix("content-length:"));
    lines.next().map_or(0, |text| text.trim().parse().unwrap())
}

/// A submission.
pub(super) fn post(token: &str, body: &str) -> String {
    format!(
        "POST /api/v1/sendRawTransaction HTTP/1.1\r\nHost: a\r\napi-x-token: {token}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The same as a request that is no submission.
pub(super) fn put(token: &str, body: &str) -> String {
    post(token, body).replace("POST", "PUT")
}

/// Any other request.
pub(super) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}
