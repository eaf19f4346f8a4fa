//! An accepted client connection before an event loop registers it.

use std::net::IpAddr;

use mio::net::TcpStream;

use crate::http::connection_limits::AddressPermit;

/// An accepted socket on its way to the ingress thread that will serve it.
#[derive(Debug)]
pub(super) struct AcceptedSocket {
    pub(super) stream: TcpStream,
    pub(super) from: IpAddr,
    /// Counts the connection against its address while it is open.
    pub(super) address_permit: AddressPermit,
}
