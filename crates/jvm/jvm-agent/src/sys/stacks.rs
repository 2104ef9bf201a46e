//! Stacks of threads.
//!
//! Owns: how often a method is on the stack of a thread, and which methods are on any.

#![expect(unsafe_code, reason = "functions of JVMTI that give memory of the JVM")]

use std::collections::HashSet;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use super::{Jni, Jvmti, Object, Table, index};

/// Frames of each thread that are requested for all threads at once: the JVM takes memory for as many of each thread.
const OF_ALL: c_int = 256;
/// Frames that are requested at once of a single thread: 64 KiB.
const PART: c_int = 4096;
/// The deepest stack that is walked.
const MOST: c_int = 1 << 20;

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
    /// Its name and its descriptor, in modified UTF-8.
    pub(crate) method: Vec<u8>,
    /// Its class has got other code since the call began.
    pub(crate) is_obsolete: bool,
}

impl Jvmti {
    /// Calls a function with each frame of a thread's stack, from the top; null is this thread.
    fn frames(self, thread: Object, first: c_int, mut each: impl FnMut(*mut c_void)) {
        let get = function!(
            self.table(),
            index::jvmti::GET_STACK_TRACE - 1,
            fn(Object, c_int, c_int, *mut Frame, *mut c_int) -> c_int
        );
        let room = usize::try_from(PART).unwrap_or(0);
        let mut frames = vec![Frame { method: ptr::null_mut(), location: 0 }; room];
        let mut begin = first;
        while begin < MOST {
            let mut count = 0;
            // SAFETY: there is room for so many frames, and the other pointer is to a variable of ours.
            let result =
                unsafe { get(self.table(), thread, begin, PART, frames.as_mut_ptr(), &raw mut count) };
            // Behind the last frame, it is an error to ask for more.
            if result != 0 {
                return;
            }
            frames.iter().take(usize::try_from(count).unwrap_or(0)).for_each(|frame| each(frame.method));
            if count < PART {
                return;
            }
            begin += PART;
        }
    }

    /// The methods that are on the stacks of platform threads. The JVM stops all threads meanwhile.
    pub(crate) fn running(self, jni: Jni) -> Vec<Running> {
        let get = function!(
            self.table(),
            index::jvmti::GET_ALL_STACK_TRACES - 1,
            fn(c_int, *mut *mut Stack, *mut c_int) -> c_int
        );
        let (mut place, mut count) = (ptr::null_mut(), 0);
        // SAFETY: both pointers are to variables of ours.
        let result = unsafe { get(self.table(), OF_ALL, &raw mut place, &raw mut count) };
        if result != 0 || place.is_null() {
            return Vec::new();
        }
        let mut methods = HashSet::new();
        // SAFETY: JVMTI has put so many stacks there.
        for stack in unsafe { std::slice::from_raw_parts(place, usize::try_from(count).unwrap_or(0)) } {
            if !stack.frames.is_null() {
                let frames = usize::try_from(stack.count).unwrap_or(0);
                // SAFETY: JVMTI has put so many frames of this stack there.
                let frames = unsafe { std::slice::from_raw_parts(stack.frames, frames) };
                methods.extend(frames.iter().map(|frame| frame.method));
            }
            if stack.count >= OF_ALL {
                // What began first is at the other end.
                self.frames(stack.thread, OF_ALL, |method| {
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

    /// What a method is called. `None` if its class is gone.
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
        // SAFETY: JVMTI gave the method, and says so if its class was unloaded; the pointer is to a variable of ours.
        Self::check(unsafe { class_of(self.table(), method, &raw mut class) }).ok()?;
        let signature = self.class_signature(class);
        let by_boot_loader = self.class_loader(class).is_ok_and(|loader| {
            jni.delete_local_ref(loader);
            loader.is_null()
        });
        jni.delete_local_ref(class);
        let class = super::class_name(&signature.ok()?)?.to_vec();
        let (mut name, mut descriptor) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: as above; null says that the generic signature is not wanted.
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

    /// How often the method that has called us is on the stack of this thread: the first one whose class is not ours. This
    /// walks the whole stack.
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
                // SAFETY: the method is on the stack, and the pointer is to a variable of ours.
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
