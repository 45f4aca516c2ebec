//! The machine code of [`unit`](super::unit) on a Linux machine without AMX: every tile instruction is an illegal one
//! there, and a signal handler carries it out in software. Tests the instructions that were really assembled, their
//! operands and their order. For tests only.
#![allow(unsafe_code)]

use super::emulated::{Emulated, dot};
use super::unit::{Amx, Permission};
use super::{LimbSums, Tile, TileUnit};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The tile unit of [`unit`](super::unit), its limbs split in plain Rust, which needs no AVX-512.
pub(in crate::kernel) struct Trapped(Amx);

/// Products of tiles that the handler has carried out.
pub(in crate::kernel) static DOTS: AtomicU64 = AtomicU64::new(0);

impl Trapped {
    /// Whether the instructions are illegal here.
    pub fn is_possible() -> bool {
        Permission::trapped().is_some()
    }

    /// Installs the handler and configures the tiles of this thread.
    pub fn begin() -> Self {
        // SAFETY: a zeroed `sigaction` is a valid one without flags; the handler has the form that SA_SIGINFO asks for.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            assert_eq!(libc::sigaction(libc::SIGILL, &action, std::ptr::null_mut()), 0);
        }
        Trapped(Amx::begin(Permission::trapped().expect("this processor has the instructions")))
    }
}

impl TileUnit for Trapped {
    fn split(&self, values: &[u64; 64]) -> [[u8; 64]; 8] {
        Emulated.split(values)
    }

    fn limb_sums(&mut self, left: &[[Tile; 8]], right: &[[Tile; 8]], sums: &mut LimbSums) {
        self.0.limb_sums(left, right, sums);
    }
}

/// The registers of a thread; not configured at first.
struct Registers {
    tiles: [Tile; 8],
    configured: bool,
}

thread_local! {
    static REGISTERS: UnsafeCell<Registers> =
        const { UnsafeCell::new(Registers { tiles: [Tile([0; 1024]); 8], configured: false }) };
}

/// Ends the process, for a panic must not leave a signal handler.
fn stop(why: &str) -> ! {
    // SAFETY: `why` is `why.len()` readable bytes; both calls are allowed in a handler.
    unsafe {
        libc::write(2, why.as_ptr().cast(), why.len());
        libc::abort()
    }
}

/// # Safety
/// Called by the system for an illegal instruction, with the thread's context.
unsafe extern "C" fn handler(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system passes a valid context.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    // SAFETY: the instruction pointer points to the instruction; VEX-encoded ones of this kind have five bytes at
    // least.
    let code = registers[libc::REG_RIP as usize] as *const u8;
    let length = REGISTERS.with(|tiles| {
        // SAFETY: as above; only this handler, which is not entered twice by a thread, has a reference to the
        // registers.
        unsafe { execute(code, registers, &mut *tiles.get()) }
    });
    registers[libc::REG_RIP as usize] += length;
}

/// Carries one tile instruction out and gives its length.
///
/// # Safety
/// `code` points to an instruction of this program that the processor refused.
unsafe fn execute(code: *const u8, general: &[i64; 23], registers: &mut Registers) -> i64 {
    // SAFETY: by contract; it is VEX-encoded in at least five bytes or stops here.
    let [vex, map, prefix, opcode, modrm] = unsafe { *code.cast::<[u8; 5]>() };
    if vex != 0xc4 || map & 0x1f != 2 || prefix & 0x84 != 0 {
        stop("not a tile instruction\n");
    }
    let (operand, second, third) = (modrm >> 3 & 7, modrm & 7, prefix >> 3 & 15 ^ 15);
    let in_memory = modrm >> 6 != 3;
    let configures = opcode == 0x49 && in_memory;
    if !registers.configured && !configures {
        stop("tile instruction without a configuration\n");
    }
    match (opcode, prefix & 3, in_memory) {
        (0x49, 0, true) => {
            // SAFETY: `code` is as above; LDTILECFG reads 64 bytes.
            let (length, address, _) = unsafe { memory(code, general) };
            let config = unsafe { &*(address as *const [u8; 64]) };
            if config[0] != 1 || (0..8).any(|t| config[16 + 2 * t] != 64 || config[48 + t] != 16) {
                stop("another configuration than this program's\n");
            }
            // Not zeros, as the processor would: nothing may count on them.
            *registers = Registers { tiles: [Tile([0x5a; 1024]); 8], configured: true };
            length
        }
        (0x49, 0, false) if modrm == 0xc0 => {
            registers.configured = false;
            5
        }
        (0x49, 3, false) => {
            registers.tiles[operand as usize] = Tile([0; 1024]);
            5
        }
        (0x4b, 2 | 3, true) => {
            // SAFETY: `code` is as above; the instruction moves 16 rows of 64 bytes at the given distance.
            let (length, address, step) = unsafe { memory(code, general) };
            for (row, bytes) in registers.tiles[operand as usize].0.as_chunks_mut::<64>().0.iter_mut().enumerate() {
                let place = (address + row as i64 * step) as *mut [u8; 64];
                if prefix & 3 == 3 { *bytes = unsafe { *place } } else { unsafe { *place = *bytes } }
            }
            length
        }
        (0x5e, 0, false) if operand != second && operand != third && second != third => {
            DOTS.fetch_add(1, Ordering::Relaxed);
            let [a, b] = [second, third].map(|t| registers.tiles[t as usize]);
            let bytes = &mut registers.tiles[operand as usize].0;
            let mut sums = [[0; 16]; 16];
            for (sum, bytes) in sums.as_flattened_mut().iter_mut().zip(bytes.as_chunks().0) {
                *sum = u32::from_le_bytes(*bytes);
            }
            dot(&a, &b, &mut sums);
            for (sum, bytes) in sums.as_flattened().iter().zip(bytes.as_chunks_mut().0) {
                *bytes = sum.to_le_bytes();
            }
            5
        }
        _ => stop("another instruction than this program's\n"),
    }
}

/// Length, base address with displacement, and index of an instruction with a memory operand.
///
/// # Safety
/// `code` points to a VEX-encoded instruction with one.
unsafe fn memory(code: *const u8, general: &[i64; 23]) -> (i64, i64, i64) {
    use libc::*;
    const NAMES: [c_int; 16] = [
        REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11,
        REG_R12, REG_R13, REG_R14, REG_R15,
    ];
    let register = |low: u8, high: u8| general[NAMES[(low & 7 | high << 3) as usize] as usize];
    // SAFETY: an instruction with ModRM byte, scale-index byte and displacement is as long as is read here.
    unsafe {
        let (extended, modrm) = (!*code.add(1), *code.add(4));
        let (mut at, mut base, mut index) = (5, modrm, 0);
        if modrm & 7 == 4 {
            base = *code.add(5);
            at = 6;
            if base >> 3 & 7 != 4 || extended & 0x40 != 0 {
                index = register(base >> 3, extended >> 6 & 1) << (base >> 6);
            }
        }
        let (size, displacement) = match modrm >> 6 {
            0 if base & 7 == 5 => stop("an address without a base\n"),
            0 => (0, 0),
            1 => (1, i64::from(*code.add(at).cast::<i8>())),
            _ => (4, i64::from(code.add(at).cast::<i32>().read_unaligned())),
        };
        ((at + size) as i64, register(base, extended >> 5 & 1) + displacement, index)
    }
}
