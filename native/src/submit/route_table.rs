//! Hot path: where the leaders of the moment are, as the sender's thread writes it into shared
//! memory and fronts read it. Layout and rules are those of `src/send/native/shared-target-table.ts`:
//!
//! ```text
//!   word  0      rises with each writing; odd while the table is written
//!         1      whether fronts may send now
//!         2      fronts so far
//!         3 ..   engine, version, count, time of a copy in ms, most bytes, leaders left out
//!         9      rises as the engine's news are begun to be taken and when they are; odd meanwhile
//!        10 ..   for each route the engine's handle of the connection
//!        26 ..   and the cell in which its streams are counted
//!        64 ..   the cells
//! ```
//!
//! Nobody waits for the writer: a table that was changed while it was read is read again, a few
//! times, and then the transaction is the sender's. What is read is kept only where it is whole.
//! Every access is sequentially consistent, as JavaScript's `Atomics` are.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

use crate::limits::DELIVERIES_MAX;
use crate::sync::shared_memory::{AtomicSlice, Memory};

/// Leaders that fronts send to: `SHARED_TARGETS_MAX` of `front-limits.ts`, and as many as the engine
/// takes copies in one call.
pub const ROUTES_MAX: usize = DELIVERIES_MAX;
/// Cells for the stream numbers of connections: `TARGET_CELLS_MAX` of `front-limits.ts`.
pub const CELLS_MAX: usize = 8192;
/// Size of the shared memory: `SHARED_TARGET_TABLE_BYTES` of `shared-routes.ts`.
pub const ROUTES_BYTES: usize = WORDS * size_of::<u32>();

/// What was read last, as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The engine's handle; 0: it does not run.
    pub engine: u32,
    /// Of this table among all; never 0 once one was written.
    pub version: u32,
    /// Routes, `ROUTES_MAX` at most.
    pub count: usize,
    /// The lifetime of a copy.
    pub ttl_ms: u32,
    /// The largest transaction that all of the leaders take.
    pub bytes_max: u32,
    /// Leaders that are connected beside these; the sender places the copies for them.
    pub left_out: u32,
    /// Of each of `count` routes the engine's handle of the connection.
    pub peers: [u32; ROUTES_MAX],
    cells: [u32; ROUTES_MAX],
}

/// The side of one front.
pub struct Routes {
    words: AtomicSlice<AtomicU32>,
    thread_number: u32,
    table: Table,
    /// Of the table; None: none was read.
    sequence: Option<u32>,
}

impl Routes {
    /// Counts in one more front. None where the memory has another size.
    #[must_use]
    pub fn open(memory: &Memory) -> Option<Self> {
        if memory.size() != ROUTES_BYTES {
            return None;
        }
        let words = memory.atomics::<AtomicU32>(0, WORDS)?;
        let thread_number = words.get(INGRESS_THREADS)?.fetch_add(1, SeqCst).wrapping_add(1);
        Some(Self { words, thread_number, table: Table::default(), sequence: None })
    }

    /// Counts up from 1 among the fronts that share the memory.
    #[must_use]
    pub fn thread_number(&self) -> u32 {
        self.thread_number
    }

    /// Whether fronts may send now.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.word(OPEN) == 1
    }

    /// Rises with each taking of the engine's news, twice; odd while it goes on.
    #[must_use]
    pub fn drain_count(&self) -> u32 {
        self.word(DRAIN_COUNT)
    }

    /// Nobody sends until the sender has looked.
    pub fn close(&self) {
        if let Some(open) = self.words.get(OPEN) {
            open.store(0, SeqCst);
        }
    }

    /// The table as `refresh` read it last.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Reads what is new; false where it is being written again and again.
    #[must_use]
    pub fn refresh(&mut self) -> bool {
        for _ in 0..TRIES {
            let sequence = self.word(SEQUENCE);
            if self.sequence == Some(sequence) {
                return true;
            }
            if sequence.is_multiple_of(2) && self.read(sequence) {
                return true;
            }
        }
        false
    }

    /// The next stream of a route, which no other thread is given; never 0. None where the table
    /// has no such route, or names a cell for it that there is not.
    #[must_use]
    pub fn next_stream(&self, route: usize) -> Option<u32> {
        let cells = self.table.cells.get(..self.table.count)?;
        let cell = usize::try_from(*cells.get(route)?).ok()?;
        let drawn = self.words.get(CELLS..)?.get(cell)?;
        // Only one number in 2^32 is drawn in vain.
        loop {
            let stream = drawn.fetch_add(1, SeqCst).wrapping_add(1);
            if stream != 0 {
                return Some(stream);
            }
        }
    }

    /// Whether the table did not change meanwhile; only then it is kept.
    fn read(&mut self, sequence: u32) -> bool {
        let mut table = Table {
            engine: self.word(ENGINE),
            version: self.word(VERSION),
            count: usize::try_from(self.word(COUNT)).map_or(ROUTES_MAX, |all| all.min(ROUTES_MAX)),
            ttl_ms: self.word(TTL_MS),
            bytes_max: self.word(BYTES_MAX),
            left_out: self.word(LEFT_OUT),
            ..Table::default()
        };
        let routes = table.peers.iter_mut().zip(&mut table.cells).enumerate();
        for (route, (peer, cell)) in routes.take(table.count) {
            *peer = self.word(PEERS + route);
            *cell = self.word(CELLS_OF + route);
        }
        if self.word(SEQUENCE) != sequence {
            return false;
        }
        self.table = table;
        self.sequence = Some(sequence);
        true
    }

    fn word(&self, at: usize) -> u32 {
        self.words.get(at).map_or(0, |word| word.load(SeqCst))
    }
}

const SEQUENCE: usize = 0;
const OPEN: usize = 1;
const INGRESS_THREADS: usize = 2;
const ENGINE: usize = 3;
const VERSION: usize = 4;
const COUNT: usize = 5;
const TTL_MS: usize = 6;
const BYTES_MAX: usize = 7;
const LEFT_OUT: usize = 8;
const DRAIN_COUNT: usize = 9;
const PEERS: usize = 10;
const CELLS_OF: usize = PEERS + ROUTES_MAX;
const CELLS: usize = 64;
const WORDS: usize = CELLS + CELLS_MAX;
/// A writing takes less than a microsecond; who comes upon that many gives the request away.
/// `TRIES` of `shared-routes.ts`.
const TRIES: usize = 8;

#[cfg(test)]
#[path = "route_table_tests.rs"]
pub(crate) mod tests;
