//! Which thread a datagram belongs to. One byte of its connection id says so: the first one of the
//! id, behind the flags of a short header, and behind flags, version and length of a long one
//! (RFC 9000, 17.2 and 17.3.1; RFC 8999).
//!
//! ```text
//!  bit 7: generation of the process ─ bits 0 to 6: congruent to the thread's number, by threads
//! ```
//!
//! The ids that a thread issues obey this rule, and the first id of a client, which is random,
//! chooses a thread by it, so a whole connection stays on one thread. A classic BPF program applies
//! it in the kernel, to the sockets that share the port, and `Routing::thread_of` again to what
//! arrived: the kernel may join datagrams of one sender, and may have no such program.
//!
//! While a process replaces another, both have sockets on the port, the predecessor's first. Its
//! connection ids have the other generation, and the successor's program sends them to its sockets.
//! What begins a connection goes to the successor.

use nix::libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_B, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_MOD, BPF_RET,
    sock_filter,
};
use quinn_proto::{ConnectionId, ConnectionIdGenerator, RandomConnectionIdGenerator};
use std::time::Duration;

/// Most threads of a listener: half of the numbers that the byte holds.
pub(super) const THREADS_MAX: usize = 64;
/// Bytes of the connection ids that the listener issues.
const CID_BYTES: usize = 8;
/// The bit of the generation.
const GENERATION: u8 = 0x80;
/// A long header.
const LONG: u8 = 0x80;
/// The type of a long header; 0 is Initial, of QUIC version 1.
const LONG_TYPE: u8 = 0x30;
/// Where the connection id begins in a long header, and in a short one.
const LONG_ID_AT: usize = 6;
const SHORT_ID_AT: usize = 1;

/// How datagrams find their thread.
#[derive(Clone, Debug)]
pub(super) struct Routing {
    threads: usize,
    /// `GENERATION` or 0.
    generation: u8,
    /// The thread of each socket of the process that this one replaces, in the order in which the
    /// kernel has them; empty: it replaces none.
    predecessor: Box<[usize]>,
}

impl Routing {
    /// For so many threads of the process of this number, and the sockets of the one that it
    /// replaces: the thread of each, in order.
    pub(super) fn new(threads: usize, number: u32, predecessor: &[usize]) -> Self {
        let generation = if number.is_multiple_of(2) { 0 } else { GENERATION };
        Self { threads: threads.max(1), generation, predecessor: predecessor.into() }
    }

    /// The thread that a datagram belongs to; None: any thread.
    pub(super) fn thread_of(&self, datagram: &[u8]) -> Option<usize> {
        let flags = *datagram.first()?;
        let is_long = flags & LONG != 0;
        let byte = *datagram.get(if is_long { LONG_ID_AT } else { SHORT_ID_AT })?;
        let is_initial = is_long && flags & LONG_TYPE == 0;
        let is_own = is_initial || byte & GENERATION == self.generation;
        is_own.then(|| usize::from(byte & !GENERATION) % self.threads)
    }

    /// The connection ids of a thread.
    pub(super) fn ids_of(&self, thread: usize) -> ThreadIds {
        let &Self { threads, generation, .. } = self;
        // Below `THREADS_MAX`.
        let [threads, thread] = [threads, thread].map(|number| u8::try_from(number).unwrap_or(0));
        let random = RandomConnectionIdGenerator::new(CID_BYTES);
        ThreadIds { random, generation, threads: threads.max(1), thread }
    }

    /// The program for the sockets on the port while the predecessor has its own before these.
    pub(super) fn program(&self) -> Vec<sock_filter> {
        let before = self.predecessor.len();
        let of_predecessor: Vec<_> =
            (0..before).map(|thread| place_of(thread, &self.predecessor)).collect();
        self.program_of(&of_predecessor, before..before + self.threads)
    }

    /// The program once the predecessor has closed its sockets.
    pub(super) fn program_alone(&self) -> Vec<sock_filter> {
        let places = self.places_alone();
        self.program_of(&[], (0..self.threads).map(|thread| place_of(thread, &places)))
    }

    /// The thread of each socket on the port once the predecessor has closed its own, that of the
    /// last thread first. The kernel puts the last socket of all in the place of one that is
    /// closed.
    pub(super) fn places_alone(&self) -> Vec<usize> {
        // The predecessor's threads after the own ones.
        let predecessor = self.predecessor.iter().map(|thread| self.threads + thread);
        let mut sockets: Vec<_> = predecessor.chain(0..self.threads).collect();
        for thread in (0..self.predecessor.len()).rev() {
            sockets.swap_remove(place_of(self.threads + thread, &sockets));
        }
        sockets
    }

