//! The signal: its handler, and the slots in which the handler leaves what it copied.
//!
//! A request names a slot and has a number that is never used again, so that a handler that runs late finds its request
//! gone. The handler changes nothing but its slot: no allocation, no lock, errno as it was. Half of the unsafe code of this
//! crate; `memory` is the other.

#![expect(unsafe_code, reason = "a signal handler can't be had otherwise")]

use std::io;
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use super::memory;
use crate::StartError;

/// As many threads are asked at the same time.
pub(super) const SLOTS: usize = 128;

/// What a handler finds; null before the first sampler. Pools are never freed: a signal may always be under way.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());

/// The number of the last request. For all samplers that this process ever has: a signal that an earlier one sent may
/// arrive now.
static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Slots for as many threads.
#[derive(Debug)]
pub(super) struct Pool {
    /// The process that made it. In a forked child, slots can be taken for threads that exist only in the parent.
    process: u32,
    slots: Vec<Slot>,
    /// The slots' copies, one after the other. Of untouched ones the kernel has no memory.
    stacks: Box<[AtomicU64]>,
    /// The size of each.
    words: usize,
}

/// What a thread leaves.
#[derive(Debug)]
pub(super) struct Slot {
    /// The number of the request, and in its two lowest bits what has become of it.
    state: AtomicU64,
    /// Where the thread's stack begins, 0 if that is not known: nothing beyond is needed.
    top: AtomicU64,
    registers: [AtomicU64; 4],
    copied: AtomicUsize,
}

const FREE: u64 = 0;
const REQUESTED: u64 = 1;
const WRITING: u64 = 2;
const DONE: u64 = 3;

/// A request that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    number: u64,
    slot: usize,
}

/// What is needed to begin unwinding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Registers {
    pub(super) instruction: u64,
    pub(super) stack: u64,
    pub(super) frame: u64,
    /// The return address of a function that has not saved it; arm64 only.
    pub(super) link: u64,
}

/// Why nobody was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoTicket {
    /// All slots are in use.
    Full,
    /// There is no such thread, or no room for another signal.
    Refused,
}

/// What has become of a request.
#[derive(Debug)]
pub(super) enum Answer<'a> {
    /// None yet.
    Pending,
    /// Registers, and the words from the stack pointer on.
    Here(Registers, &'a [AtomicU64]),
}

impl Pool {
    /// The pool of this process, with stacks of at least `bytes`.
    pub(super) fn of_this_process(bytes: usize) -> &'static Self {
        let (words, process) = (bytes.div_ceil(8), process::id());
        // SAFETY: the pointer is null or from the leak below, which nobody frees.
        if let Some(pool) = unsafe { POOL.load(Ordering::Acquire).as_ref() }
            && pool.words >= words
            && pool.process == process
        {
            return pool;
        }
        let slot = || Slot {
            state: AtomicU64::new(FREE),
            top: AtomicU64::new(0),
            registers: Default::default(),
            copied: AtomicUsize::new(0),
        };
        let slots = std::iter::repeat_with(slot).take(SLOTS).collect();
        // SAFETY: an AtomicU64 of zeros is 0.
        let stacks = unsafe { Box::new_zeroed_slice(SLOTS.saturating_mul(words)).assume_init() };
        let pool: &'static Self = Box::leak(Box::new(Self { process, slots, stacks, words }));
        POOL.store(ptr::from_ref(pool).cast_mut(), Ordering::Release);
        pool
    }

    /// Asks a thread for its stack, up to `top` if the stack pointer is below.
    pub(super) fn request(&self, signal: i32, thread: libc::pid_t, top: u64) -> Result<Ticket, NoTicket> {
        let free = |(_, slot): &(usize, &Slot)| slot.state.load(Ordering::Acquire) & 3 == FREE;
        let (at, slot) = self.slots.iter().enumerate().find(free).ok_or(NoTicket::Full)?;
        let number = LAST_NUMBER.fetch_add(1, Ordering::Relaxed) + 1;
        slot.top.store(top, Ordering::Relaxed);
        slot.state.store(number << 2 | REQUESTED, Ordering::Release);
        let ticket = Ticket { number, slot: at };
        if send(signal, thread, ticket).is_err() {
            slot.state.store(FREE, Ordering::Release);
            return Err(NoTicket::Refused);
        }
        Ok(ticket)
    }

    /// What the thread has answered.
    pub(super) fn answer(&self, ticket: Ticket) -> Answer<'_> {
        let Some(slot) = self.slots.get(ticket.slot) else { return Answer::Pending };
        if slot.state.load(Ordering::Acquire) != ticket.number << 2 | DONE {
            return Answer::Pending;
        }
        let [instruction, stack, frame, link] = slot.registers.each_ref().map(|r| r.load(Ordering::Relaxed));
        let copied = slot.copied.load(Ordering::Relaxed) / 8;
        let words = self.stack(ticket.slot).get(..copied).unwrap_or_default();
        Answer::Here(Registers { instruction, stack, frame, link }, words)
    }

    fn stack(&self, slot: usize) -> &[AtomicU64] {
        let start = slot.saturating_mul(self.words);
        self.stacks.get(start..start.saturating_add(self.words)).unwrap_or_default()
    }

    /// Has the slot free for the next request, unless the thread is writing to it at this moment.
    pub(super) fn release(&self, ticket: Ticket) -> bool {
        let Some(slot) = self.slots.get(ticket.slot) else { return true };
        let gone = |from| {
            let from = ticket.number << 2 | from;
            slot.state.compare_exchange(from, FREE, Ordering::AcqRel, Ordering::Acquire).is_ok()
        };
        gone(REQUESTED) || gone(DONE)
    }
}

