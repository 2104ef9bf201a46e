//! The stacks of virtual threads, which JVMTI does not list.
//!
//! Owns: [`Jni::virtual_threads`], which queries the JDK's own classes. Optional: if those classes are not as
//! expected (before JDK 19 there are none), no virtual thread is found.

#![expect(unsafe_code, reason = "JNI is a table of C functions")]

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{self, NonNull};

use super::{Jni, Object, Table, index};

/// The maximum number of virtual threads that are examined.
const MAX_THREADS: usize = 10_000;
/// The maximum number of groups of threads, such as executors, that are examined.
const MAX_CONTAINERS: usize = 10_000;
/// The maximum number of frames, over all threads, that are examined.
const MAX_FRAMES: usize = 1_000_000;
/// The number of local references that a step needs.
const REFERENCES: c_int = 16;

/// The methods on the stacks of virtual threads.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct VirtualThreads {
    /// `class.method`, with slashes, in modified UTF-8; the JDK does not report descriptors.
    pub(crate) methods: BTreeSet<Vec<u8>>,
    threads: usize,
    containers: usize,
    frames: usize,
}

impl Jni {
    /// Returns the methods on the stacks of virtual threads.
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
        // SAFETY: a static method of this class with this number of object parameters, `jvalue`s of 8 bytes, that
        // returns an object.
        self.some(unsafe { call(self.table(), class, method.as_ptr(), arguments.as_ptr()) })
    }

    fn method(self, object: Object, name: &CStr, descriptor: &CStr) -> Option<*mut c_void> {
        let class = self.object_class(object)?;
        let get = function!(
            self.table(),
            index::jni::GET_METHOD_ID,
            fn(Object, *const c_char, *const c_char) -> *mut c_void
        );
        // SAFETY: both texts are NUL-terminated.
        let id = unsafe { get(self.table(), class, name.as_ptr(), descriptor.as_ptr()) };
        self.delete_local_ref(class);
        self.id(id).map(NonNull::as_ptr)
    }

    /// Calls a method of an object that has no parameters and returns an object.
    fn call(self, object: Object, name: &CStr, descriptor: &CStr) -> Option<Object> {
        let method = self.method(object, name, descriptor)?;
        let call = function!(
            self.table(),
            index::jni::CALL_OBJECT_METHOD_A,
            fn(Object, *mut c_void, *const Object) -> Object
        );
        // SAFETY: a method of this object's class without parameters that returns an object.
        self.some(unsafe { call(self.table(), object, method, ptr::null()) })
    }

    fn is_virtual(self, thread: Object) -> bool {
        let Some(method) = self.method(thread, c"isVirtual", c"()Z") else { return false };
        let call = function!(
            self.table(),
            index::jni::CALL_BOOLEAN_METHOD_A,
            fn(Object, *mut c_void, *const Object) -> u8
        );
        // SAFETY: a method of this object's class without parameters that returns a `jboolean`.
        let is_virtual = unsafe { call(self.table(), thread, method, ptr::null()) } != 0;
        !self.clear() && is_virtual
    }

    /// Calls a function with each element of an array of objects, until it returns `false`.
    fn each(self, array: Object, mut take: impl FnMut(Object) -> bool) {
        let length = function!(self.table(), index::jni::GET_ARRAY_LENGTH, fn(Object) -> c_int);
        // SAFETY: the object is an array.
        let length = unsafe { length(self.table(), array) };
        let get = function!(self.table(), index::jni::GET_OBJECT_ARRAY_ELEMENT, fn(Object, c_int) -> Object);
        for number in 0..length {
            // SAFETY: an array of objects with more than `number` elements.
            let Some(element) = self.some(unsafe { get(self.table(), array, number) }) else { continue };
            let continues = take(element);
            self.delete_local_ref(element);
            if !continues {
                return;
            }
        }
    }

    /// Returns a string in modified UTF-8.
    fn text(self, string: Object) -> Option<Vec<u8>> {
        let get =
            function!(self.table(), index::jni::GET_STRING_UTF_CHARS, fn(Object, *mut u8) -> *const c_char);
        // SAFETY: the object is a string; null means that the copy flag is not wanted.
        let chars = unsafe { get(self.table(), string, ptr::null_mut()) };
        if self.clear() || chars.is_null() {
            return None;
        }
        // SAFETY: the JVM's text is NUL-terminated.
        let text = unsafe { CStr::from_ptr(chars) }.to_bytes().to_vec();
        let release =
            function!(self.table(), index::jni::RELEASE_STRING_UTF_CHARS, fn(Object, *const c_char));
        // SAFETY: the JVM returned this pointer for this string, and it is released once.
        unsafe { release(self.table(), string, chars) };
        Some(text)
    }
}

impl VirtualThreads {
    /// Examines the threads of a container, and those of nested containers.
    fn container(&mut self, jni: Jni, containers: Object, root: Object) {
        let mut waiting = vec![root];
        while let Some(container) = waiting.pop() {
            if self.containers >= MAX_CONTAINERS {
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
                if waiting.len() + self.containers >= MAX_CONTAINERS {
                    return false;
                }
                // The reference must outlive the frame of the array.
                waiting.extend(jni.local(child));
                true
            });
            jni.delete_local_ref(children);
            if container != root {
                jni.delete_local_ref(container);
            }
        }
    }

    /// Examines the stack of a thread. Returns whether another thread may be examined.
    fn thread(&mut self, jni: Jni, thread: Object) -> bool {
        if !jni.is_virtual(thread) {
            return true;
        }
        if self.threads >= MAX_THREADS || self.frames >= MAX_FRAMES {
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

/// Returns the elements of a stream as an array.
fn array_of(jni: Jni, stream: Option<Object>) -> Option<Object> {
    let stream = stream?;
    let array = jni.call(stream, c"toArray", c"()[Ljava/lang/Object;");
    jni.delete_local_ref(stream);
    array
}