    /// Returns the place of the datagram's socket among those on the port: that of its thread,
    /// which is in `own` for this process's datagrams, and in `predecessor` for the predecessor's.
    fn program_of(
        &self,
        predecessor: &[usize],
        own: impl Iterator<Item = usize>,
    ) -> Vec<sock_filter> {
        let load = |at: usize| plain(BPF_LD | BPF_B | BPF_ABS, number(at));
        let jump_if = |bits: u8, to, or| jump(BPF_JSET, u32::from(bits), to, or);
        let of_predecessor = choice(predecessor);
        // Over the predecessor's part; at most 131 with `THREADS_MAX`.
        let to_own = u8::try_from(of_predecessor.len()).unwrap_or(u8::MAX - 4);
        let (is_set, is_clear) = match (predecessor, self.generation) {
            ([], _) => (to_own, to_own),
            (_, 0) => (0, to_own),
            _ => (to_own, 0),
        };
        let mut program = vec![
            load(0),
            jump_if(LONG, 0, 5),
            jump_if(LONG_TYPE, 2, 0),
            // What begins a connection.
            load(LONG_ID_AT),
            jump(BPF_JEQ, 0, 4 + to_own, 4 + to_own),
            // A handshake.
            load(LONG_ID_AT),
            jump(BPF_JEQ, 0, 1, 1),
            // Everything else.
            load(SHORT_ID_AT),
            jump_if(GENERATION, is_set, is_clear),
        ];
        program.extend(of_predecessor);
        program.extend(choice(&own.collect::<Vec<_>>()));
        program
    }
}

/// Where a thread's socket is among these; for a thread that has none the first place.
fn place_of(thread: usize, sockets: &[usize]) -> usize {
    sockets.iter().position(|of| *of == thread).unwrap_or(0)
}

/// Returns the place of the thread's socket, `places` by thread. The accumulator is the byte that
/// chooses the thread.
fn choice(places: &[usize]) -> Vec<sock_filter> {
    let mut program = vec![
        plain(BPF_ALU | BPF_AND | BPF_K, u32::from(!GENERATION)),
        plain(BPF_ALU | BPF_MOD | BPF_K, number(places.len().max(1))),
    ];
    for (thread, place) in places.iter().enumerate() {
        program.push(jump(BPF_JEQ, number(thread), 0, 1));
        program.push(plain(BPF_RET | BPF_K, number(*place)));
    }
    // Never reached with a thread, but a program must end so.
    program.push(plain(BPF_RET | BPF_K, 0));
    program
}

