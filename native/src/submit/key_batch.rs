//! A batch of keys as bytes, as `src/native-ingress/engine-keys.ts` writes it. Numbers are
//! little-endian.
//!
//! ```text
//!  key:    digest 32 ─ id 16 ─ plan u32 ─ account ─ its number f64 ─ policy u8: 0 or 1
//!          ─ [policy]
//!  policy: expiry f64, NaN for none ─ its text ─ rate f64, 0 for no limit ─ burst f64
//!          ─ networks u8: 0 or 1 ─ [their text]
//!  text:   size u16 ─ UTF-8
//! ```

use crate::submit::key_table::{Digest, KEY_ID_BYTES, KeyTerms, PolicyTerms};
use crate::submit::rate_limit::Rate;

/// The keys of a batch; the last one is None where the bytes are no key.
pub fn keys_of(bytes: &[u8]) -> impl Iterator<Item = Option<KeyTerms<'_>>> {
    let mut rest = Some(Reader { bytes });
    std::iter::from_fn(move || {
        let mut reader = rest.take().filter(|reader| !reader.bytes.is_empty())?;
        let key = reader.key();
        rest = key.is_some().then_some(reader);
        Some(key)
    })
}

/// The digests of a batch of removals; None unless all are whole.
#[must_use]
pub fn digests_of(bytes: &[u8]) -> Option<impl Iterator<Item = Digest>> {
    let (digests, rest) = bytes.as_chunks();
    rest.is_empty().then(|| digests.iter().map(Digest::new))
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn key(&mut self) -> Option<KeyTerms<'a>> {
        Some(KeyTerms {
            digest: Digest::new(&self.take()?),
            id: self.take::<KEY_ID_BYTES>()?,
            plan: u32::from_le_bytes(self.take()?),
            account: self.text()?,
            account_number: self.number()? as u64,
            policy: if self.flag()? { Some(self.policy()?) } else { None },
        })
    }

    fn policy(&mut self) -> Option<PolicyTerms> {
        let (end, text) = (self.number()?, self.text()?);
        let (rate_per_second, burst) = (self.number()?, self.number()?);
        let ranges = if self.flag()? { Some(self.text()?.into()) } else { None };
        let expires = if end.is_nan() { None } else { Some((end, text.into())) };
        let limit = if burst == 0.0 { None } else { Some(Rate { rate_per_second, burst }) };
        Some(PolicyTerms { expires, ranges, limit })
    }

    fn take<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        let (taken, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*taken)
    }

    fn number(&mut self) -> Option<f64> {
        self.take().map(f64::from_le_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        self.take().map(|[flag]| flag == 1)
    }

    fn text(&mut self) -> Option<&'a str> {
        let size = usize::from(u16::from_le_bytes(self.take()?));
        let (text, rest) = self.bytes.split_at_checked(size)?;
        self.bytes = rest;
        std::str::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<u8> {
        [&u16::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat()
    }

    fn plain(account: &str) -> Vec<u8> {
        let number = 9_007_199_254_740_991f64.to_le_bytes();
        [[1; 32].as_slice(), &[2; 16], &7u32.to_le_bytes(), &text(account), &number, &[0]].concat()
    }

    fn narrow() -> Vec<u8> {
        let mut bytes = plain("größe");
        *bytes.last_mut().unwrap() = 1;
        bytes.extend(5e12f64.to_le_bytes());
        bytes.extend(text("then"));
        bytes.extend(2.5f64.to_le_bytes());
        bytes.extend(3f64.to_le_bytes());
        bytes.push(1);
        bytes.extend(text("::1, 10.0.0.0/8"));
        bytes
    }

    #[test]
    fn keys_are_read_in_order_with_all_their_terms() {
        let bytes = [plain("a"), narrow(), plain("")].concat();
        let keys: Vec<_> = keys_of(&bytes).map(Option::unwrap).collect();
        assert_eq!(keys.iter().map(|key| key.account).collect::<Vec<_>>(), ["a", "größe", ""]);
        assert!(keys.iter().all(|key| (key.id, key.plan) == ([2; 16], 7)));
        assert!(keys.iter().all(|key| key.account_number == (1 << 53) - 1));
        assert!(keys[0].policy.is_none() && keys[2].policy.is_none());
        let PolicyTerms { expires, ranges, limit } = keys[1].policy.clone().unwrap();
        assert_eq!(expires, Some((5e12, "then".into())));
        assert_eq!(ranges.as_deref(), Some("::1, 10.0.0.0/8"));
        assert_eq!(limit, Some(Rate { rate_per_second: 2.5, burst: 3.0 }));
    }

    #[test]
    fn what_a_policy_does_not_have_is_absent() {
        let mut bytes = plain("a");
        *bytes.last_mut().unwrap() = 1;
        bytes.extend(f64::NAN.to_le_bytes());
        bytes.extend(text(""));
        bytes.extend([0; 17]);
        let PolicyTerms { expires, ranges, limit } =
            keys_of(&bytes).next().unwrap().unwrap().policy.unwrap();
        assert!(expires.is_none() && ranges.is_none() && limit.is_none());
    }

    #[test]
    fn a_cut_batch_ends_with_none() {
        let whole = narrow();
        for size in 1..whole.len() {
            let bytes = [plain("a"), whole[..size].to_vec()].concat();
            let keys: Vec<_> = keys_of(&bytes).map(|key| key.is_some()).collect();
            assert_eq!(keys, [true, false], "{size}");
        }
        let mut bytes = plain("ab");
        bytes[32 + 16 + 4 + 2] = 0xff;
        assert!(keys_of(&bytes).next().unwrap().is_none());
    }

    #[test]
    fn digests_must_be_whole() {
        assert_eq!(digests_of(&[3; 64]).unwrap().count(), 2);
        assert_eq!(digests_of(&[]).unwrap().count(), 0);
        assert!(digests_of(&[3; 33]).is_none());
    }
}
