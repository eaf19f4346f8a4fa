//! The parser's state while it reads a transaction once from front to back.
//!
//! The steps of the parser share this record and allocate nothing. A step that finds an error
//! returns it, and the first error found is the one reported.

use crate::decode::errors::{DecodeError, Rejected, reject};

/// Largest amount that JavaScript represents exactly; a larger one is reported as this.
pub const LAMPORTS_TOLD_MAX: u64 = (1 << 53) - 1;

/// The data read so far.
pub struct ParseState<'a> {
    /// The complete transaction.
    pub bytes: &'a [u8],
    /// -1 legacy, 0 or 1.
    pub version: i8,
    /// Where the first signature starts.
    pub signature_offset: usize,
    /// The number of signatures.
    pub signature_count: usize,
    /// Where the signed bytes start.
    pub message_offset: usize,
    /// One past the last signed byte.
    pub message_end: usize,
    /// Signers that the header marks readonly.
    pub readonly_signers: usize,
    /// Other static accounts that the header marks readonly.
    pub readonly_others: usize,
    /// Where the static keys start.
    pub keys_offset: usize,
    /// The number of static keys.
    pub key_count: usize,
    /// Where the recent blockhash or durable nonce starts.
    pub blockhash_offset: usize,
    /// Static keys and, in v0, the accounts from lookup tables.
    pub account_count: usize,
    /// One above the highest account index of any instruction; 0 for none.
    pub account_index_end: usize,
    /// Whether the first instruction advances a nonce.
    pub durable_nonce: bool,
    /// The largest transfer that qualifies as a tip, whatever its size, in lamports.
    pub tip_lamports: Option<u64>,
    /// A transfer that fails to be a tip: why, and its lamports.
    pub tip_miss: Option<(DecodeError, u64)>,
    /// The limit set by ComputeBudget instructions or the v1 configuration.
    pub unit_limit: Option<u32>,
    /// The price of a compute unit, in micro-lamports.
    pub unit_price: Option<u64>,
    /// Requested heap, in bytes.
    pub heap_bytes: Option<u32>,
    /// Limit of loaded account bytes.
    pub loaded_bytes: Option<u32>,
    /// Instructions that call a built-in program.
    pub builtin_calls: u32,
    /// Instructions that call any other.
    pub other_calls: u32,
    /// The v1 configuration's priority fee.
    pub fee_lamports: u64,
}

impl<'a> ParseState<'a> {
    /// The state before anything is read.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            version: -1,
            signature_offset: 0,
            signature_count: 0,
            message_offset: 0,
            message_end: 0,
            readonly_signers: 0,
            readonly_others: 0,
            keys_offset: 0,
            key_count: 0,
            blockhash_offset: 0,
            account_count: 0,
            account_index_end: 0,
            durable_nonce: false,
            tip_lamports: None,
            tip_miss: None,
            unit_limit: None,
            unit_price: None,
            heap_bytes: None,
            loaded_bytes: None,
            builtin_calls: 0,
            other_calls: 0,
            fee_lamports: 0,
        }
    }

    /// The byte at `at`; the caller has checked the bounds.
    #[inline]
    #[must_use]
    pub fn byte(&self, at: usize) -> usize {
        usize::from(self.bytes.get(at).copied().unwrap_or(0))
    }

    /// The unsigned 32-bit number at `at`, little-endian.
    #[inline]
    #[must_use]
    pub fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    /// The unsigned 64-bit number at `at`, little-endian.
    #[inline]
    #[must_use]
    pub fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    /// The account key with this index.
    #[inline]
    #[must_use]
    pub fn key(&self, index: usize) -> [u8; 32] {
        self.array(self.keys_offset + 32 * index)
    }

    #[inline]
    fn array<const SIZE: usize>(&self, at: usize) -> [u8; SIZE] {
        let part = self.bytes.get(at..).and_then(|rest| rest.first_chunk::<SIZE>());
        part.copied().unwrap_or([0; SIZE])
    }

    /// Whether the bytes reach to `end`.
    #[inline]
    pub fn reaches(&self, end: usize) -> Result<(), Rejected> {
        if end <= self.bytes.len() {
            return Ok(());
        }
        reject(DecodeError::truncated, self.bytes.len(), end)
    }

    /// Whether the message marks a static account writable.
    #[inline]
    #[must_use]
    pub fn is_writable(&self, index: usize) -> bool {
        if index < self.signature_count {
            return index + self.readonly_signers < self.signature_count;
        }
        index + self.readonly_others < self.key_count
    }
}

/// The location of an instruction's parts.
#[derive(Clone, Copy)]
pub struct Instruction {
    /// Its index among the instructions.
    pub index: usize,
    /// The program's account index.
    pub program: usize,
    /// Where its account indexes start.
    pub accounts_offset: usize,
    /// The number of its accounts.
    pub account_count: usize,
    /// Where its data starts.
    pub data_offset: usize,
    /// The size of its data.
    pub data_size: usize,
}
