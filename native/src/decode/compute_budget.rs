//! Compute budget: the settings of a transaction, and its fee above the base fee.
//!
//! Leaders drop a legacy or v0 transaction with a malformed or repeated ComputeBudget instruction;
//! in v1 the settings are in the message's configuration and such instructions are ignored.

use crate::decode::base58::LETTERS;
use crate::decode::errors::{DecodeError, Rejected, reject};
use crate::decode::parse_state::{Instruction, LAMPORTS_TOLD_MAX, ParseState};

/// The decoder's classes of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Any deployed program.
    Other,
    /// Built in, with no further meaning to the decoder.
    Builtin,
    /// Moves lamports and advances nonces.
    System,
    /// Sets limits and prices.
    ComputeBudget,
}

/// Built-in programs by cost. Agave `builtins-default-costs/src/lib.rs`, 2026-11.
const BUILTINS: [([u8; 32], Program); 9] = [
    (address("11111111111111111111111111111111"), Program::System),
    (address("ComputeBudget111111111111111111111111111111"), Program::ComputeBudget),
    (address("Vote111111111111111111111111111111111111111"), Program::Builtin),
    (address("BPFLoader1111111111111111111111111111111111"), Program::Builtin),
    (address("BPFLoader2111111111111111111111111111111111"), Program::Builtin),
    (address("BPFLoaderUpgradeab1e11111111111111111111111"), Program::Builtin),
    (address("LoaderV411111111111111111111111111111111111"), Program::Builtin),
    (address("KeccakSecp256k11111111111111111111111111111"), Program::Builtin),
    (address("Ed25519SigVerify111111111111111111111111111"), Program::Builtin),
];

/// The 32 bytes of an address, computed at compile time; an invalid one is a compile error.
#[allow(clippy::indexing_slicing)]
const fn address(text: &str) -> [u8; 32] {
    let mut out = [0; 32];
    let mut at = 0;
    while at < text.len() {
        let mut carry = 0;
        while LETTERS[carry as usize] != text.as_bytes()[at] {
            carry += 1;
        }
        let mut i = out.len();
        while i > 0 {
            i -= 1;
            carry += out[i] as u32 * 58;
            out[i] = carry as u8;
            carry >>= 8;
        }
        assert!(carry == 0, "longer than 32 bytes");
        at += 1;
    }
    out
}

/// The class of the program with this key.
#[must_use]
pub fn program(key: &[u8; 32]) -> Program {
    for (builtin, kind) in &BUILTINS {
        if builtin == key {
            return *kind;
        }
    }
    Program::Other
}

/// ComputeBudget instruction tags. Crate `solana-compute-budget-interface` 3.0.0, 2026-11.
const REQUEST_HEAP_FRAME: usize = 1;
const SET_UNIT_LIMIT: usize = 2;
const SET_UNIT_PRICE: usize = 3;
const SET_LOADED_BYTES: usize = 4;

/// Records one ComputeBudget instruction; bytes after its value are ignored, as leaders do.
pub fn note_compute_budget(
    state: &mut ParseState<'_>,
    instruction: Instruction,
) -> Result<(), Rejected> {
    let Instruction { index, data_offset, data_size, .. } = instruction;
    let kind = if data_size == 0 { 0 } else { state.byte(data_offset) };
    let size_min = if kind == SET_UNIT_PRICE { 9 } else { 5 };
    if !(REQUEST_HEAP_FRAME..=SET_LOADED_BYTES).contains(&kind) || data_size < size_min {
        return reject(DecodeError::compute_budget_malformed, index, 0);
    }
    let at = data_offset + 1;
    let repeated = match kind {
        SET_UNIT_PRICE => state.unit_price.replace(state.u64(at)).is_some(),
        SET_UNIT_LIMIT => state.unit_limit.replace(state.u32(at)).is_some(),
        REQUEST_HEAP_FRAME => state.heap_bytes.replace(state.u32(at)).is_some(),
        _ => state.loaded_bytes.replace(state.u32(at)).is_some(),
    };
    if repeated {
        return reject(DecodeError::compute_budget_duplicate, index, kind);
    }
    Ok(())
}

/// Minimum and maximum heap that may be requested, in steps of 1024. `execution_budget.rs`,
/// 2026-11.
const HEAP_BYTES_MIN: u32 = 32 * 1024;
const HEAP_BYTES_MAX: u32 = 256 * 1024;

/// Whether leaders grant the requested heap.
pub fn validate_heap(state: &ParseState<'_>) -> Result<(), Rejected> {
    match state.heap_bytes {
        Some(heap) if !(HEAP_BYTES_MIN..=HEAP_BYTES_MAX).contains(&heap) || heap % 1024 != 0 => {
            reject(DecodeError::heap_size, heap, HEAP_BYTES_MIN)
        }
        _ => Ok(()),
    }
}

/// Validates the settings of all ComputeBudget instructions, once all have been read.
pub fn validate_compute_budget(state: &ParseState<'_>) -> Result<(), Rejected> {
    validate_heap(state)?;
    if state.loaded_bytes == Some(0) {
        return reject(DecodeError::loaded_accounts_size, 0, 1);
    }
    Ok(())
}

/// Compute units per instruction if no limit is set. `execution_budget.rs`, 2026-11.
const UNITS_BUILTIN: u32 = 3_000;
const UNITS_OTHER: u32 = 200_000;
/// Maximum compute units of a transaction. `execution_budget.rs`, 2026-11.
const COMPUTE_UNITS_MAX: u32 = 1_400_000;

/// ceil(price * limit / 10^6) of a legacy or v0 transaction, in lamports.
#[must_use]
pub fn compute_budget_fee(state: &ParseState<'_>) -> u64 {
    let Some(price) = state.unit_price else {
        return 0;
    };
    // At most 64 instructions, so the products stay small.
    let default = state.builtin_calls * UNITS_BUILTIN + state.other_calls * UNITS_OTHER;
    let limit = state.unit_limit.unwrap_or(default).min(COMPUTE_UNITS_MAX);
    let fee = (u128::from(price) * u128::from(limit)).div_ceil(1_000_000);
    u64::try_from(fee).unwrap_or(u64::MAX).min(LAMPORTS_TOLD_MAX)
}
