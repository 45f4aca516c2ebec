//! The program's allocator: the system's own, but a refusal ends the program as any other bad input does, in one line
//! and exit code 2, instead of the abort of the standard library. It belongs to the program alone; who uses the library
//! keeps their own.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

/// The system's allocator, whose refusals end the program.
pub struct Allocator;

/// Says how much was asked for, and ends. Neither allocates: standard error has no buffer, and a number is written
/// digit by digit on the stack.
fn refused(bytes: usize) -> ! {
    let _ = writeln!(
        std::io::stderr(),
        "difftest: out of memory: the system refuses {bytes} bytes more; take a smaller --batch, --hidden or data set, \
         or raise the limit"
    );
    std::process::exit(2)
}

fn granted(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() { refused(bytes) } else { memory }
}

// SAFETY: every call goes to `System` with the arguments that it came with, and its answer is handed back unchanged; a
// null answer does not return. Nothing here unwinds: `refused` ignores what writing answers, and exits.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`, which is `System`'s.
        granted(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`.
        granted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as for `alloc`; `memory` came from `System` by one of the calls here.
        granted(unsafe { System.realloc(memory, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as for `realloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}
