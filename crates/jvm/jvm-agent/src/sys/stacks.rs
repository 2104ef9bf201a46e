//! The stacks of threads.
//!
//! Owns: counting a method on the stack of a thread, and finding the methods on any stack.

#![expect(unsafe_code, reason = "functions of JVMTI that give memory of the JVM")]

use std::collections::HashSet;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use super::{Jni, Jvmti, Object, Table, index};

/// The number of frames of each thread requested for all threads at once; the JVM allocates memory for this number.
const FRAMES_OF_ALL: c_int = 256;
/// The number of frames of a single thread requested at once: 64 KiB.
const FRAMES_AT_ONCE: c_int = 4096;
/// The maximum depth of a stack that is walked.
const MAX_DEPTH: c_int = 1 << 20;

/// `jvmtiFrameInfo`
#[derive(Clone, Copy)]
#[repr(C)]
struct Frame {
    method: *mut c_void,
    location: i64,
}

/// `jvmtiStackInfo`
#[repr(C)]
struct Stack {
    thread: Object,
    state: c_int,
    frames: *mut Frame,
    count: c_int,
}

/// A method that is on the stack of a thread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Running {
    /// The internal name of its class, in modified UTF-8.
    pub(crate) class: Vec<u8>,
    pub(crate) by_boot_loader: bool,
    /// The method's name and descriptor, in modified UTF-8.
    pub(crate) method: Vec<u8>,
    /// Whether the class was changed after the call began.
    pub(crate) is_obsolete: bool,
}

impl Jvmti {
    /// Calls a function with each frame of a thread's stack, from the top; null means this thread.
    fn frames(self, thread: Object, first: c_int, mut each: impl FnMut(*mut c_void)) {
        let get = function!(
            self.table(),
            index::jvmti::GET_STACK_TRACE - 1,
            fn(Object, c_int, c_int, *mut Frame, *mut c_int) -> c_int
        );
        let room = usize::try_from(FRAMES_AT_ONCE).unwrap_or(0);
        let mut frames = vec![Frame { method: ptr::null_mut(), location: 0 }; room];
        let mut begin = first;
        while begin < MAX_DEPTH {
            let mut count = 0;
            // SAFETY: there is room for `FRAMES_AT_ONCE` frames, and the other pointer is to a local variable.
            let result = unsafe {
                get(self.table(), thread, begin, FRAMES_AT_ONCE, frames.as_mut_ptr(), &raw mut count)
            };
            // It is an error to request frames beyond the last one.
            if result != 0 {
                return;
            }
            frames.iter().take(usize::try_from(count).unwrap_or(0)).for_each(|frame| each(frame.method));
            if count < FRAMES_AT_ONCE {
                return;
            }
            begin += FRAMES_AT_ONCE;
        }
    }

    /// Returns the methods on the stacks of platform threads. The JVM stops all threads meanwhile.
    pub(crate) fn running(self, jni: Jni) -> Vec<Running> {
        let get = function!(
            self.table(),
            index::jvmti::GET_ALL_STACK_TRACES - 1,
            fn(c_int, *mut *mut Stack, *mut c_int) -> c_int
        );
        let (mut place, mut count) = (ptr::null_mut(), 0);
        // SAFETY: both pointers are to local variables.
        let result = unsafe { get(self.table(), FRAMES_OF_ALL, &raw mut place, &raw mut count) };
        if result != 0 || place.is_null() {
            return Vec::new();
        }
        let mut methods = HashSet::new();
        // SAFETY: JVMTI has stored this number of stacks there.
        for stack in unsafe { std::slice::from_raw_parts(place, usize::try_from(count).unwrap_or(0)) } {
            if !stack.frames.is_null() {
                let frames = usize::try_from(stack.count).unwrap_or(0);
                // SAFETY: JVMTI has stored this number of frames of the stack there.
                let frames = unsafe { std::slice::from_raw_parts(stack.frames, frames) };
                methods.extend(frames.iter().map(|frame| frame.method));
            }
            if stack.count >= FRAMES_OF_ALL {
                // The oldest frames are at the other end.
                self.frames(stack.thread, FRAMES_OF_ALL, |method| {
                    methods.insert(method);
                });
            }
            jni.delete_local_ref(stack.thread);
        }
        self.deallocate(place.cast());
        let mut running: Vec<Running> =
            methods.into_iter().filter_map(|method| self.describe(jni, method)).collect();
        running.sort_unstable();
        running
    }

    /// Returns a method's class, name and descriptor. `None` if the class was unloaded.
    fn describe(self, jni: Jni, method: *mut c_void) -> Option<Running> {
        let class_of = function!(
            self.table(),
            index::jvmti::GET_METHOD_DECLARING_CLASS - 1,
            fn(*mut c_void, *mut Object) -> c_int
        );
        let name_of = function!(
            self.table(),
            index::jvmti::GET_METHOD_NAME - 1,
            fn(*mut c_void, *mut *mut c_char, *mut *mut c_char, *mut *mut c_char) -> c_int
        );
        let is_obsolete =
            function!(self.table(), index::jvmti::IS_METHOD_OBSOLETE - 1, fn(*mut c_void, *mut u8) -> c_int);
        let mut class = Object::NULL;
        // SAFETY: JVMTI returned the method, and reports an error if its class was unloaded; the pointer is to a
        // local variable.
        Self::check(unsafe { class_of(self.table(), method, &raw mut class) }).ok()?;
        let signature = self.class_signature(class);
        let by_boot_loader = self.class_loader(class).is_ok_and(|loader| {
            jni.delete_local_ref(loader);
            loader.is_null()
        });
        jni.delete_local_ref(class);
        let class = super::class_name(&signature.ok()?)?.to_vec();
        let (mut name, mut descriptor) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: as above; null means that the generic signature is not wanted.
        let result =
            unsafe { name_of(self.table(), method, &raw mut name, &raw mut descriptor, ptr::null_mut()) };
        Self::check(result).ok()?;
        let mut method_name = self.taken(name);
        method_name.extend(self.taken(descriptor));
        let mut obsolete = 0;
        // SAFETY: as above; `jboolean` is a byte.
        let result = unsafe { is_obsolete(self.table(), method, &raw mut obsolete) };
        Some(Running {
            class,
            by_boot_loader,
            method: method_name,
            is_obsolete: result == 0 && obsolete != 0,
        })
    }

    /// Returns how often the method that called the agent is on the stack of this thread. That method is the topmost
    /// one whose class is not the agent's. Walks the whole stack.
    pub(crate) fn standing(self, jni: Jni, is_ours: impl Fn(&[u8]) -> bool) -> Option<u64> {
        let class_of = function!(
            self.table(),
            index::jvmti::GET_METHOD_DECLARING_CLASS - 1,
            fn(*mut c_void, *mut Object) -> c_int
        );
        let (mut method, mut standing) = (None, 0);
        let mut is_unknown = false;
        self.frames(Object::NULL, 0, |frame| {
            if is_unknown {
                return;
            }
            if method.is_none() {
                let mut class = Object::NULL;
                // SAFETY: the method is on the stack, and the pointer is to a local variable.
                let result = unsafe { class_of(self.table(), frame, &raw mut class) };
                let signature = Self::check(result).and_then(|()| self.class_signature(class));
                jni.delete_local_ref(class);
                match signature {
                    Ok(signature) if is_ours(&signature) => return,
                    Ok(_) => method = Some(frame),
                    Err(_) => is_unknown = true,
                }
            }
            standing += u64::from(method == Some(frame));
        });
        method.filter(|_| !is_unknown).map(|_| standing)
    }
}
