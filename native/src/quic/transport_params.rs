//! Reads the leader's transport parameters that quinn-proto does not expose.
//!
//! quinn-proto's record can only be serialized, so it is serialized and the number read back, once
//! per connection.

use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{Connection, VarInt};

/// Maximum bytes that the leader accepts on one stream. Later credit does not count: Firedancer
/// grants none, and Agave closes a connection that sends more than it announced.
pub(crate) fn stream_bytes_max(connection: &Connection) -> u64 {
    announced(connection, INITIAL_MAX_STREAM_DATA_UNI)
}

/// The leader's idle timeout in milliseconds; 0: it has none.
pub(crate) fn idle_timeout_ms(connection: &Connection) -> u64 {
    announced(connection, MAX_IDLE_TIMEOUT)
}

fn announced(connection: &Connection, wanted: u64) -> u64 {
    let params = connection.crypto_session().transport_parameters();
    // Without parameters there is no handshake, and nothing is sent.
    params.ok().flatten().map_or(0, |parameters| read(&parameters, wanted))
}

fn read(parameters: &TransportParameters, wanted: u64) -> u64 {
    let mut bytes = Vec::with_capacity(256);
    parameters.write(&mut bytes);
    let mut rest = bytes.as_slice();
    while let (Some(id), Some(size)) = (take_varint(&mut rest), take_varint(&mut rest)) {
        let Some((mut value, after)) =
            usize::try_from(size).ok().and_then(|at| rest.split_at_checked(at))
        else {
            return 0;
        };
        if id == wanted {
            return take_varint(&mut value).unwrap_or(0);
        }
        rest = after;
    }
    0
}

/// RFC 9000 section 16.
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let (first, _) = bytes.split_first()?;
    let (number, after) = bytes.split_at_checked(1 << (first >> 6))?;
    *bytes = after;
    let value = number.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    Some(value & (VarInt::MAX.into_inner() >> (62 - (number.len() * 8 - 2))))
}

/// RFC 9000 section 18.2, as the next.
const MAX_IDLE_TIMEOUT: u64 = 0x01;
const INITIAL_MAX_STREAM_DATA_UNI: u64 = 0x07;

#[cfg(test)]
mod tests {
    use super::{INITIAL_MAX_STREAM_DATA_UNI, MAX_IDLE_TIMEOUT, read, take_varint};
    use quinn_proto::Side;
    use quinn_proto::transport_parameters::TransportParameters;

    fn parsed(mut bytes: &[u8]) -> TransportParameters {
        TransportParameters::read(Side::Client, &mut bytes).unwrap()
    }

    #[test]
    fn reads_numbers_of_every_size() {
        // The examples of RFC 9000 appendix A.1.
        let cases: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (mut bytes, value) in cases {
            assert_eq!(take_varint(&mut bytes), Some(value));
            assert!(bytes.is_empty());
        }
        assert_eq!(take_varint(&mut [0x40].as_slice()), None);
    }

    #[test]
    fn finds_the_limit_among_other_parameters() {
        // The source connection IDs that a server must send, then the limits.
        let ids = [0x0f, 1, 9, 0x00, 1, 9];
        let of = |more: &[u8], id| read(&parsed(&[&ids, more].concat()), id);
        let with = |more| of(more, INITIAL_MAX_STREAM_DATA_UNI);
        assert_eq!(with(&[]), 0);
        assert_eq!(with(&[0x07, 2, 0x44, 0xd0]), 1232);
        assert_eq!(with(&[0x04, 1, 5, 0x06, 1, 6, 0x07, 2, 0x50, 0x00, 0x09, 1, 7]), 4096);
        assert_eq!(of(&[0x01, 2, 0x47, 0xd0, 0x07, 1, 9], MAX_IDLE_TIMEOUT), 2_000);
        assert_eq!(of(&[0x07, 1, 9], MAX_IDLE_TIMEOUT), 0);
        assert_eq!(with(&[0x07, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), (1 << 62) - 1);
    }
}