fn plain(code: u32, k: u32) -> sock_filter {
    // Every code is below 256.
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

fn jump(condition: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { jt, jf, ..plain(BPF_JMP | condition | BPF_K, k) }
}

fn number(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

/// Issues the connection ids of a thread.
#[derive(Debug)]
pub(super) struct ThreadIds {
    random: RandomConnectionIdGenerator,
    generation: u8,
    threads: u8,
    thread: u8,
}

impl ConnectionIdGenerator for ThreadIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = [0; CID_BYTES];
        bytes.copy_from_slice(&self.random.generate_cid());
        let [first, ..] = &mut bytes;
        let place = *first & !GENERATION;
        let place = place - place % self.threads + self.thread;
        // The last few numbers are not a whole round of the threads.
        let place = if place < GENERATION { place } else { place - self.threads };
        *first = self.generation | place;
        ConnectionId::new(&bytes)
    }

    fn cid_len(&self) -> usize {
        CID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(id: u8) -> [u8; 9] {
        [0x40, id, 0, 0, 0, 0, 0, 0, 0]
    }

    fn long(kind: u8, id: u8) -> [u8; 9] {
        [0xc0 | kind << 4, 0, 0, 0, 1, 8, id, 0, 0]
    }

    const INITIAL: u8 = 0;
    const HANDSHAKE: u8 = 2;

    #[test]
    fn ids_of_a_thread_lead_to_it() {
        for (threads, number) in [(1, 0), (2, 0), (3, 1), (16, 1), (THREADS_MAX, 0)] {
            let routing = Routing::new(threads, number, &[]);
            for thread in 0..threads {
                let mut ids = routing.ids_of(thread);
                for _ in 0..200 {
                    let id = ids.generate_cid();
                    assert_eq!(id.len(), CID_BYTES);
                    for datagram in [short(id[0]), long(INITIAL, id[0]), long(HANDSHAKE, id[0])] {
                        assert_eq!(routing.thread_of(&datagram), Some(thread), "{threads}");
                    }
                }
            }
        }
    }

    #[test]
    fn ids_of_a_thread_differ() {
        let mut ids = Routing::new(2, 0, &[]).ids_of(1);
        let all: std::collections::HashSet<_> = (0..100).map(|_| ids.generate_cid()).collect();
        let firsts: std::collections::HashSet<u8> = all.iter().map(|id| id[0]).collect();
        assert!(all.len() == 100 && firsts.len() > 20);
    }

    #[test]
    fn other_generation_is_of_no_thread_unless_it_begins_a_connection() {
        let routing = Routing::new(2, 1, &[]);
        assert_eq!(routing.thread_of(&short(0x03)), None);
        assert_eq!(routing.thread_of(&long(HANDSHAKE, 0x03)), None);
        assert_eq!(routing.thread_of(&long(INITIAL, 0x03)), Some(1));
        assert_eq!(routing.thread_of(&short(0x82)), Some(0));
        assert_eq!(Routing::new(2, 2, &[]).thread_of(&short(0x03)), Some(1));
        for size in [0, 1] {
            assert_eq!(routing.thread_of(&short(0x81)[..size]), None);
        }
        assert_eq!(routing.thread_of(&long(INITIAL, 1)[..6]), None);
    }

    /// The kernel's interpreter is tried in `sockets`; this one follows the same instructions.
    fn run(program: &[sock_filter], datagram: &[u8]) -> u32 {
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let code = u32::from(code);
            if code == BPF_LD | BPF_B | BPF_ABS {
                accumulator = u32::from(datagram[k as usize]);
            } else if code == BPF_ALU | BPF_AND | BPF_K {
                accumulator &= k;
            } else if code == BPF_ALU | BPF_MOD | BPF_K {
                accumulator %= k;
            } else if code == BPF_JMP | BPF_JSET | BPF_K {
                at += usize::from(if accumulator & k != 0 { jt } else { jf });
            } else if code == BPF_JMP | BPF_JEQ | BPF_K {
                at += usize::from(if accumulator == k { jt } else { jf });
            } else {
                assert_eq!(code, BPF_RET | BPF_K);
                return k;
            }
        }
    }

    #[test]
    fn program_chooses_the_thread_that_the_datagram_belongs_to() {
        for threads in [1, 2, 3, 16] {
            let routing = Routing::new(threads, 1, &[]);
            let program = routing.program();
            for id in 0..=u8::MAX {
                for datagram in [short(id), long(INITIAL, id), long(HANDSHAKE, id)] {
                    let chosen = run(&program, &datagram) as usize;
                    let thread = routing.thread_of(&datagram);
                    assert_eq!(thread.unwrap_or(chosen), chosen, "{datagram:?}");
                    assert!(chosen < threads);
                }
            }
        }
    }

    #[test]
    fn program_of_a_successor_leaves_the_predecessors_ids_to_it() {
        let places = [2, 0, 1];
        for number in [1, 2] {
            let before = Routing::new(3, number - 1, &[]);
            let routing = Routing::new(2, number, &places);
            let program = routing.program();
            for id in 0..=u8::MAX {
                let initial = run(&program, &long(INITIAL, id)) as usize;
                assert_eq!(Some(initial - 3), routing.thread_of(&long(INITIAL, id)));
                for datagram in [short(id), long(HANDSHAKE, id)] {
                    let chosen = run(&program, &datagram) as usize;
                    let own = routing.thread_of(&datagram);
                    let thread = places.get(chosen).copied();
                    assert_eq!(thread, before.thread_of(&datagram).filter(|_| own.is_none()));
                    assert_eq!(chosen.checked_sub(3), own);
                }
            }
        }
    }

    #[test]
    fn program_alone_follows_the_sockets_that_the_kernel_moved() {
        for (before, places) in [
            (&[][..], [0, 1]),
            (&[0], [1, 0]),
            (&[0, 1], [0, 1]),
            (&[1, 0], [1, 0]),
            (&[0, 1, 2], [1, 0]),
        ] {
            let routing = Routing::new(2, 1, before);
            let program = routing.program_alone();
            let chosen = [0x80, 0x81].map(|id| run(&program, &short(id)));
            assert_eq!(chosen, places, "{before:?}");
            assert_eq!(routing.places_alone(), places.map(|place| place as usize));
        }
    }

    #[test]
    fn longest_program_is_one_that_the_kernel_takes() {
        let before: Vec<_> = (0..THREADS_MAX).rev().collect();
        let routing = Routing::new(THREADS_MAX, 1, &before);
        let program = routing.program();
        for id in 0..=u8::MAX {
            let thread = usize::from(id & !GENERATION) % THREADS_MAX;
            assert_eq!(run(&program, &long(INITIAL, id)) as usize, THREADS_MAX + thread);
            let place = run(&program, &short(id)) as usize;
            let is_own = id & GENERATION != 0;
            assert_eq!(place, if is_own { THREADS_MAX + thread } else { before[thread] });
        }
    }
}
