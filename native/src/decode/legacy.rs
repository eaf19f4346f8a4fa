//! Legacy and v0 transactions: signatures first, then the message.
//!
//!     count sig[64]* message
//!     message = [0x80] header(3) count key[32]* blockhash[32] count instruction* [count table*]
//!
//! Counts are compact-u16, read as leaders read them: the shortest form only, one byte for
//! signatures, keys and tables, at most two elsewhere (Agave `agave-transaction-view`, 2026-11).

use crate::decode::compute_budget::judge_compute_budget;
use crate::decode::faults::{Fault, Refused, refuse};
use crate::decode::message::{
    judge_account_indexes, judge_duplicates, judge_end, judge_instruction_count, judge_key_count,
    judge_signature_count, note_header, note_instruction,
};
use crate::decode::scan::{Instruction, Scan};
use crate::decode::tip::TipRule;

/// Largest legacy or v0 transaction, in bytes. Agave `agave-transaction-view`, 2026-11.
pub const LEGACY_TRANSACTION_BYTES_MAX: usize = 1232;
/// Most static account keys of a legacy or v0 transaction. Same source.
const LEGACY_KEYS_MAX: usize = 38;
/// Most accounts of one instruction. SIMD-0406, 2026-11.
const INSTRUCTION_ACCOUNTS_MAX: usize = 255;
/// Most address lookup tables that fit into a packet. `agave-transaction-view`, 2026-11.
const LOOKUP_TABLES_MAX: usize = 31;
/// Most accounts, static and looked up: an index is one byte. Same source.
const ACCOUNTS_MAX: usize = 256;

const VERSION_BIT: usize = 0x80;

/// Reads a whole legacy or v0 transaction, whose first byte is below 0x80.
pub fn scan_legacy_or_v0(scan: &mut Scan<'_>, rule: &TipRule) -> Result<(), Refused> {
    if scan.bytes.len() > LEGACY_TRANSACTION_BYTES_MAX {
        return refuse(Fault::too_long, scan.bytes.len(), LEGACY_TRANSACTION_BYTES_MAX);
    }
    let count = scan.byte(0);
    judge_signature_count(scan, count)?;
    scan.signature_offset = 1;
    scan_message(scan, rule, 1 + 64 * count)
}

/// Reads the message from `start` to the end of the bytes.
fn scan_message(scan: &mut Scan<'_>, rule: &TipRule, start: usize) -> Result<(), Refused> {
    // The shortest start: version, header and the key count.
    scan.reaches(start + 4)?;
    scan.message_offset = start;
    let mut at = start;
    let prefix = scan.byte(start);
    if prefix >= VERSION_BIT {
        match prefix - VERSION_BIT {
            0 => scan.version = 0,
            1 => return refuse(Fault::version_misplaced, 1, 0),
            version => return refuse(Fault::version_unknown, version, 0),
        }
        at += 1;
        scan.reaches(at + 4)?;
    }
    let required = scan.byte(at);
    if required != scan.signature_count {
        return refuse(Fault::signature_count, scan.signature_count, required);
    }
    note_header(scan, at + 1)?;
    // A count of two bytes is above the most there can be, so its first byte tells enough.
    let key_count = scan.byte(at + 3);
    judge_key_count(scan, key_count, LEGACY_KEYS_MAX)?;
    scan.keys_offset = at + 4;
    scan.blockhash_offset = scan.keys_offset + 32 * scan.key_count;
    // The blockhash and the instruction count.
    scan.reaches(scan.blockhash_offset + 33)?;
    judge_duplicates(scan)?;

    let mut end = scan_instructions(scan, rule, scan.blockhash_offset + 32)?;
    scan.account_count = scan.key_count;
    if scan.version == 0 {
        end = scan_tables(scan, end)?;
    }
    scan.message_end = end;
    judge_end(scan, end)?;
    judge_account_indexes(scan)?;
    judge_compute_budget(scan)
}

/// Answers where the instructions end.
fn scan_instructions(scan: &mut Scan<'_>, rule: &TipRule, start: usize) -> Result<usize, Refused> {
    let (count, mut at) = length(scan, start)?;
    judge_instruction_count(count)?;
    for index in 0..count {
        scan.reaches(at + 3)?;
        let program = scan.byte(at);
        let (account_count, accounts_offset) = length(scan, at + 1)?;
        if account_count > INSTRUCTION_ACCOUNTS_MAX {
            return refuse(Fault::accounts_too_many, account_count, INSTRUCTION_ACCOUNTS_MAX);
        }
        let (data_size, data_offset) = length(scan, accounts_offset + account_count)?;
        at = data_offset + data_size;
        scan.reaches(at)?;
        let instruction =
            Instruction { index, program, accounts_offset, account_count, data_offset, data_size };
        note_instruction(scan, rule, instruction)?;
    }
    Ok(at)
}

/// Answers where the lookup tables end, and adds what they look up.
fn scan_tables(scan: &mut Scan<'_>, start: usize) -> Result<usize, Refused> {
    scan.reaches(start + 1)?;
    // A count of two bytes is above the most there can be, so its first byte tells enough.
    let count = scan.byte(start);
    if count > LOOKUP_TABLES_MAX {
        return refuse(Fault::tables_too_many, count, LOOKUP_TABLES_MAX);
    }
    let mut at = start + 1;
    for index in 0..count {
        let (writable, writable_offset) = length(scan, at + 32)?;
        let (readonly, readonly_offset) = length(scan, writable_offset + writable)?;
        at = readonly_offset + readonly;
        scan.reaches(at)?;
        if writable + readonly == 0 {
            return refuse(Fault::table_unused, index, 1);
        }
        scan.account_count += writable + readonly;
    }
    if scan.account_count > ACCOUNTS_MAX {
        return refuse(Fault::lookups_too_many, scan.account_count, ACCOUNTS_MAX);
    }
    Ok(at)
}

/// The compact-u16 at `at`, in at most two bytes, and where it ends.
#[inline]
fn length(scan: &Scan<'_>, at: usize) -> Result<(usize, usize), Refused> {
    scan.reaches(at + 1)?;
    let low = scan.byte(at);
    if low < 0x80 {
        return Ok((low, at + 1));
    }
    scan.reaches(at + 2)?;
    let high = scan.byte(at + 1);
    if high > 0 && high < 0x80 {
        return Ok((low & 0x7f | high << 7, at + 2));
    }
    refuse(Fault::length_malformed, at, 0)
}
