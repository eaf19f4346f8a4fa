//! One message to a Unix datagram socket: how systemd hears from a service, `sd_notify(3)`.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends a message to the socket at a path, or to the one in the abstract namespace whose name
/// follows an `@`.
///
/// # Errors
/// When there is no such socket, or its owner does not read.
pub fn send_datagram(socket: &str, message: &[u8]) -> io::Result<()> {
    let address = match socket.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let datagram = UnixDatagram::unbound()?;
    // The caller is the main thread, which must not wait for a manager that does not read.
    datagram.set_nonblocking(true)?;
    datagram.send_to_addr(message, &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::process;

    use super::*;

    fn received(socket: &UnixDatagram) -> Vec<u8> {
        let mut buffer = [0; 64];
        let count = socket.recv(&mut buffer).unwrap();
        buffer[..count].to_vec()
    }

    #[test]
    fn message_reaches_a_socket_with_a_path() {
        let path = std::env::temp_dir().join(format!("touchdown-datagram-{}", process::id()));
        let socket = UnixDatagram::bind(&path).unwrap();
        let sent = send_datagram(path.to_str().unwrap(), b"READY=1");
        std::fs::remove_file(&path).unwrap();
        assert!(sent.is_ok());
        assert_eq!(received(&socket), b"READY=1");
    }

    #[test]
    fn message_reaches_an_abstract_socket() {
        let name = format!("touchdown-datagram-{}", process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        send_datagram(&format!("@{name}"), b"STOPPING=1").unwrap();
        assert_eq!(received(&socket), b"STOPPING=1");
    }

    #[test]
    fn missing_or_full_socket_is_an_error_without_a_wait() {
        assert!(send_datagram("/nonexistent/notify", b"READY=1").is_err());
        let name = format!("touchdown-full-{}", process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let _unread = UnixDatagram::bind_addr(&address).unwrap();
        let all = (0..100_000).try_for_each(|_| send_datagram(&format!("@{name}"), b"WATCHDOG=1"));
        assert_eq!(all.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
