//! The tip: one System Program Transfer from a writable signer to a writable static account that is
//! a tip account. Transfers count separately, not as a sum.
//!
//! A transfer that comes close is remembered with what it lacks.

use crate::decode::errors::{DecodeError, Rejected, reject};
use crate::decode::parse_state::{Instruction, LAMPORTS_TOLD_MAX, ParseState};

/// Which tips are accepted.
pub struct TipRule {
    /// The tip accounts.
    pub accounts: Box<[[u8; 32]]>,
    /// The smallest tip.
    pub lamports_min: i64,
}

/// System Program instruction 2. `system-interface/src/instruction.rs`, 2026-11.
const TRANSFER: u32 = 2;
/// u32 index, u64 lamports; the program ignores what follows.
const TRANSFER_BYTES: usize = 12;

/// Records the tip, if the System Program instruction is one or comes close.
pub fn note_tip(state: &mut ParseState<'_>, rule: &TipRule, instruction: Instruction) {
    let Instruction { accounts_offset, account_count, data_offset, data_size, .. } = instruction;
    if data_size < TRANSFER_BYTES || account_count < 2 || state.u32(data_offset) != TRANSFER {
        return;
    }
    let (from, to) = (state.byte(accounts_offset), state.byte(accounts_offset + 1));
    let lamports = state.u64(data_offset + 4).min(LAMPORTS_TOLD_MAX);
    if to >= state.key_count {
        state.tip_miss = state.tip_miss.or(Some((DecodeError::tip_in_table, lamports)));
        return;
    }
    if !rule.accounts.contains(&state.key(to)) {
        return;
    }
    if !state.is_writable(to) {
        state.tip_miss = Some((DecodeError::tip_account_readonly, lamports));
    } else if from >= state.signature_count || !state.is_writable(from) {
        state.tip_miss = Some((DecodeError::tip_source_unfit, lamports));
    } else {
        state.tip_lamports = state.tip_lamports.max(Some(lamports));
    }
}

/// Whether the largest tip reaches the minimum; otherwise the most helpful error.
pub fn validate_tip(state: &ParseState<'_>, rule: &TipRule) -> Result<i64, Rejected> {
    let minimum = rule.lamports_min;
    // At most 2^53 - 1, so it fits.
    let tip = state.tip_lamports.map_or(-1, |lamports| lamports as i64);
    if tip >= minimum {
        return Ok(tip);
    }
    if tip >= 0 {
        return reject(DecodeError::tip_too_low, tip, minimum);
    }
    match state.tip_miss {
        Some((error, lamports)) => reject(error, lamports, minimum),
        None => reject(DecodeError::tip_absent, 0, minimum),
    }
}
