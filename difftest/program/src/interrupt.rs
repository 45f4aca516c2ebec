//! Ctrl-C: the first ends a run after its step, with a report; the second ends the program at once.

use difftest::interrupt;

/// Exit code of a program that a second Ctrl-C ends, as shells count it: 128 and the signal's number.
const ENDED: i32 = 130;

/// Listens from now on. Where the system has no such signals, Ctrl-C ends the program at once as ever.
pub fn listen() {
    use signal_hook::consts::SIGINT;
    use signal_hook::flag::{register, register_conditional_shutdown};
    // In this order: the first signal finds the flag unset, and then sets it.
    let second = register_conditional_shutdown(SIGINT, ENDED, interrupt::flag());
    let _no_signals = second.and_then(|_| register(SIGINT, interrupt::flag()));
}
