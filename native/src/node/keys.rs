//! Exports of the key table and of its limits.

use napi::bindgen_prelude::{Float64ArraySlice, Uint8ArraySlice};
use napi_derive::napi;

use crate::node::convert::{KEY_TABLES, fill, guarded, insert_made, put, with_key_table};
use crate::node::shared_bytes::{overlap, writable, writable_bytes};
use crate::node::status_codes::*;
use crate::submit::key_batch::{digests_of, keys_of};
use crate::submit::key_table::{Digest, KeyTable, PlanTerms};
use crate::submit::rate_limit::Rate;

/// Makes an empty key table for ingress threads and the main thread. Returns its handle, above 0,
/// or KEY_TABLE_FULL or PANIC.
#[napi]
pub fn key_table_create() -> i32 {
    guarded(PANIC, || insert_made(&KEY_TABLES, KEY_TABLE_FULL, KeyTable::default))
}

/// Removes a key table; ingress threads that use it keep it. Returns OK or NO_KEY_TABLE.
#[napi]
pub fn key_table_close(table: u32) -> i32 {
    guarded(PANIC, || if KEY_TABLES.remove(table) { OK } else { NO_KEY_TABLE })
}

/// Writes the number of keys and of limits, and returns how many were written.
#[napi]
pub fn key_table_counters(table: u32, mut out: Float64ArraySlice<'_>) -> i32 {
    with_key_table(table, |table| {
        let counters = [table.len(), table.limits().len()].map(|count| count as u64);
        i32::try_from(fill(&mut out, counters)).unwrap_or(PANIC)
    })
}

/// Sets the plan of this number for all its keys: `numbers` are its rate, its burst, and 1 if all
/// edges share its limit. Numbers follow each other from 0 on. Returns OK, NO_KEY_TABLE, KEY_BATCH
/// or PANIC.
#[napi]
pub fn plan_put(table: u32, plan: u32, name: String, numbers: &[f64]) -> i32 {
    with_key_table(table, |table| {
        let &[rate_per_second, burst, is_shared] = numbers else { return KEY_BATCH };
        let rate = Rate { rate_per_second, burst };
        let terms = PlanTerms { name: name.into(), rate, is_shared: is_shared == 1.0 };
        if table.set_plan(plan, terms) { OK } else { KEY_BATCH }
    })
}

/// Adds or replaces keys, in the form of `key_batch`; with `is_next` in the set that is built
/// aside. Returns how many it put, or NO_KEY_TABLE, KEY_BATCH or PANIC.
#[napi]
pub fn keys_put(table: u32, is_next: bool, batch: &[u8]) -> i32 {
    with_key_table(table, |table| {
        let mut count = 0;
        for key in keys_of(batch) {
            let Some(key) = key else { return KEY_BATCH };
            count += i32::from(if is_next { table.put_next(key) } else { table.put(key) });
        }
        count
    })
}

/// Removes the keys with these digests, of 32 bytes each. Returns how many there were, or
/// NO_KEY_TABLE, KEY_BATCH or PANIC.
#[napi]
pub fn keys_remove(table: u32, digests: &[u8]) -> i32 {
    with_key_table(table, |table| {
        let Some(digests) = digests_of(digests) else { return KEY_BATCH };
        digests.map(|digest| i32::from(table.remove(digest))).sum()
    })
}

/// Starts a set of keys aside (1), or replaces all keys by it (2). Returns OK, NO_KEY_TABLE,
/// KEY_BATCH or PANIC.
#[napi]
pub fn keys_replace(table: u32, step: u32) -> i32 {
    with_key_table(table, |table| match step {
        1 => {
            table.start_next();
            OK
        }
        2 if table.finish_next() => OK,
        _ => KEY_BATCH,
    })
}

/// Charges one request to the limits of the key with this digest. Returns 0 if it is admitted, or
/// if there is no such key; 1 if a limit is used up, and writes the wait in nanoseconds and 1 if
/// the limit is the key's own; or NO_KEY_TABLE, NO_ROOM or PANIC.
#[napi]
pub fn key_charge(table: u32, digest: &[u8], now_ns: f64, mut out: Float64ArraySlice<'_>) -> i32 {
    with_key_table(table, |table| {
        let Ok(digest) = digest.try_into() else { return NO_ROOM };
        let exceeded =
            table.find(Digest::new(digest)).and_then(|key| table.charge(&key, now_ns).err());
        put(&mut out, || exceeded.map(|found| [found.wait_ns, f64::from(u8::from(found.is_own))]))
    })
}

/// Sets the number of edges that share limits; 0: every limit is of this edge alone. Returns OK,
/// NO_KEY_TABLE or PANIC.
#[napi]
pub fn limits_share(table: u32, edge_count: u32) -> i32 {
    with_key_table(table, |table| {
        table.limits().set_edge_count(edge_count);
        OK
    })
}

/// Starts to watch shared limits that were charged, as many as both arrays have room for: writes
/// their slots, and their names one after the other, each as a `u16` size and UTF-8. Returns how
/// many, or NO_KEY_TABLE, NO_ROOM or PANIC.
#[napi]
pub fn limits_watch(
    table: u32,
    mut slots: Float64ArraySlice<'_>,
    mut names: Uint8ArraySlice<'_>,
) -> i32 {
    with_key_table(table, |table| {
        let (slots, mut names) = (writable(&mut slots), writable_bytes(&mut names));
        if overlap(slots, names) {
            return NO_ROOM;
        }
        let mut count = 0;
        for slot in slots {
            if names.len() < NAME_ROOM {
                break;
            }
            let Some((watched, state)) = table.limits().watch_next() else { break };
            *slot = f64::from(watched);
            let name = state.name().as_bytes();
            let size = u16::try_from(name.len()).unwrap_or(0);
            let name = name.get(..usize::from(size)).unwrap_or_default();
            for part in [&size.to_le_bytes(), name] {
                let (to, rest) = names.split_at_mut(part.len());
                to.copy_from_slice(part);
                names = rest;
            }
            count += 1;
        }
        count
    })
}

/// The largest name, and its size.
const NAME_ROOM: usize = 2 + u16::MAX as usize;

/// Writes of a watched limit when its bucket is full, the count of its requests, and what one of
/// them costs. Returns 1, 0 for one that is not watched, or NO_KEY_TABLE, NO_ROOM or PANIC.
#[napi]
pub fn limit_read(table: u32, slot: u32, mut out: Float64ArraySlice<'_>) -> i32 {
    with_key_table(table, |table| {
        put(&mut out, || {
            let found = table.limits().watched(slot)?;
            // As the 32-bit integer that wraps around in JavaScript.
            Some([found.full_ns, f64::from(found.count.cast_signed()), found.interval_ns])
        })
    })
}

/// Replaces the bucket of a watched limit if it is still `was_ns`. Returns 1, 0 if it is not, or
/// NO_KEY_TABLE or PANIC.
#[napi]
pub fn limit_replace(table: u32, slot: u32, was_ns: f64, full_ns: f64) -> i32 {
    with_key_table(table, |table| i32::from(table.limits().replace(slot, was_ns, full_ns)))
}

/// Ends the watch of a limit whose count was last `count`. Returns OK, NO_KEY_TABLE or PANIC.
#[napi]
pub fn limit_unwatch(table: u32, slot: u32, count: i32) -> i32 {
    with_key_table(table, |table| {
        table.limits().unwatch(slot, count.cast_unsigned());
        OK
    })
}
