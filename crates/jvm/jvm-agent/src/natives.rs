//! The slow path of probes: a thread's first event, a full ring, a change of the virtual thread, exceptions.
//!
//! Owns: the native methods of the probe class; `room` implements what a thread does without room. They run on program
//! threads, between any two instructions of the program: they call no Java code and leave no exception pending.

#![expect(unsafe_code, reason = "native methods of a Java class, and a pointer to the ring of the thread")]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use runtap_bytefrog_proto::WhenSlow;

use crate::ring::{EventKind, RawEvent, Ring, method_of};
use crate::room::put;
use crate::session::{Agent, agent};
use crate::sys::{Jni, Native, Object, class_name};

thread_local! {
    /// The ring of this thread, valid while the thread lives; `Agent::rings` owns it.
    static MINE: Cell<Option<&'static Ring>> = const { Cell::new(None) };
    /// The ids of exceptions that this thread has thrown.
    static THROWN: RefCell<HashMap<Vec<u8>, u32>> = RefCell::new(HashMap::new());
    /// The head of the ring after the last call that a stack overflow has ended. If no event was written since, the unwinding
    /// continues, and no frame is missing.
    static UNWOUND: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The class of the exception for a stack overflow.
const FULL_STACK: &[u8] = b"Ljava/lang/StackOverflowError;";

/// Returns the native methods to register.
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
        match EventKind::of(word) {
            Some(EventKind::Count) => ring.count(method_of(word), false),
            Some(EventKind::CountThrown) => ring.count(method_of(word), true),
            _ => {
                let event = RawEvent { time: time.cast_unsigned(), word };
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
        let unwinds = full && EventKind::of(word) == Some(EventKind::Bubble);
        if unwinds && UNWOUND.get() != Some(ring.head()) && !ring.degraded.load(Ordering::Relaxed) {
            tell_standing(agent, jni, ring, current, RawEvent { time, word });
        }
        let more = RawEvent { time: id.into(), word: EventKind::More.word() };
        put(|| reader(agent), ring, current, &[RawEvent { time, word }, more]);
        UNWOUND.set(unwinds.then(|| ring.head()));
    }));
}

/// Returns the current trace's policy for a full ring. `None` if the rings are not read.
fn reader(agent: &Agent) -> Option<WhenSlow> {
    (!agent.is_gone()).then(|| agent.when_slow())
}

/// Returns the ring of this thread.
fn mine(agent: &'static Agent, jni: Jni, tid: u64) -> Option<&'static Ring> {
    if let Some(ring) = MINE.get().filter(|ring| ring.tid == tid) {
        // Another thread has used this thread's slot, and may have ended.
        agent.table.enter(ring);
        return Some(ring);
    }
    // A thread that is being attached runs the constructor of its own `Thread`, which has no id and no name yet.
    if tid == 0 {
        return None;
    }
    // Another Java thread was attached to this system thread before.
    end(agent);
    let name = agent.jvmti().and_then(|jvmti| jvmti.thread_name(jni)).unwrap_or_default();
    let ring = Arc::new(Ring::new(tid, name, agent.first_limit()).ok()?);
    // SAFETY: `Agent::rings` keeps the ring until `end` is called on this thread, after which this thread does not read the
    // pointer again.
    let mine: &'static Ring = unsafe { &*Arc::as_ptr(&ring) };
    agent.rings.add(ring);
    agent.table.enter(mine);
    MINE.set(Some(mine));
    Some(mine)
}

/// Writes how many calls of the method remain, when a stack overflow ends a call whose probe had stack space again. Calls
/// above it may have ended without an event, since their probes had no space.
fn tell_standing(agent: &Agent, jni: Jni, ring: &Ring, current: u64, ends: RawEvent) {
    // This is not an event: a thread that would drop events does not wait for it, and it does not count as dropped.
    if !ring.has_room(8) && agent.when_slow() != WhenSlow::Block {
        return;
    }
    let is_ours =
        |class: &[u8]| class.starts_with(b"Ljava/lang/RuntapProbe_") || class.starts_with(b"Lruntap/Slow_");
    let Some(standing) = agent.jvmti().and_then(|jvmti| jvmti.standing(jni, is_ours)) else { return };
    let word = EventKind::Standing.word() | u64::from(method_of(ends.word));
    let more = RawEvent { time: standing, word: EventKind::More.word() };
    put(|| reader(agent), ring, current, &[RawEvent { time: ends.time, word }, more]);
}

/// Returns the id of an exception's class, and whether it is a stack overflow.
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

/// Handles the end of this thread: the reader drains and frees its ring; without a reader it is freed at once.
pub(crate) fn end(agent: &Agent) {
    if let Some(ring) = MINE.take() {
        // Once `ended` is set, the reader may free the ring, and another thread's ring may get its address.
        let _held = agent.rings.hold(ring);
        agent.table.leave(ring);
        ring.ended.store(true, Ordering::Release);
        if agent.is_gone() {
            agent.rings.forget(ring);
        }
    }
}
