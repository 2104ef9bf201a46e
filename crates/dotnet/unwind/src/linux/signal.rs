//! The signal: its handler, and the slots for the handler's copies.
//!
//! A request names a slot and has a number that is never reused, so that a handler that runs late finds its request gone.
//! The handler changes nothing but its slot: no allocation, no lock, and errno is preserved. Most of the unsafe code of
//! this crate is here and in `memory`.

#![expect(unsafe_code, reason = "a signal handler requires unsafe code")]

use std::io;
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use super::memory;
use crate::StartError;

/// The most threads with pending requests.
pub(super) const SLOTS: usize = 128;

/// The pool for the handler; null before the first sampler. Pools are never freed, because a signal may be in flight.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());

/// The number of the last request of all samplers of this process: a signal of an earlier sampler may still arrive.
static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Slots for several threads.
#[derive(Debug)]
pub(super) struct Pool {
    /// The process that created it. In a forked child, slots can be in use for threads that exist only in the parent.
    process: u32,
    slots: Vec<Slot>,
    /// The copies of all slots, concatenated. The kernel allocates no memory for untouched ones.
    stacks: Box<[AtomicU64]>,
    /// The size of each copy, in words.
    words: usize,
}

/// The answer of a thread.
#[derive(Debug)]
pub(super) struct Slot {
    /// The number of the request, and its state in the two lowest bits.
    state: AtomicU64,
    /// The start of the thread's stack, beyond which nothing is needed; 0 if unknown.
    top: AtomicU64,
    registers: [AtomicU64; 4],
    copied: AtomicUsize,
}

const FREE: u64 = 0;
const REQUESTED: u64 = 1;
const WRITING: u64 = 2;
const DONE: u64 = 3;

/// A pending request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    number: u64,
    slot: usize,
}

/// The registers for starting to unwind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Registers {
    pub(super) instruction: u64,
    pub(super) stack: u64,
    pub(super) frame: u64,
    /// The return address of a function that has not saved it; arm64 only.
    pub(super) link: u64,
}

/// A reason why a thread was not signalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoTicket {
    /// All slots are in use.
    Full,
    /// The thread does not exist, or the signal queue is full.
    Rejected,
}

/// The state of a request.
#[derive(Debug)]
pub(super) enum Answer<'a> {
    /// There is no answer yet.
    Pending,
    /// The registers, and the words from the stack pointer on.
    Ready(Registers, &'a [AtomicU64]),
}

impl Pool {
    /// Returns the pool of this process, with stacks of at least `bytes` bytes.
    pub(super) fn of_this_process(bytes: usize) -> &'static Self {
        let (words, process) = (bytes.div_ceil(8), process::id());
        // SAFETY: the pointer is null or from the leak below, which is never freed.
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

    /// Requests a thread's stack, up to `top` if the stack pointer is below it.
    pub(super) fn request(&self, signal: i32, thread: libc::pid_t, top: u64) -> Result<Ticket, NoTicket> {
        let free = |(_, slot): &(usize, &Slot)| slot.state.load(Ordering::Acquire) & 3 == FREE;
        let (at, slot) = self.slots.iter().enumerate().find(free).ok_or(NoTicket::Full)?;
        let number = LAST_NUMBER.fetch_add(1, Ordering::Relaxed) + 1;
        slot.top.store(top, Ordering::Relaxed);
        slot.state.store(number << 2 | REQUESTED, Ordering::Release);
        let ticket = Ticket { number, slot: at };
        if send(signal, thread, ticket).is_err() {
            slot.state.store(FREE, Ordering::Release);
            return Err(NoTicket::Rejected);
        }
        Ok(ticket)
    }

    /// Returns the answer of the thread.
    pub(super) fn answer(&self, ticket: Ticket) -> Answer<'_> {
        let Some(slot) = self.slots.get(ticket.slot) else { return Answer::Pending };
        if slot.state.load(Ordering::Acquire) != ticket.number << 2 | DONE {
            return Answer::Pending;
        }
        let [instruction, stack, frame, link] = slot.registers.each_ref().map(|r| r.load(Ordering::Relaxed));
        let copied = slot.copied.load(Ordering::Relaxed) / 8;
        let words = self.stack(ticket.slot).get(..copied).unwrap_or_default();
        Answer::Ready(Registers { instruction, stack, frame, link }, words)
    }

    fn stack(&self, slot: usize) -> &[AtomicU64] {
        let start = slot.saturating_mul(self.words);
        self.stacks.get(start..start.saturating_add(self.words)).unwrap_or_default()
    }

    /// Frees the slot for the next request. `false` if the thread is writing to it at this moment.
    pub(super) fn release(&self, ticket: Ticket) -> bool {
        let Some(slot) = self.slots.get(ticket.slot) else { return true };
        let gone = |from| {
            let from = ticket.number << 2 | from;
            slot.state.compare_exchange(from, FREE, Ordering::AcqRel, Ordering::Acquire).is_ok()
        };
        gone(REQUESTED) || gone(DONE)
    }
}

