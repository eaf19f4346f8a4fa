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

use crate::decode::compute_budget::judge_heap;
use crate::decode::faults::{Fault, Refused, refuse};
use crate::decode::message::{
    V1_KEYS_MAX, judge_account_indexes, judge_duplicates, judge_end, judge_instruction_count,
    judge_key_count, judge_signature_count, note_header, note_instruction,
};
use crate::decode::scan::{Instruction, LAMPORTS_TOLD_MAX, Scan};
use crate::decode::tip::TipRule;
use crate::limits::TRANSACTION_BYTES_MAX;

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

/// Reads a whole v1 transaction, whose first byte is 0x81.
pub fn scan_v1(scan: &mut Scan<'_>, rule: &TipRule) -> Result<(), Refused> {
    let size = scan.bytes.len();
    if size > TRANSACTION_BYTES_MAX {
        return refuse(Fault::too_long, size, TRANSACTION_BYTES_MAX);
    }
    scan.reaches(KEYS_OFFSET)?;
    scan.version = 1;
    scan.message_offset = 0;
    scan.blockhash_offset = LIFETIME_OFFSET;
    scan.keys_offset = KEYS_OFFSET;
    let signature_count = scan.byte(1);
    judge_signature_count(scan, signature_count)?;
    note_header(scan, 2)?;
    let mask = scan.u32(MASK_OFFSET);
    judge_mask(mask)?;
    let instruction_count = scan.byte(40);
    judge_instruction_count(instruction_count)?;
    let key_count = scan.byte(41);
    judge_key_count(scan, key_count, V1_KEYS_MAX)?;
    let config_offset = KEYS_OFFSET + 32 * scan.key_count;
    scan.reaches(config_offset)?;
    judge_duplicates(scan)?;

    let headers_offset = scan_config(scan, mask, config_offset)?;
    let end = scan_instructions(scan, rule, headers_offset, instruction_count)?;
    scan.account_count = scan.key_count;
    scan.message_end = end;
    scan.signature_offset = end;
    // All there but the signatures: what a message is before anybody signs it.
    if end == size {
        return refuse(Fault::message_only, size, 0);
    }
    judge_end(scan, end + 64 * scan.signature_count)?;
    judge_account_indexes(scan)
}

fn judge_mask(mask: u32) -> Result<(), Refused> {
    if mask > MASK_KNOWN {
        return refuse(Fault::config_mask, mask, MASK_KNOWN);
    }
    let fee = mask & MASK_FEE;
    if fee != 0 && fee != MASK_FEE {
        return refuse(Fault::config_fee, mask, MASK_FEE);
    }
    Ok(())
}

/// Notes the configuration and answers where it ends.
fn scan_config(scan: &mut Scan<'_>, mask: u32, start: usize) -> Result<usize, Refused> {
    let fee_bytes = if mask & MASK_FEE == 0 { 0 } else { 8 };
    let words = (mask & !MASK_FEE).count_ones() as usize;
    let end = start + fee_bytes + 4 * words;
    scan.reaches(end)?;
    if mask & MASK_FEE != 0 {
        scan.fee_lamports = scan.u64(start).min(LAMPORTS_TOLD_MAX);
    }
    // The unit limit and the loaded size bind execution alone: no value of theirs is refused.
    // The heap comes last.
    if mask & MASK_HEAP != 0 {
        scan.heap_bytes = Some(scan.u32(end - 4));
    }
    judge_heap(scan)?;
    Ok(end)
}

/// Answers where the payloads end.
fn scan_instructions(
    scan: &mut Scan<'_>,
    rule: &TipRule,
    headers_offset: usize,
    count: usize,
) -> Result<usize, Refused> {
    let mut at = headers_offset + INSTRUCTION_HEADER_BYTES * count;
    scan.reaches(at)?;
    for index in 0..count {
        let header = headers_offset + INSTRUCTION_HEADER_BYTES * index;
        let account_count = scan.byte(header + 1);
        let data_size = scan.byte(header + 2) | scan.byte(header + 3) << 8;
        let data_offset = at + account_count;
        scan.reaches(data_offset + data_size)?;
        let program = scan.byte(header);
        let accounts_offset = at;
        let instruction =
            Instruction { index, program, accounts_offset, account_count, data_offset, data_size };
        note_instruction(scan, rule, instruction)?;
        at = data_offset + data_size;
    }
    Ok(at)
}
