//! Header, account keys and instructions: the rules that are the same in every version.
//!
//! What is refused here is what Agave's `agave-transaction-view` 4.2.2 and its lock validation
//! refuse (2026-11), judged in the order of the bytes. Account indexes are the exception: how many
//! accounts there are is known only behind the instructions, so the highest is kept until then.

use crate::decode::compute_budget::{Program, note_compute_budget, program};
use crate::decode::faults::{Fault, Refused, refuse};
use crate::decode::scan::{Instruction, Scan};
use crate::decode::tip::{TipRule, note_tip};

/// Most signatures of a transaction. `agave-transaction-view` 4.2.2, 2026-11.
pub const SIGNATURES_MAX: usize = 12;
/// Most account keys of a v1 transaction. Same source.
pub const V1_KEYS_MAX: usize = 64;
/// Most top-level instructions. SIMD-0160, 2026-11.
const INSTRUCTIONS_MAX: usize = 64;

/// Notes how many signatures there are.
pub fn judge_signature_count(scan: &mut Scan<'_>, count: usize) -> Result<(), Refused> {
    scan.signature_count = count;
    if count == 0 {
        return refuse(Fault::signatures_none, 0, 1);
    }
    if count > SIGNATURES_MAX {
        return refuse(Fault::signatures_too_many, count, SIGNATURES_MAX);
    }
    Ok(())
}

/// The header's second and third byte, which stand at `at`; the first is the signature count.
pub fn note_header(scan: &mut Scan<'_>, at: usize) -> Result<(), Refused> {
    scan.readonly_signers = scan.byte(at);
    scan.readonly_others = scan.byte(at + 1);
    if scan.readonly_signers < scan.signature_count {
        return Ok(());
    }
    refuse(Fault::payer_readonly, scan.readonly_signers, scan.signature_count)
}

/// Notes how many static keys there are.
pub fn judge_key_count(scan: &mut Scan<'_>, count: usize, most: usize) -> Result<(), Refused> {
    scan.key_count = count;
    if count == 0 {
        return refuse(Fault::keys_none, 0, 1);
    }
    if count > most {
        return refuse(Fault::keys_too_many, count, most);
    }
    let counted = scan.signature_count + scan.readonly_others;
    if counted > count {
        return refuse(Fault::keys_too_few, count, counted);
    }
    Ok(())
}

/// No key may stand twice; all keys must lie inside the bytes.
pub fn judge_duplicates(scan: &Scan<'_>) -> Result<(), Refused> {
    let mut words = [0; V1_KEYS_MAX];
    for (i, slot) in (0..scan.key_count).zip(0..V1_KEYS_MAX) {
        let word = scan.u64(scan.keys_offset + 32 * i);
        for (j, earlier) in words.iter().enumerate().take(slot) {
            if *earlier == word && scan.key(i) == scan.key(j) {
                return refuse(Fault::key_duplicate, i, j);
            }
        }
        if let Some(slot) = words.get_mut(slot) {
            *slot = word;
        }
    }
    Ok(())
}

/// Whether so many instructions may stand in one transaction.
pub fn judge_instruction_count(count: usize) -> Result<(), Refused> {
    if count <= INSTRUCTIONS_MAX {
        return Ok(());
    }
    refuse(Fault::instructions_too_many, count, INSTRUCTIONS_MAX)
}

/// Notes an instruction, all of which lies inside the bytes.
pub fn note_instruction(
    scan: &mut Scan<'_>,
    rule: &TipRule,
    instruction: Instruction,
) -> Result<(), Refused> {
    let Instruction { index, program: called, accounts_offset, account_count, .. } = instruction;
    if called == 0 {
        return refuse(Fault::program_is_payer, index, 1);
    }
    if called >= scan.key_count {
        return refuse(Fault::program_index, called, scan.key_count);
    }
    let named = scan.bytes.get(accounts_offset..accounts_offset + account_count);
    let highest = named.and_then(|indexes| indexes.iter().max());
    let end = highest.map_or(0, |index| usize::from(*index) + 1);
    scan.account_index_end = scan.account_index_end.max(end);

    let kind = program(&scan.key(called));
    match kind {
        Program::Other => scan.other_calls += 1,
        _ => scan.builtin_calls += 1,
    }
    if kind == Program::System {
        if index == 0 {
            note_nonce(scan, instruction);
        }
        note_tip(scan, rule, instruction);
    } else if kind == Program::ComputeBudget && scan.version != 1 {
        return note_compute_budget(scan, instruction);
    }
    Ok(())
}

/// System Program instruction AdvanceNonceAccount. `system-interface`, 2026-11.
const ADVANCE_NONCE: u32 = 4;

/// A transaction whose first instruction advances a nonce holds that nonce for its blockhash. The
/// nonce account must be a writable static key. Agave `svm-transaction/src/svm_message.rs`,
/// 2026-11.
fn note_nonce(scan: &mut Scan<'_>, instruction: Instruction) {
    if instruction.data_size < 4 || instruction.account_count == 0 {
        return;
    }
    if scan.u32(instruction.data_offset) == ADVANCE_NONCE {
        let nonce = scan.byte(instruction.accounts_offset);
        scan.durable_nonce = nonce < scan.key_count && scan.is_writable(nonce);
    }
}

/// Whether every account index names an account.
pub fn judge_account_indexes(scan: &Scan<'_>) -> Result<(), Refused> {
    if scan.account_index_end <= scan.account_count {
        return Ok(());
    }
    refuse(Fault::account_index, scan.account_index_end - 1, scan.account_count)
}

/// Whether the transaction ends at `end`, where its last part does.
pub fn judge_end(scan: &Scan<'_>, end: usize) -> Result<(), Refused> {
    if end < scan.bytes.len() {
        return refuse(Fault::trailing_bytes, scan.bytes.len(), end);
    }
    scan.reaches(end)
}
