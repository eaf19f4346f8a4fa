//! The status codes that the exports return: 0, or a negative number. `src/native/contract.ts`
//! repeats those that TypeScript or its tests use, under the same names.

use crate::quic::engine::{OpenError, StartError};

pub(crate) const OK: i32 = 0;
pub(crate) const NOT_STARTED: i32 = -1;
pub(crate) const PANIC: i32 = -2;
pub(crate) const START_FULL: i32 = -10;
pub(crate) const START_OPTIONS: i32 = -11;
pub(crate) const START_IDENTITY: i32 = -13;
pub(crate) const START_THREAD: i32 = -14;
/// Minus the system's error number.
pub(crate) const START_SOCKET: i32 = -1000;
pub(crate) const OPEN_ADDRESS: i32 = -20;
pub(crate) const OPEN_FAMILY: i32 = -21;
pub(crate) const OPEN_FULL: i32 = -22;
pub(crate) const NO_PEER: i32 = -30;
pub(crate) const DECODER_OPTIONS: i32 = -40;
pub(crate) const DECODER_FULL: i32 = -41;
pub(crate) const NO_DECODER: i32 = -42;
pub(crate) const NO_ROOM: i32 = -43;
pub(crate) const NO_KEY_TABLE: i32 = -50;
pub(crate) const KEY_TABLE_FULL: i32 = -51;
pub(crate) const KEY_BATCH: i32 = -52;
pub(crate) const SUBMIT_INVALID: i32 = -60;
pub(crate) const SUBMIT_LEADERS_FULL: i32 = -61;
pub(crate) const SUBMIT_NO_LEADER: i32 = -62;
pub(crate) const SUBMIT_BUSY: i32 = -63;
pub(crate) const NO_SUBMIT_PATH: i32 = -64;
pub(crate) const SUBMIT_PATH_OPTIONS: i32 = -65;
pub(crate) const SUBMIT_PATH_FULL: i32 = -66;
pub(crate) const SUBMIT_RING_FULL: i32 = -67;
pub(crate) const NO_PRIORITY: i32 = -70;
pub(crate) const INGRESS_THREAD_OPTIONS: i32 = -80;
pub(crate) const INGRESS_THREAD_FULL: i32 = -81;
pub(crate) const NO_INGRESS_THREAD: i32 = -82;
pub(crate) const INGRESS_THREAD_LISTEN: i32 = -83;
pub(crate) const INGRESS_THREAD_TLS: i32 = -84;
pub(crate) const NOTIFY_FAILED: i32 = -90;

/// Why an engine does not start.
pub(crate) fn start_code(error: &StartError) -> i32 {
    match error {
        StartError::Options => START_OPTIONS,
        StartError::Socket(number) => START_SOCKET.saturating_sub(*number),
        StartError::Identity => START_IDENTITY,
        StartError::Thread => START_THREAD,
    }
}

/// Why a connection is not started.
pub(crate) fn open_code(error: &OpenError) -> i32 {
    match error {
        OpenError::Address => OPEN_ADDRESS,
        OpenError::Family => OPEN_FAMILY,
        OpenError::Full => OPEN_FULL,
        OpenError::Stopping => NOT_STARTED,
    }
}
