//! Stacks of virtual threads, which JVMTI lists nowhere.
//!
//! Owns: [`Jni::virtual_threads`], which asks the JDK's own classes. Refuses to: be needed; where they are not as expected
//! (before JDK 19 there are none), no virtual thread is found.

#![expect(unsafe_code, reason = "JNI is a table of C functions")]

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{self, NonNull};

use super::{Jni, Object, Table, index};

/// Virtual threads that are looked at.
const MOST_THREADS: usize = 10_000;
/// Groups of threads that are looked at, such as executors.
const MOST_CONTAINERS: usize = 10_000;
/// Frames that are looked at, of all of them together.
const MOST_FRAMES: usize = 1_000_000;
/// How many local references a step needs.
const REFERENCES: c_int = 16;

/// Methods that virtual threads were in.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct VirtualThreads {
    /// `class.method`, with slashes, in modified UTF-8: the JDK does not tell descriptors.
    pub(crate) methods: BTreeSet<Vec<u8>>,
    threads: usize,
    containers: usize,
    frames: usize,
}

impl Jni {
    /// What virtual threads are in.
    pub(crate) fn virtual_threads(self) -> VirtualThreads {
        let mut found = VirtualThreads::default();
        if self.push_frame(REFERENCES) {
            if let Some(containers) = self.find_class(c"jdk/internal/vm/ThreadContainers")
                && let Some(root) =
                    self.call_static(containers, c"root", c"()Ljdk/internal/vm/ThreadContainer;", &[])
            {
                found.container(self, containers, root);
            }
            self.pop_frame();
        }
        found
    }

    fn call_static(
        self,
        class: Object,
        name: &CStr,
        descriptor: &CStr,
        arguments: &[Object],
    ) -> Option<Object> {
        let method = self.static_method(class, name, descriptor)?;
        let call = function!(
            self.table(),
            index::jni::CALL_STATIC_OBJECT_METHOD_A,
            fn(Object, *mut c_void, *const Object) -> Object
        );
        // SAFETY: a static method of this class that takes so many objects, `jvalue`s of 8 bytes, and gives one.
        self.some(unsafe { call(self.table(), class, method.as_ptr(), arguments.as_ptr()) })
    }

    fn method(self, object: Object, name: &CStr, descriptor: &CStr) -> Option<*mut c_void> {
        let class = self.object_class(object)?;
        let get = function!(
            self.table(),
            index::jni::GET_METHOD_ID,
            fn(Object, *const c_char, *const c_char) -> *mut c_void
        );
        // SAFETY: both texts end with NUL.
        let id = unsafe { get(self.table(), class, name.as_ptr(), descriptor.as_ptr()) };
        self.delete_local_ref(class);
        self.id(id).map(NonNull::as_ptr)
    }

    /// Calls a method of an object that takes nothing and gives an object.
    fn call(self, object: Object, name: &CStr, descriptor: &CStr) -> Option<Object> {
        let method = self.method(object, name, descriptor)?;
        let call = function!(
            self.table(),
            index::jni::CALL_OBJECT_METHOD_A,
            fn(Object, *mut c_void, *const Object) -> Object
        );
        // SAFETY: a method of this object's class that takes nothing and gives an object.
        self.some(unsafe { call(self.table(), object, method, ptr::null()) })
    }

    fn is_virtual(self, thread: Object) -> bool {
        let Some(method) = self.method(thread, c"isVirtual", c"()Z") else { return false };
        let call = function!(
            self.table(),
            index::jni::CALL_BOOLEAN_METHOD_A,
            fn(Object, *mut c_void, *const Object) -> u8
        );
        // SAFETY: a method of this object's class that takes nothing and gives a `jboolean`.
        let is_virtual = unsafe { call(self.table(), thread, method, ptr::null()) } != 0;
        !self.clear() && is_virtual
    }

