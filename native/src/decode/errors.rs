//! The validation errors, as their indexes in the table of `src/core/decode-errors.ts`.
//!
//! The messages stay there. `tests/decode.rs` compares the two lists.

macro_rules! errors {
    ($($name:ident)*) => {
        /// The index of each error.
        #[allow(non_camel_case_types, missing_docs)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum DecodeError { $($name),* }

        /// The errors' names, in order.
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

errors! {
    empty
    text_json text_base64 text_base58 text_hex text_other message_only
    too_long truncated trailing_bytes version_unknown version_misplaced length_malformed
    signatures_none signatures_too_many signature_count payer_readonly
    keys_none keys_too_many keys_too_few key_duplicate
    instructions_too_many program_is_payer program_index account_index accounts_too_many
    tables_too_many table_unused lookup_duplicate lookups_too_many
    config_mask config_fee heap_size
    compute_budget_malformed compute_budget_duplicate loaded_accounts_size
    tip_absent tip_too_low tip_account_readonly tip_source_unfit tip_in_table
    signature_missing signature_wrong signature_malformed signer_key_malformed
    worker_died ring_full
}

/// Why a transaction is rejected, with the two numbers of the error's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The error.
    pub error: DecodeError,
    /// The number found; the error defines what it counts.
    pub found: i64,
    /// The number needed; the error defines what it counts.
    pub needed: i64,
}

/// A rejection, for a step of the parser to return.
#[inline]
pub fn reject<T, F: TryInto<i64>, N: TryInto<i64>>(
    error: DecodeError,
    found: F,
    needed: N,
) -> Result<T, Rejected> {
    let figure = |number: Option<i64>| number.unwrap_or(i64::MAX);
    let (found, needed) = (found.try_into().ok(), needed.try_into().ok());
    Err(Rejected { error, found: figure(found), needed: figure(needed) })
}
