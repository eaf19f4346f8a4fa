//! The tip: one System Program Transfer from a writable signer to a writable static account that
//! is a tip account. Its lamports count by themselves; sums of several do not.
//!
//! A transfer that comes close is remembered with what it lacks.

use crate::decode::faults::{Fault, Refused, refuse};
use crate::decode::scan::{Instruction, LAMPORTS_TOLD_MAX, Scan};

/// Which tips are taken.
pub struct TipRule {
    /// The accounts that a tip may go to.
    pub accounts: Box<[[u8; 32]]>,
    /// The smallest tip.
    pub lamports_min: i64,
}

/// System Program instruction 2. `system-interface/src/instruction.rs`, 2026-11.
const TRANSFER: u32 = 2;
/// u32 index, u64 lamports; the program ignores what follows.
const TRANSFER_BYTES: usize = 12;

/// Notes the tip, if the System Program instruction is one or comes close.
pub fn note_tip(scan: &mut Scan<'_>, rule: &TipRule, instruction: Instruction) {
    let Instruction { accounts_offset, account_count, data_offset, data_size, .. } = instruction;
    if data_size < TRANSFER_BYTES || account_count < 2 || scan.u32(data_offset) != TRANSFER {
        return;
    }
    let (from, to) = (scan.byte(accounts_offset), scan.byte(accounts_offset + 1));
    let lamports = scan.u64(data_offset + 4).min(LAMPORTS_TOLD_MAX);
    if to >= scan.key_count {
        scan.tip_miss = scan.tip_miss.or(Some((Fault::tip_in_table, lamports)));
        return;
    }
    if !rule.accounts.contains(&scan.key(to)) {
        return;
    }
    if !scan.is_writable(to) {
        scan.tip_miss = Some((Fault::tip_account_readonly, lamports));
    } else if from >= scan.signature_count || !scan.is_writable(from) {
        scan.tip_miss = Some((Fault::tip_source_unfit, lamports));
    } else {
        scan.tip_lamports = scan.tip_lamports.max(Some(lamports));
    }
}

/// Whether the largest tip reaches the minimum; otherwise the fault that helps most.
pub fn judge_tip(scan: &Scan<'_>, rule: &TipRule) -> Result<i64, Refused> {
    let minimum = rule.lamports_min;
    // At most 2^53 - 1, so it fits.
    let tip = scan.tip_lamports.map_or(-1, |lamports| lamports as i64);
    if tip >= minimum {
        return Ok(tip);
    }
    if tip >= 0 {
        return refuse(Fault::tip_too_low, tip, minimum);
    }
    match scan.tip_miss {
        Some((fault, lamports)) => refuse(fault, lamports, minimum),
        None => refuse(Fault::tip_absent, 0, minimum),
    }
}
