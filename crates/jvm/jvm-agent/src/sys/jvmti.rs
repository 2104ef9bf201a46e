//! JVMTI: events, capabilities, classes and threads.

#![expect(unsafe_code, reason = "JVMTI is a table of C functions")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::ptr::{self, NonNull};

use super::{Jni, Object, Table, index};

/// A JVMTI environment, usable on every thread that is attached to the JVM.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Jvmti(pub(super) NonNull<c_void>);

// SAFETY: the specification of JVMTI allows the use of an environment on any attached thread.
unsafe impl Send for Jvmti {}
// SAFETY: the specification of JVMTI allows the use of an environment on any attached thread.
unsafe impl Sync for Jvmti {}

/// A JVMTI error number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JvmtiError(pub(crate) c_int);

impl fmt::Display for JvmtiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JVMTI error {}", self.0)
    }
}

/// Returns `java/lang/String` for `Ljava/lang/String;`. `None` for arrays and primitive types, which have no class file.
pub(crate) fn class_name(signature: &[u8]) -> Option<&[u8]> {
    signature.strip_prefix(b"L")?.strip_suffix(b";")
}

/// Events, with JVMTI's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Event {
    VmInit = 50,
    VmDeath = 51,
    ThreadEnd = 53,
    ClassFileLoadHook = 54,
}

/// Bits of `jvmtiCapabilities`, in the order of its fields.
const CAN_GENERATE_ALL_CLASS_HOOK_EVENTS: u32 = 26;
const CAN_RETRANSFORM_CLASSES: u32 = 37;

/// The callbacks for the JVM: `jvmtiEventCallbacks`, of which only four are used.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Callbacks {
    pub(crate) vm_init: extern "system" fn(*mut c_void, *mut c_void, Object),
    pub(crate) vm_death: extern "system" fn(*mut c_void, *mut c_void),
    pub(crate) thread_start: Option<extern "system" fn()>,
    pub(crate) thread_end: extern "system" fn(*mut c_void, *mut c_void, Object),
    pub(crate) class_file_load_hook: extern "system" fn(
        *mut c_void,
        *mut c_void,
        Object,
        Object,
        *const c_char,
        Object,
        c_int,
        *const u8,
        *mut c_int,
        *mut *mut u8,
    ),
}

impl Jvmti {
    /// Wraps the environment that a callback received.
    pub(crate) fn from_raw(env: *mut c_void) -> Option<Self> {
        NonNull::new(env).map(Self)
    }

    pub(super) fn table(self) -> Table {
        self.0.as_ptr().cast()
    }

    pub(super) fn check(result: c_int) -> Result<(), JvmtiError> {
        if result == 0 { Ok(()) } else { Err(JvmtiError(result)) }
    }

    /// Requests hooks for all classes, and the capability to change loaded classes.
    pub(crate) fn add_capabilities(self) -> Result<(), JvmtiError> {
        let mut bits = [0u8; 16];
        for bit in [CAN_GENERATE_ALL_CLASS_HOOK_EVENTS, CAN_RETRANSFORM_CLASSES] {
            if let Some(byte) = bits.get_mut(bit as usize / 8) {
                *byte |= 1 << (bit % 8);
            }
        }
        let add = function!(self.table(), index::jvmti::ADD_CAPABILITIES - 1, fn(*const u8) -> c_int);
        // SAFETY: `jvmtiCapabilities` has 16 bytes.
        Self::check(unsafe { add(self.table(), bits.as_ptr()) })
    }

    pub(crate) fn set_callbacks(self, callbacks: &Callbacks) -> Result<(), JvmtiError> {
        let set = function!(
            self.table(),
            index::jvmti::SET_EVENT_CALLBACKS - 1,
            fn(*const Callbacks, c_int) -> c_int
        );
        let size = c_int::try_from(size_of::<Callbacks>()).unwrap_or(0);
        // SAFETY: the size is that of the structure, which the JVM copies. Callbacks beyond it are treated as null.
        Self::check(unsafe { set(self.table(), callbacks, size) })
    }

    pub(crate) fn enable(self, event: Event, on: bool) -> Result<(), JvmtiError> {
        let set = function!(
            self.table(),
            index::jvmti::SET_EVENT_NOTIFICATION_MODE - 1,
            fn(c_int, c_int, Object) -> c_int
        );
        // SAFETY: the event is one of JVMTI's, and null means all threads.
        Self::check(unsafe { set(self.table(), on.into(), event as c_int, Object::NULL) })
    }

    /// Disposes the environment, with its callbacks and capabilities.
    ///
    /// The caller must ensure that the environment is not used any more; the JVM itself ends events before it frees
    /// an environment.
    pub(crate) fn dispose(self) {
        let dispose = function!(self.table(), index::jvmti::DISPOSE_ENVIRONMENT - 1, fn() -> c_int);
        // SAFETY: the environment was not disposed before: `Agent::dispose` removes it from its field first.
        unsafe { dispose(self.table()) };
    }

    /// Returns the pointer, for storage in an atomic pointer that may be null.
    pub(crate) fn as_ptr(self) -> *mut c_void {
        self.0.as_ptr()
    }

    /// Allocates memory of the JVM with a copy of these bytes, which the JVM frees.
    pub(crate) fn allocate(self, bytes: &[u8]) -> Result<*mut u8, JvmtiError> {
        let allocate = function!(self.table(), index::jvmti::ALLOCATE - 1, fn(i64, *mut *mut u8) -> c_int);
        let mut place = ptr::null_mut();
        let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        // SAFETY: the pointer is to a local variable.
        Self::check(unsafe { allocate(self.table(), length, &raw mut place) })?;
        // SAFETY: the JVM has just allocated this number of bytes there, which nothing else uses.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        Ok(place)
    }

