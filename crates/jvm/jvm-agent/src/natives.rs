//! What probes do not do in bytecode: a thread's first event, a full ring, a change of the virtual thread, exceptions.
//!
//! Owns: the native methods of the probe class; `room` has what a thread does when there is no room. They run on program threads,
//! in between any two instructions of the program: they call no Java code, and leave no exception.

#![expect(unsafe_code, reason = "native methods of a Java class, and a pointer to the ring of the thread")]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use runtap_bytefrog_proto::WhenSlow;

use crate::ring::{Kind, Raw, Ring, method_of};
use crate::room::put;
use crate::session::{Agent, agent};
use crate::sys::{Jni, Native, Object, class_name};

thread_local! {
    /// The ring of this thread, as long as the thread lives: `Agent::rings` owns it.
    static MINE: Cell<Option<&'static Ring>> = const { Cell::new(None) };
    /// Ids of exceptions that this thread has thrown.
    static THROWN: RefCell<HashMap<Vec<u8>, u32>> = RefCell::new(HashMap::new());
    /// The head of the ring after the last call that a full stack has ended: if nothing was written since, the unwinding goes
    /// on, and no frame is missing.
    static UNWOUND: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The class of the exception that says that the stack is full.
const FULL_STACK: &[u8] = b"Ljava/lang/StackOverflowError;";

/// The native methods, to be registered.
pub(crate) fn natives() -> [Native; 2] {
    [
        Native { name: c"slow", descriptor: c"(JJJJ)V", function: slow as *const c_void },
        Native {
            name: c"thrown",
            descriptor: c"(Ljava/lang/Throwable;JJJJ)V",
            function: thrown as *const c_void,
        },
    ]
}

extern "system" fn slow(env: *mut c_void, _: Object, what: i64, tid: i64, current: i64, time: i64) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let (Some(agent), Some(jni)) = (agent(), Jni::from_raw(env)) else { return };
        let Some(ring) = mine(agent, jni, tid.cast_unsigned()) else { return };
        let word = what.cast_unsigned();
        match Kind::of(word) {
            Some(Kind::Count) => ring.count(method_of(word), false),
            Some(Kind::CountThrown) => ring.count(method_of(word), true),
            _ => {
                let event = Raw { time: time.cast_unsigned(), word };
                put(|| reader(agent), ring, current.cast_unsigned(), &[event]);
            }
        }
    }));
}

extern "system" fn thrown(
    env: *mut c_void,
    _: Object,
    throwable: Object,
    what: i64,
    tid: i64,
    current: i64,
    time: i64,
) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let (Some(agent), Some(jni)) = (agent(), Jni::from_raw(env)) else { return };
        let Some(ring) = mine(agent, jni, tid.cast_unsigned()) else { return };
        let (id, full) =
            if throwable.is_null() { (u32::MAX, false) } else { exception(agent, jni, throwable) };
        let (time, word, current) = (time.cast_unsigned(), what.cast_unsigned(), current.cast_unsigned());
        let unwinds = full && Kind::of(word) == Some(Kind::Bubble);
        if unwinds && UNWOUND.get() != Some(ring.head()) && !ring.degraded.load(Ordering::Relaxed) {
            tell_standing(agent, jni, ring, current, Raw { time, word });
        }
        let more = Raw { time: id.into(), word: Kind::More.word() };
        put(|| reader(agent), ring, current, &[Raw { time, word }, more]);
        UNWOUND.set(unwinds.then(|| ring.head()));
    }));
}

/// What a thread does whose ring is full: the policy of the current trace. `None` if nothing reads the rings.
fn reader(agent: &Agent) -> Option<WhenSlow> {
    (!agent.is_gone()).then(|| agent.when_slow())
}

/// The ring of this thread.
fn mine(agent: &'static Agent, jni: Jni, tid: u64) -> Option<&'static Ring> {
    if let Some(ring) = MINE.get().filter(|ring| ring.tid == tid) {
        // Another thread has had its slot, and may be gone.
        agent.table.enter(ring);
        return Some(ring);
    }
    // A thread that is being attached runs the constructor of its own `Thread`: it has no id and no name yet.
    if tid == 0 {
        return None;
    }
    // Another thread of Java was on this thread of the system.
    end(agent);
    let name = agent.jvmti().and_then(|jvmti| jvmti.thread_name(jni)).unwrap_or_default();
    let ring = Arc::new(Ring::new(tid, name, agent.first_limit()).ok()?);
    // SAFETY: `Agent::rings` keeps it until the thread has ended, which is said in `end` on this thread, after which nothing
    // on this thread reads the pointer again.
    let mine: &'static Ring = unsafe { &*Arc::as_ptr(&ring) };
    agent.rings.add(ring);
    agent.table.enter(mine);
    MINE.set(Some(mine));
    Some(mine)
}

/// A call is ended by a full stack, and its probe had room again. Calls above it may have ended without a word, since their
/// probes had none: how many there are still is what the reader needs to know.
fn tell_standing(agent: &Agent, jni: Jni, ring: &Ring, current: u64, ends: Raw) {
    // It is no event: nothing waits for it that would rather lose events, and it does not count as a lost one.
    if !ring.has_room(8) && agent.when_slow() != WhenSlow::Block {
        return;
    }
    let is_ours =
        |class: &[u8]| class.starts_with(b"Ljava/lang/RuntapProbe_") || class.starts_with(b"Lruntap/Slow_");
    let Some(standing) = agent.jvmti().and_then(|jvmti| jvmti.standing(jni, is_ours)) else { return };
    let word = Kind::Standing.word() | u64::from(method_of(ends.word));
    let more = Raw { time: standing, word: Kind::More.word() };
    put(|| reader(agent), ring, current, &[Raw { time: ends.time, word }, more]);
}

/// The id of the class of an exception, and whether it says that the stack is full.
fn exception(agent: &Agent, jni: Jni, throwable: Object) -> (u32, bool) {
    let Some(class) = jni.object_class(throwable) else { return (u32::MAX, false) };
    let signature = agent.jvmti().and_then(|jvmti| jvmti.class_signature(class).ok()).unwrap_or_default();
    jni.delete_local_ref(class);
    let full = signature == FULL_STACK;
    let id = THROWN.with_borrow_mut(|known| {
        if let Some(id) = known.get(&signature) {
            return *id;
        }
        // `Ljava/io/IOException;` is `java.io.IOException`.
        let name = class_name(&signature).unwrap_or(&signature);
        let name: Vec<u8> = name.iter().map(|byte| if *byte == b'/' { b'.' } else { *byte }).collect();
        let id = agent.exceptions.id(&name, u32::MAX).unwrap_or(u32::MAX);
        known.insert(signature, id);
        id
    });
    (id, full)
}

/// This thread ends: its ring is drained and freed by whoever reads it, at once if nobody does.
pub(crate) fn end(agent: &Agent) {
    if let Some(ring) = MINE.take() {
        // Once it has ended, whoever reads it may free it, and another thread's may get its place.
        let _held = agent.rings.hold(ring);
        agent.table.leave(ring);
        ring.ended.store(true, Ordering::Release);
        if agent.is_gone() {
            agent.rings.forget(ring);
        }
    }
}
