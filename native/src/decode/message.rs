//! Header, account keys and instructions: the rules that are the same in every version.
//!
//! Rejects what Agave's `agave-transaction-view` 4.2.2 and its lock validation reject (2026-11), in
//! the order of the bytes. Account indexes are the exception: the number of accounts is known only
//! after the instructions, so the highest index is kept until then.

use crate::decode::compute_budget::{Program, note_compute_budget, program};
use crate::decode::errors::{DecodeError, Rejected, reject};
use crate::decode::parse_state::{Instruction, ParseState};
use crate::decode::tip::{TipRule, note_tip};

/// Maximum signatures of a transaction. `agave-transaction-view` 4.2.2, 2026-11.
pub const SIGNATURES_MAX: usize = 12;
/// Maximum accounts of a transaction of any version, static and looked up: leaders drop one that
/// locks more. Agave `Bank::get_transaction_account_lock_limit`, 2026-11: 128 once a cluster
/// activates `increase_tx_account_lock_limit`, which mainnet has not.
pub const ACCOUNT_LOCKS_MAX: usize = 64;
/// Maximum top-level instructions. SIMD-0160, 2026-11.
const INSTRUCTIONS_MAX: usize = 64;

/// Validates and records the number of signatures.
pub fn validate_signature_count(state: &mut ParseState<'_>, count: usize) -> Result<(), Rejected> {
    state.signature_count = count;
    if count == 0 {
        return reject(DecodeError::signatures_none, 0, 1);
    }
    if count > SIGNATURES_MAX {
        return reject(DecodeError::signatures_too_many, count, SIGNATURES_MAX);
    }
    Ok(())
}

/// Records the header's second and third byte, at `at`; the first is the signature count.
pub fn note_header(state: &mut ParseState<'_>, at: usize) -> Result<(), Rejected> {
    state.readonly_signers = state.byte(at);
    state.readonly_others = state.byte(at + 1);
    if state.readonly_signers < state.signature_count {
        return Ok(());
    }
    reject(DecodeError::payer_readonly, state.readonly_signers, state.signature_count)
}

/// Validates and records the number of static keys.
pub fn validate_key_count(
    state: &mut ParseState<'_>,
    count: usize,
    most: usize,
) -> Result<(), Rejected> {
    state.key_count = count;
    if count == 0 {
        return reject(DecodeError::keys_none, 0, 1);
    }
    if count > most {
        return reject(DecodeError::keys_too_many, count, most);
    }
    let counted = state.signature_count + state.readonly_others;
    if counted > count {
        return reject(DecodeError::keys_too_few, count, counted);
    }
    Ok(())
}

/// Rejects duplicate keys, and keys that lie outside the bytes.
pub fn validate_duplicates(state: &ParseState<'_>) -> Result<(), Rejected> {
    let mut words = [0; ACCOUNT_LOCKS_MAX];
    for (i, slot) in (0..state.key_count).zip(0..ACCOUNT_LOCKS_MAX) {
        let word = state.u64(state.keys_offset + 32 * i);
        for (j, earlier) in words.iter().enumerate().take(slot) {
            if *earlier == word && state.key(i) == state.key(j) {
                return reject(DecodeError::key_duplicate, i, j);
            }
        }
        if let Some(slot) = words.get_mut(slot) {
            *slot = word;
        }
    }
    Ok(())
}

/// Whether a transaction may have `count` instructions.
pub fn validate_instruction_count(count: usize) -> Result<(), Rejected> {
    if count <= INSTRUCTIONS_MAX {
        return Ok(());
    }
    reject(DecodeError::instructions_too_many, count, INSTRUCTIONS_MAX)
}

/// Records an instruction, which lies completely inside the bytes.
pub fn note_instruction(
    state: &mut ParseState<'_>,
    rule: &TipRule,
    instruction: Instruction,
) -> Result<(), Rejected> {
    let Instruction { index, program: called, accounts_offset, account_count, .. } = instruction;
    if called == 0 {
        return reject(DecodeError::program_is_payer, index, 1);
    }
    if called >= state.key_count {
        return reject(DecodeError::program_index, called, state.key_count);
    }
    let named = state.bytes.get(accounts_offset..accounts_offset + account_count);
    let highest = named.and_then(|indexes| indexes.iter().max());
    let end = highest.map_or(0, |index| usize::from(*index) + 1);
    state.account_index_end = state.account_index_end.max(end);

    let kind = program(&state.key(called));
    match kind {
        Program::Other => state.other_calls += 1,
        _ => state.builtin_calls += 1,
    }
    if kind == Program::System {
        if index == 0 {
            note_nonce(state, instruction);
        }
        note_tip(state, rule, instruction);
    } else if kind == Program::ComputeBudget && state.version != 1 {
        return note_compute_budget(state, instruction);
    }
    Ok(())
}

/// System Program instruction AdvanceNonceAccount. `system-interface`, 2026-11.
const ADVANCE_NONCE: u32 = 4;

/// A transaction whose first instruction advances a nonce has that nonce as its blockhash. The
/// nonce account must be a writable static key. Agave `svm-transaction/src/svm_message.rs`,
/// 2026-11.
fn note_nonce(state: &mut ParseState<'_>, instruction: Instruction) {
    if instruction.data_size < 4 || instruction.account_count == 0 {
        return;
    }
    if state.u32(instruction.data_offset) == ADVANCE_NONCE {
        let nonce = state.byte(instruction.accounts_offset);
        state.durable_nonce = nonce < state.key_count && state.is_writable(nonce);
    }
}

/// Whether every account index names an account.
pub fn validate_account_indexes(state: &ParseState<'_>) -> Result<(), Rejected> {
    if state.account_index_end <= state.account_count {
        return Ok(());
    }
    reject(DecodeError::account_index, state.account_index_end - 1, state.account_count)
}

/// Whether the transaction ends at `end`, where its last part does.
pub fn validate_end(state: &ParseState<'_>, end: usize) -> Result<(), Rejected> {
    if end < state.bytes.len() {
        return reject(DecodeError::trailing_bytes, state.bytes.len(), end);
    }
    state.reaches(end)
}
