//! Hot path: the account number of each key slot, which ranks a transaction: `Offer`. The main thread
//! writes it before it grants the key (`src/native-ingress/ingress-thread.ts`).

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::submit::rate_limit::CACHED_KEYS_MAX;
use crate::sync::shared_memory::{AtomicSlice, Memory};

/// Size of the shared memory: one f64 for each key slot.
pub const KEY_ACCOUNTS_BYTES: usize = CACHED_KEYS_MAX * size_of::<f64>();

/// An ingress thread's view of the account numbers.
pub struct KeyAccounts {
    numbers: AtomicSlice<AtomicU64>,
}

impl KeyAccounts {
    /// None if the memory has another size.
    #[must_use]
    pub fn open(memory: &Memory) -> Option<Self> {
        if memory.size() != KEY_ACCOUNTS_BYTES {
            return None;
        }
        Some(Self { numbers: memory.atomics(0, CACHED_KEYS_MAX)? })
    }

    /// The account of the key in this slot; 0 for an invalid slot.
    #[must_use]
    pub fn account_of(&self, key_slot: u32) -> u64 {
        let number = usize::try_from(key_slot).ok().and_then(|slot| self.numbers.get(slot));
        number.map_or(0, |number| f64::from_bits(number.load(Relaxed)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    use super::{CACHED_KEYS_MAX, KEY_ACCOUNTS_BYTES, KeyAccounts};
    use crate::sync::shared_memory::Memory;

    #[test]
    fn a_key_has_the_account_that_was_written_for_its_slot() {
        let memory = Memory::fresh(KEY_ACCOUNTS_BYTES);
        let accounts = KeyAccounts::open(&memory).unwrap();
        let last = CACHED_KEYS_MAX - 1;
        let numbers = memory.atomics::<AtomicU64>(0, CACHED_KEYS_MAX).unwrap();
        numbers.get(last).unwrap().store(9_007_199_254_740_991.0_f64.to_bits(), Relaxed);
        let last = u32::try_from(last).unwrap();
        assert_eq!(accounts.account_of(last), (1 << 53) - 1);
        assert_eq!((accounts.account_of(0), accounts.account_of(last + 1)), (0, 0));
        assert!(KeyAccounts::open(&Memory::fresh(KEY_ACCOUNTS_BYTES - 8)).is_none());
    }
}
