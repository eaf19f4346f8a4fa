//! Frames of the control stream: docs/quic.md, "Control stream".

use crate::event::Event;
use crate::verdict::Verdict;

/// The first byte of a control stream.
const CONTROL: u8 = 0;
const HELLO: u8 = 0x01;
const VERSION: u8 = 1;
const WANTS_RECEIPTS: u8 = 1;
pub(crate) const HEAD_BYTES: usize = 4;
/// Largest content of a frame.
pub(crate) const CONTENT_BYTES_MAX: usize = 4096;

/// What a client writes on its control stream; an empty key where its certificate is known.
pub(crate) fn hello(api_key: &str, receipts: bool) -> Vec<u8> {
    let size = u16::try_from(2 + api_key.len()).unwrap_or(u16::MAX).to_le_bytes();
    let wants = if receipts { WANTS_RECEIPTS } else { 0 };
    let head = [CONTROL, HELLO, 0, size[0], size[1], VERSION, wants];
    [&head[..], api_key.as_bytes()].concat()
}

/// The type and the size of the content of a frame with this head.
pub(crate) fn head(bytes: [u8; HEAD_BYTES]) -> (u8, usize) {
    (bytes[0], usize::from(u16::from_le_bytes([bytes[2], bytes[3]])))
}

/// The event of a frame; None for a type that this version does not know, or a content that is too
/// short. A longer one is of a later version: what is known of it counts.
pub(crate) fn event(kind: u8, content: &[u8]) -> Option<Event> {
    match kind {
        0x81 => Some(Event::Limits {
            rate_per_second: f64::from_le_bytes(*content.first_chunk()?),
            burst: u32::from_le_bytes(*content.get(8..)?.first_chunk()?),
            credit: u32::from_le_bytes(*content.get(12..)?.first_chunk()?),
        }),
        0x82 => {
            let (lamports, accounts) = content.split_first_chunk()?;
            Some(Event::Tips {
                lamports_min: u64::from_le_bytes(*lamports),
                accounts: accounts.as_chunks().0.to_vec(),
            })
        }
        0x83 => {
            let address = str::from_utf8(content).ok()?;
            Some(Event::Draining { address: (!address.is_empty()).then(|| address.to_owned()) })
        }
        0x84 => Verdict::parse(content).map(Event::Receipt),
        0x85 => Some(Event::ReceiptsLost(u32::from_le_bytes(*content.first_chunk()?))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{event, head, hello};
    use crate::event::Event;
    use crate::verdict::tests::bytes_of;

    #[test]
    fn hello_is_that_of_the_formats_page() {
        let expected = "00 01001a00 01 01 6578616d706c652d6b65792d 6f662d746869732d70616765";
        assert_eq!(hello("example-key-of-this-page", true), bytes_of(expected));
        assert_eq!(hello("", false), [0, 1, 0, 2, 0, 1, 0]);
    }

    #[test]
    fn limits_and_tips_are_those_of_the_formats_page() {
        assert_eq!(head([0x81, 0, 0x18, 0]), (0x81, 24));
        let limits = bytes_of("0000000000004940 64000000 64000000 40000000 00100000");
        let expected = Event::Limits { rate_per_second: 50.0, burst: 100, credit: 100 };
        assert_eq!(event(0x81, &limits), Some(expected));
        let tips = [&bytes_of("40420f0000000000")[..], &[7; 32]].concat();
        let expected = Event::Tips { lamports_min: 1_000_000, accounts: vec![[7; 32]] };
        assert_eq!(event(0x82, &tips), Some(expected));
    }

    #[test]
    fn draining_names_an_address_or_none() {
        assert_eq!(event(0x83, b""), Some(Event::Draining { address: None }));
        let address = Some("ams.example.org:8009".to_owned());
        assert_eq!(event(0x83, b"ams.example.org:8009"), Some(Event::Draining { address }));
        assert_eq!(event(0x85, &[3, 0, 0, 0]), Some(Event::ReceiptsLost(3)));
    }

    #[test]
    fn unknown_and_short_frames_are_none() {
        assert_eq!(event(0x86, &[0; 8]), None);
        for kind in 0x81..=0x85 {
            for size in 0..if kind == 0x83 { 0 } else { 4 } {
                assert_eq!(event(kind, &vec![0; size]), None, "{kind:x} with {size} bytes");
            }
        }
    }
}