    /// Calls a function with each object of an array of objects, as long as it gives `true`.
    fn each(self, array: Object, mut take: impl FnMut(Object) -> bool) {
        let length = function!(self.table(), index::jni::GET_ARRAY_LENGTH, fn(Object) -> c_int);
        // SAFETY: an array.
        let length = unsafe { length(self.table(), array) };
        let get = function!(self.table(), index::jni::GET_OBJECT_ARRAY_ELEMENT, fn(Object, c_int) -> Object);
        for number in 0..length {
            // SAFETY: an array of objects with more than so many.
            let Some(element) = self.some(unsafe { get(self.table(), array, number) }) else { continue };
            let goes_on = take(element);
            self.delete_local_ref(element);
            if !goes_on {
                return;
            }
        }
    }

    /// A string in modified UTF-8.
    fn text(self, string: Object) -> Option<Vec<u8>> {
        let get =
            function!(self.table(), index::jni::GET_STRING_UTF_CHARS, fn(Object, *mut u8) -> *const c_char);
        // SAFETY: a string; null says that nobody asks whether it is a copy.
        let chars = unsafe { get(self.table(), string, ptr::null_mut()) };
        if self.clear() || chars.is_null() {
            return None;
        }
        // SAFETY: the JVM's text ends with NUL.
        let text = unsafe { CStr::from_ptr(chars) }.to_bytes().to_vec();
        let release =
            function!(self.table(), index::jni::RELEASE_STRING_UTF_CHARS, fn(Object, *const c_char));
        // SAFETY: what the JVM has given for this string, once.
        unsafe { release(self.table(), string, chars) };
        Some(text)
    }
}

impl VirtualThreads {
    /// The threads of a container, and those of the containers in it.
    fn container(&mut self, jni: Jni, containers: Object, root: Object) {
        let mut waiting = vec![root];
        while let Some(container) = waiting.pop() {
            if self.containers >= MOST_CONTAINERS {
                return;
            }
            self.containers += 1;
            if let Some(threads) =
                array_of(jni, jni.call(container, c"threads", c"()Ljava/util/stream/Stream;"))
            {
                jni.each(threads, |thread| self.thread(jni, thread));
                jni.delete_local_ref(threads);
            }
            let descriptor = c"(Ljdk/internal/vm/ThreadContainer;)Ljava/util/stream/Stream;";
            let children = jni.call_static(containers, c"children", descriptor, &[container]);
            let Some(children) = array_of(jni, children) else { continue };
            jni.each(children, |child| {
                if waiting.len() + self.containers >= MOST_CONTAINERS {
                    return false;
                }
                // It is needed for longer than the array's reference.
                waiting.extend(jni.local(child));
                true
            });
            jni.delete_local_ref(children);
            if container != root {
                jni.delete_local_ref(container);
            }
        }
    }

    /// The methods that a thread is in. Whether another one may be looked at.
    fn thread(&mut self, jni: Jni, thread: Object) -> bool {
        if !jni.is_virtual(thread) {
            return true;
        }
        if self.threads >= MOST_THREADS || self.frames >= MOST_FRAMES {
            return false;
        }
        self.threads += 1;
        let Some(stack) = jni.call(thread, c"getStackTrace", c"()[Ljava/lang/StackTraceElement;") else {
            return true;
        };
        jni.each(stack, |frame| {
            self.frames += 1;
            let text = |name| {
                let text = jni.call(frame, name, c"()Ljava/lang/String;")?;
                let bytes = jni.text(text);
                jni.delete_local_ref(text);
                bytes
            };
            if let (Some(mut class), Some(method)) = (text(c"getClassName"), text(c"getMethodName")) {
                class.iter_mut().filter(|byte| **byte == b'.').for_each(|byte| *byte = b'/');
                class.push(b'.');
                class.extend(method);
                self.methods.insert(class);
            }
            true
        });
        jni.delete_local_ref(stack);
        true
    }
}

/// What a stream has.
fn array_of(jni: Jni, stream: Option<Object>) -> Option<Object> {
    let stream = stream?;
    let array = jni.call(stream, c"toArray", c"()[Ljava/lang/Object;");
    jni.delete_local_ref(stream);
    array
}