    pub(super) fn deallocate(self, place: *mut c_void) {
        if !place.is_null() {
            let deallocate = function!(self.table(), index::jvmti::DEALLOCATE - 1, fn(*mut c_void) -> c_int);
            // SAFETY: the memory was allocated by JVMTI, and is not used any more.
            unsafe { deallocate(self.table(), place) };
        }
    }

    /// Copies a string that JVMTI has allocated, and frees the original.
    pub(super) fn taken(self, text: *mut c_char) -> Vec<u8> {
        if text.is_null() {
            return Vec::new();
        }
        // SAFETY: the pointer is not null, and JVMTI's strings are NUL-terminated.
        let bytes = unsafe { CStr::from_ptr(text) }.to_bytes().to_vec();
        self.deallocate(text.cast());
        bytes
    }

    /// Returns the signature of a class, such as `Ljava/lang/String;`, in modified UTF-8.
    pub(crate) fn class_signature(self, class: Object) -> Result<Vec<u8>, JvmtiError> {
        let get = function!(
            self.table(),
            index::jvmti::GET_CLASS_SIGNATURE - 1,
            fn(Object, *mut *mut c_char, *mut *mut c_char) -> c_int
        );
        let mut text = ptr::null_mut();
        // SAFETY: the first pointer is to a local variable; null means that the generic signature is not wanted.
        Self::check(unsafe { get(self.table(), class, &raw mut text, ptr::null_mut()) })?;
        Ok(self.taken(text))
    }

    /// Returns the loader of a class; null is the boot loader.
    pub(crate) fn class_loader(self, class: Object) -> Result<Object, JvmtiError> {
        let get =
            function!(self.table(), index::jvmti::GET_CLASS_LOADER - 1, fn(Object, *mut Object) -> c_int);
        let mut loader = Object::NULL;
        // SAFETY: the pointer is to a local variable.
        Self::check(unsafe { get(self.table(), class, &raw mut loader) })?;
        Ok(loader)
    }

    pub(crate) fn is_modifiable(self, class: Object) -> bool {
        let is = function!(self.table(), index::jvmti::IS_MODIFIABLE_CLASS - 1, fn(Object, *mut u8) -> c_int);
        let mut yes = 0;
        // SAFETY: the pointer is to a local variable; `jboolean` is a byte.
        let result = unsafe { is(self.table(), class, &raw mut yes) };
        result == 0 && yes != 0
    }

    /// Returns all loaded classes, as local references of this thread.
    pub(crate) fn loaded_classes(self) -> Result<Vec<Object>, JvmtiError> {
        let get = function!(
            self.table(),
            index::jvmti::GET_LOADED_CLASSES - 1,
            fn(*mut c_int, *mut *mut Object) -> c_int
        );
        let (mut count, mut place) = (0, ptr::null_mut());
        // SAFETY: both pointers are to local variables.
        Self::check(unsafe { get(self.table(), &raw mut count, &raw mut place) })?;
        if place.is_null() {
            return Ok(Vec::new());
        }
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: JVMTI has stored `count` references there.
        let classes = unsafe { std::slice::from_raw_parts(place, count) }.to_vec();
        self.deallocate(place.cast());
        Ok(classes)
    }

    /// Passes classes to the hooks again, with their original bytes.
    pub(crate) fn retransform(self, classes: &[Object]) -> Result<(), JvmtiError> {
        let retransform =
            function!(self.table(), index::jvmti::RETRANSFORM_CLASSES - 1, fn(c_int, *const Object) -> c_int);
        let count = c_int::try_from(classes.len()).unwrap_or(0);
        // SAFETY: there are `count` references.
        Self::check(unsafe { retransform(self.table(), count, classes.as_ptr()) })
    }

    /// Returns the name of this thread, in modified UTF-8.
    pub(crate) fn thread_name(self, jni: Jni) -> Option<Vec<u8>> {
        /// `jvmtiThreadInfo`
        #[repr(C)]
        struct Info {
            name: *mut c_char,
            priority: c_int,
            is_daemon: u8,
            group: Object,
            context_class_loader: Object,
        }
        let mut info = Info {
            name: ptr::null_mut(),
            priority: 0,
            is_daemon: 0,
            group: Object::NULL,
            context_class_loader: Object::NULL,
        };
        let get = function!(self.table(), index::jvmti::GET_THREAD_INFO - 1, fn(Object, *mut Info) -> c_int);
        // SAFETY: null means this thread, and the pointer is to a local structure with JVMTI's layout.
        let result = unsafe { get(self.table(), Object::NULL, &raw mut info) };
        jni.delete_local_ref(info.group);
        jni.delete_local_ref(info.context_class_loader);
        (result == 0).then(|| self.taken(info.name))
    }

    /// Returns a system property, such as `java.version`.
    pub(crate) fn system_property(self, name: &CStr) -> Option<Vec<u8>> {
        let get = function!(
            self.table(),
            index::jvmti::GET_SYSTEM_PROPERTY - 1,
            fn(*const c_char, *mut *mut c_char) -> c_int
        );
        let mut text = ptr::null_mut();
        // SAFETY: the name is NUL-terminated, and the other pointer is to a local variable.
        let result = unsafe { get(self.table(), name.as_ptr(), &raw mut text) };
        (result == 0).then(|| self.taken(text))
    }
}
