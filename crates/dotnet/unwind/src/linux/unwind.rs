//! Unwinding from registers and a copy of a stack to addresses, on the sampler's thread.

use std::sync::atomic::{AtomicU64, Ordering};

use framehop::{CacheNative, FrameAddress, MayAllocateDuringUnwind, Unwinder as _};

#[cfg(target_arch = "x86_64")]
use super::memory;
use super::modules::Modules;
use super::signal::Registers;

/// The value of an unknown register. It points nowhere and is not 0, which would be the end of a stack.
pub(super) const UNKNOWN: u64 = 1;

/// A cache of unwind rules, for all stacks.
pub(super) type Cache = CacheNative<MayAllocateDuringUnwind>;

/// The result of unwinding a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unwound {
    /// Unwound to the end, with the end of the needed part of the stack.
    pub(super) end: Option<u64>,
    /// Unwinding led to an address without known code.
    pub(super) strange: bool,
}

/// Writes at most `most` frames to `stack`, leaf first.
pub(super) fn unwind(
    modules: &Modules,
    cache: &mut Cache,
    registers: Registers,
    words: &[AtomicU64],
    most: usize,
    stack: &mut Vec<u64>,
) -> Unwound {
    stack.clear();
    stack.push(registers.instruction);
    if !modules.is_code(registers.instruction) {
        return Unwound { end: None, strange: true };
    }
    let mut read = |address: u64| {
        let offset = address.checked_sub(registers.stack).filter(|offset| offset % 8 == 0).ok_or(())?;
        let index = usize::try_from(offset / 8).map_err(|_too_far| ())?;
        words.get(index).map(|word| word.load(Ordering::Relaxed)).ok_or(())
    };
    let mut state = start(modules, registers);
    let mut at = FrameAddress::from_instruction_pointer(registers.instruction);
    while stack.len() < most {
        match modules.unwinder.unwind_frame(at, &mut state, cache, &mut read) {
            Ok(None) => return Unwound { end: Some(state.sp()), strange: false },
            Ok(Some(address)) if modules.is_code(address) => {
                let Some(next) = FrameAddress::from_return_address(address) else { break };
                stack.push(address);
                at = next;
            }
            // No function returns to such an address.
            Ok(Some(_)) => return Unwound { end: None, strange: true },
            // At most once: from then on the register is known.
            Err(_) if find_frame(modules, &mut state, at, &mut read) => {}
            Err(_) => break,
        }
    }
    Unwound { end: None, strange: false }
}

#[cfg(target_arch = "x86_64")]
fn start(_: &Modules, registers: Registers) -> framehop::UnwindRegsNative {
    framehop::UnwindRegsNative::new(registers.instruction, registers.stack, registers.frame)
}

/// Return addresses may be signed, in the bits that addresses do not use.
#[cfg(target_arch = "aarch64")]
fn start(_: &Modules, registers: Registers) -> framehop::UnwindRegsNative {
    const USER_SPACE: u64 = (1 << 48) - 1;
    let mask = framehop::aarch64::PtrAuthMask::from_max_known_address(USER_SPACE);
    framehop::UnwindRegsNative::new_with_ptr_auth_mask(mask, registers.link, registers.stack, registers.frame)
}

/// Finds the frame pointer of a function that has one, if the register is unknown. Returns whether it was found.
///
/// Such a function leaves its caller's frame pointer and the return address on the stack, above the stack pointer. The
/// first pair whose address follows an instruction that calls this function, or may call it, is used.
#[cfg(target_arch = "x86_64")]
fn find_frame(
    modules: &Modules,
    state: &mut framehop::UnwindRegsNative,
    at: FrameAddress,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> bool {
    /// Larger frames are rare.
    const WORDS: u64 = 1024;
    if state.bp() != UNKNOWN {
        return false;
    }
    let Some(function) = modules.function(at.address_for_lookup()) else { return false };
    for word in 0..WORDS {
        let place = state.sp().wrapping_add(word * 8);
        let Ok(address) = read(place.wrapping_add(8)) else { return false };
        if modules.is_code(address) && may_call(address, function.start) {
            state.set_bp(place);
            return true;
        }
    }
    false
}

/// Always fails: Arm's calling convention saves the link register next to the frame pointer, so nothing can be searched.
#[cfg(target_arch = "aarch64")]
fn find_frame(
    _: &Modules,
    _: &mut framehop::UnwindRegsNative,
    _: FrameAddress,
    _: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> bool {
    false
}

/// Returns whether the instruction before an address calls a function: `function` if the instruction names its target, any
/// function if the target is in a register or in memory.
#[cfg(target_arch = "x86_64")]
fn may_call(address: u64, function: u64) -> bool {
    let mut code = [0; 7];
    if memory::copy_bytes(address.wrapping_sub(7), &mut code) != code.len() {
        return false;
    }
    let [_, opcode, operand, offset @ ..] = code;
    let near = address.wrapping_add_signed(i64::from(i32::from_le_bytes(offset)));
    match (opcode, operand) {
        // Through a pointer next to the code, as between crates and libraries.
        (0xff, 0x15) => {
            let mut pointer = [0; 8];
            let read = memory::copy_bytes(near, &mut pointer);
            read == pointer.len() && u64::from_le_bytes(pointer) == function
        }
        (_, 0xe8) => near == function,
        _ => (2..=7).any(|length| calls_indirectly(code.get(code.len() - length..).unwrap_or_default())),
    }
}

/// Returns whether these bytes are one instruction that calls a target in a register or in memory: `ff /2`.
#[cfg(target_arch = "x86_64")]
fn calls_indirectly(code: &[u8]) -> bool {
    let [0xff, operand, rest @ ..] = code else { return false };
    if operand >> 3 & 7 != 2 {
        return false;
    }
    let (mode, register) = (operand >> 6, operand & 7);
    let has_index = mode != 3 && register == 4;
    let base = if has_index { rest.first().map_or(0, |index| index & 7) } else { register };
    let displacement = match mode {
        0 if base == 5 => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    rest.len() == usize::from(has_index) + displacement
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn calls_are_recognized() {
        // The address after the six bytes, and the target of a call with the distance 0x10 from there.
        let after = |code: [u8; 7]| Box::leak(Box::new(code)).as_ptr() as u64 + 7;
        let near = after([0x90, 0x90, 0xe8, 0x10, 0, 0, 0]);
        assert!(may_call(near, near + 0x10));
        assert!(!may_call(near, near));
        assert!(may_call(after([0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd4]), 0));
        assert!(!may_call(after([0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0]), 0), "a jump");
        for code in [
            &[0xff, 0x10][..],                           // (%rax)
            &[0xff, 0xd2],                               // %rdx
            &[0xff, 0x50, 0x18],                         // 0x18(%rax)
            &[0xff, 0x54, 0x24, 0x08],                   // 8(%rsp)
            &[0xff, 0x90, 0x00, 0x01, 0x00, 0x00],       // 0x100(%rax)
            &[0xff, 0x14, 0x25, 0x40, 0x06, 0x00, 0x00], // 0x640, of a thread
        ] {
            assert!(calls_indirectly(code), "{code:x?}");
            assert!(!calls_indirectly(&code[1..]), "{code:x?}");
            assert!(!calls_indirectly(&[code, &[0]].concat()), "{code:x?}");
        }
        assert!(!may_call(8, 0));
    }
}