/// Returns the current action of a signal.
fn current(signal: i32) -> Result<libc::sigaction, StartError> {
    // SAFETY: a sigaction of zeros is a valid value, and outlives the call that writes to it.
    let (failed, action) = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(signal, ptr::null(), &raw mut action) != 0, action)
    };
    if failed {
        return Err(StartError::Handler { signal, error: io::Error::last_os_error() });
    }
    Ok(action)
}

/// Installs the handler. It is never removed, because a signal may be in flight.
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
    // Checked before the handler is replaced, because otherwise the program could miss a signal.
    if ![libc::SIG_DFL, libc::SIG_IGN, ours].contains(&current(signal)?.sa_sigaction) {
        return Err(StartError::SignalInUse(signal));
    }
    // SAFETY: a sigaction of zeros is a valid value: the default action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = ours;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the handler has the signature for SA_SIGINFO and does only what a handler may do; the pointer is
    // to a value that outlives the call.
    if unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } != 0 {
        return Err(StartError::Handler { signal, error: io::Error::last_os_error() });
    }
    Ok(())
}

/// The data of a signal that was sent with a value, in the kernel's layout on 64-bit systems.
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
    // SAFETY: both calls have no arguments and cannot fail.
    (info.process, info.user) = unsafe { (libc::getpid(), libc::getuid()) };
    // SAFETY: the kernel reads one siginfo_t, whose size is checked above. The signal has a handler; the kernel rejects a
    // number that is not a thread of this process.
    let sent =
        unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, info.process, thread, signal, &raw const info) };
    if sent == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The signal handler. Must not allocate, lock, or panic.
extern "C" fn handle(_: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a siginfo_t and a ucontext_t that outlive the handler and are only read
    // here. `Info` has the size and the alignment of a siginfo_t, and any bytes are a valid value. The pool is
    // never freed. errno belongs to this thread.
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
    /// Fills the slot, on the sampled thread.
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

/// Blocks or unblocks a signal on the calling thread.
#[cfg(test)]
pub(super) fn block(signal: i32, block: bool) {
    let how = if block { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
    // SAFETY: a set of zeros is a valid, empty set, and outlives both calls.
    unsafe {
        let mut set = std::mem::zeroed();
        assert_eq!(libc::sigaddset(&raw mut set, signal), 0);
        assert_eq!(libc::pthread_sigmask(how, &raw const set, ptr::null_mut()), 0);
    }
}

/// Serializes the tests that use the pool.
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
        // The handler is never replaced, not even briefly: another thread checks it continuously.
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
        // The signals that the C library reserves for itself.
        assert!(matches!(install(32), Err(StartError::Handler { .. })));
        install(libc::SIGURG).unwrap();
        install(libc::SIGURG).unwrap();
    }

    #[test]
    fn a_thread_answers_only_its_own_request_and_once() {
        let _alone = alone();
        install(libc::SIGURG).unwrap();
        let pool = Pool::of_this_process(4096);
        let this = memory::current_thread();
        let ticket = pool.request(libc::SIGURG, this, 0).unwrap();
        // A thread receives its own signal before the call returns.
        let Answer::Ready(registers, words) = pool.answer(ticket) else { panic!("no answer") };
        let here = ptr::from_ref(&ticket) as u64;
        assert!(registers.stack <= here && here < registers.stack + 4096 * 8);
        assert_eq!(words.len(), 512);
        assert!(matches!(pool.answer(Ticket { number: ticket.number + 1, ..ticket }), Answer::Pending));
        assert!(!pool.release(Ticket { number: ticket.number + 1, ..ticket }));
        assert!(pool.release(ticket));
        let ticket = pool.request(libc::SIGURG, this, here + 64).unwrap();
        let Answer::Ready(registers, words) = pool.answer(ticket) else { panic!("no answer") };
        assert_eq!(registers.stack + words.len() as u64 * 8, here / 8 * 8 + 64);
        assert!(pool.release(ticket));
        // A late answer, whose request was released.
        pool.fill(ticket, registers);
        assert!(matches!(pool.answer(ticket), Answer::Pending));
        assert_eq!(pool.request(libc::SIGURG, 5_000_000, 0), Err(NoTicket::Rejected));
    }
}