/// What the process does on a signal.
fn current(signal: i32) -> Result<libc::sigaction, StartError> {
    // SAFETY: a sigaction of zeros is a valid value, and lives through the call that writes to it.
    let (failed, action) = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(signal, ptr::null(), &raw mut action) != 0, action)
    };
    if failed {
        return Err(StartError::Handler { signal, error: io::Error::last_os_error() });
    }
    Ok(action)
}

/// Installs the handler. It stays for the life of the process: one signal may always be under way.
pub(super) fn install(signal: i32) -> Result<(), StartError> {
    const ERRORS: [i32; 6] =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT];
    if !(1..=64).contains(&signal)
        || ERRORS.contains(&signal)
        || [libc::SIGKILL, libc::SIGSTOP].contains(&signal)
    {
        return Err(StartError::UnusableSignal(signal));
    }
    let ours = handle as extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) as usize;
    // Before it is replaced: without its handler, the program could miss a signal.
    if ![libc::SIG_DFL, libc::SIG_IGN, ours].contains(&current(signal)?.sa_sigaction) {
        return Err(StartError::SignalInUse(signal));
    }
    // SAFETY: a sigaction of zeros is a valid value: the default action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = ours;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the handler has the signature that SA_SIGINFO asks for and does only what a handler may; the pointer is
    // to a value that lives through the call.
    if unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } != 0 {
        return Err(StartError::Handler { signal, error: io::Error::last_os_error() });
    }
    Ok(())
}

/// A signal's data as the kernel lays it out on 64-bit machines, for one that was sent with a value.
#[repr(C)]
struct Info {
    signal: i32,
    errno: i32,
    code: i32,
    padding: i32,
    process: i32,
    user: u32,
    value: u64,
    rest: [u64; 12],
}

const _: () = assert!(size_of::<Info>() == size_of::<libc::siginfo_t>());

impl Ticket {
    fn to_value(self) -> u64 {
        self.number << 8 | self.slot as u64
    }

    fn from_value(value: u64) -> Self {
        Self { number: value >> 8, slot: usize::from(value.to_le_bytes()[0]) }
    }
}

fn send(signal: i32, thread: libc::pid_t, ticket: Ticket) -> io::Result<()> {
    let mut info = Info {
        signal,
        errno: 0,
        code: libc::SI_QUEUE,
        padding: 0,
        process: 0,
        user: 0,
        value: ticket.to_value(),
        rest: [0; 12],
    };
    // SAFETY: the two have neither arguments nor failures.
    (info.process, info.user) = unsafe { (libc::getpid(), libc::getuid()) };
    // SAFETY: the kernel reads one siginfo_t, whose size is checked above. The signal has a handler; a number that is no
    // thread of this process is refused.
    let sent =
        unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, info.process, thread, signal, &raw const info) };
    if sent == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The handler. Nothing in here may allocate, lock, or panic.
extern "C" fn handle(_: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a siginfo_t and a ucontext_t that live until the handler returns. They
    // are only read. `Info` has the size and the alignment of a siginfo_t, and any bytes are a value of it. The pool is
    // never freed. The place of errno is this thread's own.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let (info, context) = (info.cast::<Info>().as_ref(), context.cast::<libc::ucontext_t>().as_ref());
        if let (Some(info), Some(context), Some(pool)) =
            (info, context, POOL.load(Ordering::Acquire).as_ref())
            && info.code == libc::SI_QUEUE
        {
            pool.fill(Ticket::from_value(info.value), registers(context));
        }
        *errno = before;
    }
}

