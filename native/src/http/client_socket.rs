//! A client's connection before a front has it.

use std::net::IpAddr;

use mio::net::TcpStream;

use crate::http::connection_limits::Seat;

/// A connection on its way to the front that is to have it.
#[derive(Debug)]
pub(super) struct AcceptedSocket {
    pub(super) stream: TcpStream,
    pub(super) from: IpAddr,
    /// Its address holds this one as long as the connection is open.
    pub(super) seat: Seat,
}
