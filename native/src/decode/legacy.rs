//! Legacy and v0 transactions: signatures first, then the message.
//!
//!     count sig[64]* message
//!     message = [0x80] header(3) count key[32]* blockhash[32] count instruction* [count table*]
//!
//! Counts are compact-u16, read as leaders read them: the shortest form only, one byte for
//! signatures, keys and tables, at most two elsewhere (Agave `agave-transaction-view`, 2026-11).

use crate::decode::compute_budget::validate_compute_budget;
use crate::decode::errors::{DecodeError, Rejected, reject};
use crate::decode::message::{
    ACCOUNT_LOCKS_MAX, note_header, note_instruction, validate_account_indexes,
    validate_duplicates, validate_end, validate_instruction_count, validate_key_count,
    validate_signature_count,
};
use crate::decode::parse_state::{Instruction, ParseState};
use crate::decode::tip::TipRule;

/// Maximum size of a legacy or v0 transaction, in bytes. Agave `agave-transaction-view`, 2026-11.
pub const LEGACY_TRANSACTION_BYTES_MAX: usize = 1232;
/// Maximum static account keys of a legacy or v0 transaction. Same source.
const LEGACY_KEYS_MAX: usize = 38;
/// Maximum accounts of one instruction. SIMD-0406, 2026-11.
const INSTRUCTION_ACCOUNTS_MAX: usize = 255;
/// Maximum address lookup tables that fit into a packet. `agave-transaction-view`, 2026-11.
const LOOKUP_TABLES_MAX: usize = 31;

const VERSION_BIT: usize = 0x80;

/// Parses a legacy or v0 transaction, whose first byte is below 0x80.
pub fn parse_legacy_or_v0(state: &mut ParseState<'_>, rule: &TipRule) -> Result<(), Rejected> {
    if state.bytes.len() > LEGACY_TRANSACTION_BYTES_MAX {
        return reject(DecodeError::too_long, state.bytes.len(), LEGACY_TRANSACTION_BYTES_MAX);
    }
    let count = state.byte(0);
    validate_signature_count(state, count)?;
    state.signature_offset = 1;
    parse_message(state, rule, 1 + 64 * count)
}

/// Parses the message from `start` to the end of the bytes; the signature count is known.
pub fn parse_message(
    state: &mut ParseState<'_>,
    rule: &TipRule,
    start: usize,
) -> Result<(), Rejected> {
    // The shortest start: version, header and the key count.
    state.reaches(start + 4)?;
    state.message_offset = start;
    let mut at = start;
    let prefix = state.byte(start);
    if prefix >= VERSION_BIT {
        match prefix - VERSION_BIT {
            0 => state.version = 0,
            1 => return reject(DecodeError::version_misplaced, 1, 0),
            version => return reject(DecodeError::version_unknown, version, 0),
        }
        at += 1;
        state.reaches(at + 4)?;
    }
    let required = state.byte(at);
    if required != state.signature_count {
        return reject(DecodeError::signature_count, state.signature_count, required);
    }
    note_header(state, at + 1)?;
    // A count of two bytes exceeds the maximum, so the first byte is sufficient.
    let key_count = state.byte(at + 3);
    validate_key_count(state, key_count, LEGACY_KEYS_MAX)?;
    state.keys_offset = at + 4;
    state.blockhash_offset = state.keys_offset + 32 * state.key_count;
    // The blockhash and the instruction count.
    state.reaches(state.blockhash_offset + 33)?;
    validate_duplicates(state)?;

    let mut end = parse_instructions(state, rule, state.blockhash_offset + 32)?;
    state.account_count = state.key_count;
    if state.version == 0 {
        end = parse_tables(state, end)?;
    }
    state.message_end = end;
    validate_end(state, end)?;
    validate_account_indexes(state)?;
    validate_compute_budget(state)
}

/// Returns where the instructions end.
fn parse_instructions(
    state: &mut ParseState<'_>,
    rule: &TipRule,
    start: usize,
) -> Result<usize, Rejected> {
    let (count, mut at) = length(state, start)?;
    validate_instruction_count(count)?;
    for index in 0..count {
        state.reaches(at + 3)?;
        let program = state.byte(at);
        let (account_count, accounts_offset) = length(state, at + 1)?;
        if account_count > INSTRUCTION_ACCOUNTS_MAX {
            return reject(DecodeError::accounts_too_many, account_count, INSTRUCTION_ACCOUNTS_MAX);
        }
        let (data_size, data_offset) = length(state, accounts_offset + account_count)?;
        at = data_offset + data_size;
        state.reaches(at)?;
        let instruction =
            Instruction { index, program, accounts_offset, account_count, data_offset, data_size };
        note_instruction(state, rule, instruction)?;
    }
    Ok(at)
}

/// Adds the looked-up accounts; returns where the lookup tables end.
fn parse_tables(state: &mut ParseState<'_>, start: usize) -> Result<usize, Rejected> {
    state.reaches(start + 1)?;
    // A count of two bytes exceeds the maximum, so the first byte is sufficient.
    let count = state.byte(start);
    if count > LOOKUP_TABLES_MAX {
        return reject(DecodeError::tables_too_many, count, LOOKUP_TABLES_MAX);
    }
    let mut at = start + 1;
    for index in 0..count {
        let mut looked_up = [false; 256];
        let (writable, start) = length(state, at + 32)?;
        at = note_lookups(state, index, start, writable, &mut looked_up)?;
        let (readonly, start) = length(state, at)?;
        at = note_lookups(state, index, start, readonly, &mut looked_up)?;
        if writable + readonly == 0 {
            return reject(DecodeError::table_unused, index, 1);
        }
        state.account_count += writable + readonly;
    }
    if state.account_count > ACCOUNT_LOCKS_MAX {
        return reject(DecodeError::lookups_too_many, state.account_count, ACCOUNT_LOCKS_MAX);
    }
    Ok(at)
}

/// Notes the accounts that a table looks up, `count` bytes from `start` on, and returns where they
/// end. Leaders drop what loads an account twice. Agave `accounts-db/src/account_locks.rs`,
/// 2026-11.
fn note_lookups(
    state: &ParseState<'_>,
    table: usize,
    start: usize,
    count: usize,
    looked_up: &mut [bool; 256],
) -> Result<usize, Rejected> {
    state.reaches(start + count)?;
    for at in start..start + count {
        let account = state.byte(at);
        if looked_up.get_mut(account).is_some_and(|seen| std::mem::replace(seen, true)) {
            return reject(DecodeError::lookup_duplicate, table, account);
        }
    }
    Ok(start + count)
}

/// The compact-u16 at `at`, in at most two bytes, and where it ends.
#[inline]
fn length(state: &ParseState<'_>, at: usize) -> Result<(usize, usize), Rejected> {
    state.reaches(at + 1)?;
    let low = state.byte(at);
    if low < 0x80 {
        return Ok((low, at + 1));
    }
    state.reaches(at + 2)?;
    let high = state.byte(at + 1);
    if high > 0 && high < 0x80 {
        return Ok((low & 0x7f | high << 7, at + 2));
    }
    reject(DecodeError::length_malformed, at, 0)
}