impl Pool {
    /// On the sampled thread.
    fn fill(&self, ticket: Ticket, registers: Registers) {
        let Some(slot) = self.slots.get(ticket.slot) else { return };
        let requested = ticket.number << 2 | REQUESTED;
        let writing = ticket.number << 2 | WRITING;
        if slot.state.compare_exchange(requested, writing, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return;
        }
        let values = [registers.instruction, registers.stack, registers.frame, registers.link];
        for (place, value) in slot.registers.iter().zip(values) {
            place.store(value, Ordering::Relaxed);
        }
        let stack = self.stack(ticket.slot);
        let needed = slot.top.load(Ordering::Relaxed).checked_sub(registers.stack).map(|bytes| bytes / 8);
        let stack = needed.and_then(|words| stack.get(..usize::try_from(words).ok()?)).unwrap_or(stack);
        slot.copied.store(memory::copy_words(registers.stack, stack), Ordering::Relaxed);
        slot.state.store(ticket.number << 2 | DONE, Ordering::Release);
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(context: &libc::ucontext_t) -> Registers {
    let get = |register: i32| {
        let index = usize::try_from(register).unwrap_or(usize::MAX);
        context.uc_mcontext.gregs.get(index).map_or(0, |value| value.cast_unsigned())
    };
    Registers {
        instruction: get(libc::REG_RIP),
        stack: get(libc::REG_RSP),
        frame: get(libc::REG_RBP),
        link: 0,
    }
}

#[cfg(target_arch = "aarch64")]
fn registers(context: &libc::ucontext_t) -> Registers {
    let machine = &context.uc_mcontext;
    let get = |register: usize| machine.regs.get(register).copied().unwrap_or_default();
    Registers { instruction: machine.pc, stack: machine.sp, frame: get(29), link: get(30) }
}

/// Blocks a signal on the calling thread, or no longer.
#[cfg(test)]
pub(super) fn block(signal: i32, block: bool) {
    let how = if block { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
    // SAFETY: a set of zeros is a valid, empty one, and lives through both calls.
    unsafe {
        let mut set = std::mem::zeroed();
        assert_eq!(libc::sigaddset(&raw mut set, signal), 0);
        assert_eq!(libc::pthread_sigmask(how, &raw const set, ptr::null_mut()), 0);
    }
}

/// There is one pool at a time.
#[cfg(test)]
pub(super) fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn nothing(_: i32) {}

    #[test]
    fn a_handler_of_the_program_stays() {
        let install_theirs = || {
            // SAFETY: the handler does nothing; no other test uses this signal.
            unsafe { libc::signal(libc::SIGUSR2, nothing as extern "C" fn(i32) as usize) }
        };
        install_theirs();
        let theirs = nothing as extern "C" fn(i32) as usize;
        // Not even for a moment is it another: another thread looks all the time.
        let ended = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let looks = scope.spawn(|| {
                let (mut looks, mut replaced) = (0_u64, 0_u64);
                while looks == 0 || !ended.load(Ordering::Acquire) {
                    replaced += u64::from(current(libc::SIGUSR2).unwrap().sa_sigaction != theirs);
                    looks += 1;
                }
                replaced
            });
            for _ in 0..100_000 {
                let refused = install(libc::SIGUSR2);
                assert!(matches!(refused, Err(StartError::SignalInUse(signal)) if signal == libc::SIGUSR2));
            }
            ended.store(true, Ordering::Release);
            assert_eq!(looks.join().unwrap(), 0);
        });
        assert_eq!(install_theirs(), theirs);
        for signal in [0, 65, libc::SIGSEGV, libc::SIGKILL] {
            assert!(matches!(install(signal), Err(StartError::UnusableSignal(_))), "{signal}");
        }
        // Those that the C library keeps for itself.
        assert!(matches!(install(32), Err(StartError::Handler { .. })));
        install(libc::SIGURG).unwrap();
        install(libc::SIGURG).unwrap();
    }

    #[test]
    fn a_thread_answers_once_and_only_the_request_that_it_was_sent() {
        let _alone = alone();
        install(libc::SIGURG).unwrap();
        let pool = Pool::of_this_process(4096);
        let this = memory::current_thread();
        let ticket = pool.request(libc::SIGURG, this, 0).unwrap();
        // A thread gets its own signal before the call returns.
        let Answer::Here(registers, words) = pool.answer(ticket) else { panic!("no answer") };
        let here = ptr::from_ref(&ticket) as u64;
        assert!(registers.stack <= here && here < registers.stack + 4096 * 8);
        assert_eq!(words.len(), 512);
        assert!(matches!(pool.answer(Ticket { number: ticket.number + 1, ..ticket }), Answer::Pending));
        assert!(!pool.release(Ticket { number: ticket.number + 1, ..ticket }));
        assert!(pool.release(ticket));
        let ticket = pool.request(libc::SIGURG, this, here + 64).unwrap();
        let Answer::Here(registers, words) = pool.answer(ticket) else { panic!("no answer") };
        assert_eq!(registers.stack + words.len() as u64 * 8, here / 8 * 8 + 64);
        assert!(pool.release(ticket));
        // Late: nobody waits for it any more.
        pool.fill(ticket, registers);
        assert!(matches!(pool.answer(ticket), Answer::Pending));
        assert_eq!(pool.request(libc::SIGURG, 5_000_000, 0), Err(NoTicket::Refused));
    }
}
