//! v1 transactions (SIMD-0385): the message first, the signatures at the end, no length prefixes.
//!
//!      0  0x81                      42            key[32] * A
//!      1  header (3)                              word[4] * bits of the mask
//!      4  configuration mask u32                  (program u8, accounts u8, data size u16) * I
//!      8  lifetime specifier [32]                 (account u8 *, data) * I
//!     40  I, how many instructions                signature[64] * header[0]
//!     41  A, how many keys
//!
//! Layout and rules as in Agave `agave-transaction-view` 4.2.2, 2026-11.

use crate::decode::compute_budget::validate_heap;
use crate::decode::errors::{DecodeError, Rejected, reject};
use crate::decode::limits::TRANSACTION_BYTES_MAX;
use crate::decode::message::{
    ACCOUNT_LOCKS_MAX, note_header, note_instruction, validate_account_indexes,
    validate_duplicates, validate_end, validate_instruction_count, validate_key_count,
    validate_signature_count,
};
use crate::decode::parse_state::{Instruction, LAMPORTS_TOLD_MAX, ParseState};
use crate::decode::tip::TipRule;

/// The version byte of a v1 transaction.
pub const V1_FIRST_BYTE: usize = 0x81;
pub(crate) const KEYS_OFFSET: usize = 42;
const MASK_OFFSET: usize = 4;
const LIFETIME_OFFSET: usize = 8;
const INSTRUCTION_HEADER_BYTES: usize = 4;

/// Both bits or none: the priority fee in lamports, u64.
const MASK_FEE: u32 = 0b11;
const MASK_UNIT_LIMIT: u32 = 1 << 2;
const MASK_LOADED_BYTES: u32 = 1 << 3;
const MASK_HEAP: u32 = 1 << 4;
const MASK_KNOWN: u32 = MASK_FEE | MASK_UNIT_LIMIT | MASK_LOADED_BYTES | MASK_HEAP;

/// Parses a v1 transaction, whose first byte is 0x81.
pub fn parse_v1(state: &mut ParseState<'_>, rule: &TipRule) -> Result<(), Rejected> {
    let size = state.bytes.len();
    if size > TRANSACTION_BYTES_MAX {
        return reject(DecodeError::too_long, size, TRANSACTION_BYTES_MAX);
    }
    state.reaches(KEYS_OFFSET)?;
    state.version = 1;
    state.message_offset = 0;
    state.blockhash_offset = LIFETIME_OFFSET;
    state.keys_offset = KEYS_OFFSET;
    let signature_count = state.byte(1);
    validate_signature_count(state, signature_count)?;
    note_header(state, 2)?;
    let mask = state.u32(MASK_OFFSET);
    validate_mask(mask)?;
    let instruction_count = state.byte(40);
    validate_instruction_count(instruction_count)?;
    let key_count = state.byte(41);
    validate_key_count(state, key_count, ACCOUNT_LOCKS_MAX)?;
    let config_offset = KEYS_OFFSET + 32 * state.key_count;
    state.reaches(config_offset)?;
    validate_duplicates(state)?;

    let headers_offset = parse_config(state, mask, config_offset)?;
    let end = parse_instructions(state, rule, headers_offset, instruction_count)?;
    state.account_count = state.key_count;
    state.message_end = end;
    state.signature_offset = end;
    // Everything is there but the signatures: an unsigned message.
    if end == size {
        return reject(DecodeError::message_only, size, 0);
    }
    validate_end(state, end + 64 * state.signature_count)?;
    validate_account_indexes(state)
}

fn validate_mask(mask: u32) -> Result<(), Rejected> {
    if mask > MASK_KNOWN {
        return reject(DecodeError::config_mask, mask, MASK_KNOWN);
    }
    let fee = mask & MASK_FEE;
    if fee != 0 && fee != MASK_FEE {
        return reject(DecodeError::config_fee, mask, MASK_FEE);
    }
    Ok(())
}

/// Records the configuration and returns where it ends.
fn parse_config(state: &mut ParseState<'_>, mask: u32, start: usize) -> Result<usize, Rejected> {
    let fee_bytes = if mask & MASK_FEE == 0 { 0 } else { 8 };
    let words = (mask & !MASK_FEE).count_ones() as usize;
    let end = start + fee_bytes + 4 * words;
    state.reaches(end)?;
    if mask & MASK_FEE != 0 {
        state.fee_lamports = state.u64(start).min(LAMPORTS_TOLD_MAX);
    }
    // The unit limit and the loaded size restrict only execution: no value of theirs is rejected.
    // The heap comes last.
    if mask & MASK_HEAP != 0 {
        state.heap_bytes = Some(state.u32(end - 4));
    }
    validate_heap(state)?;
    Ok(end)
}

/// Returns where the payloads end.
fn parse_instructions(
    state: &mut ParseState<'_>,
    rule: &TipRule,
    headers_offset: usize,
    count: usize,
) -> Result<usize, Rejected> {
    let mut at = headers_offset + INSTRUCTION_HEADER_BYTES * count;
    state.reaches(at)?;
    for index in 0..count {
        let header = headers_offset + INSTRUCTION_HEADER_BYTES * index;
        let account_count = state.byte(header + 1);
        let data_size = state.byte(header + 2) | state.byte(header + 3) << 8;
        let data_offset = at + account_count;
        state.reaches(data_offset + data_size)?;
        let program = state.byte(header);
        let accounts_offset = at;
        let instruction =
            Instruction { index, program, accounts_offset, account_count, data_offset, data_size };
        note_instruction(state, rule, instruction)?;
        at = data_offset + data_size;
    }
    Ok(at)
}
