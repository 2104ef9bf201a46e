//! Bindings for the part of JVMTI and JNI that the agent uses.
//!
//! Owns: the indices of functions in the JVM's two tables, as in `jvmti.h` and `jni.h`, and a Rust function for each function
//! that is called. No other part of the crate calls the JVM. Does not know what is traced.
//!
//! Handles (`Object`) are valid during the call from the JVM that provided them, and on its thread, unless they are
//! global. An invalid handle would crash the JVM, so all handles come from here or from arguments of callbacks.

#![expect(unsafe_code, reason = "JVMTI and JNI are tables of C functions")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{self, NonNull};

pub(crate) use jni::{Jni, Native};
pub(crate) use jvmti::{Callbacks, Event, Jvmti, class_name};
pub(crate) use stacks::Running;

/// Indices of functions: the number in the comment above each function of `struct jvmtiInterface_1_` in `jvmti.h`, from 1,
/// and the position in `struct JNINativeInterface_` in `jni.h`, from 0. A test compares them with the headers.
pub mod index {
    macro_rules! table {
        ($($name:ident = $number:literal $text:literal;)*) => {
            $(#[doc = concat!("`", $text, "`")] pub const $name: usize = $number;)*
            /// All indices, with the functions' names in the header.
            pub const ALL: &[(&str, usize)] = &[$(($text, $number)),*];
        };
    }

    /// Indices of JVMTI functions.
    pub mod jvmti {
        table! {
            SET_EVENT_NOTIFICATION_MODE = 2 "SetEventNotificationMode";
            GET_THREAD_INFO = 9 "GetThreadInfo";
            IS_MODIFIABLE_CLASS = 45 "IsModifiableClass";
            ALLOCATE = 46 "Allocate";
            DEALLOCATE = 47 "Deallocate";
            GET_CLASS_SIGNATURE = 48 "GetClassSignature";
            GET_CLASS_LOADER = 57 "GetClassLoader";
            GET_METHOD_NAME = 64 "GetMethodName";
            GET_METHOD_DECLARING_CLASS = 65 "GetMethodDeclaringClass";
            GET_LOADED_CLASSES = 78 "GetLoadedClasses";
            IS_METHOD_OBSOLETE = 91 "IsMethodObsolete";
            GET_ALL_STACK_TRACES = 100 "GetAllStackTraces";
            GET_STACK_TRACE = 104 "GetStackTrace";
            SET_EVENT_CALLBACKS = 122 "SetEventCallbacks";
            DISPOSE_ENVIRONMENT = 127 "DisposeEnvironment";
            GET_SYSTEM_PROPERTY = 131 "GetSystemProperty";
            ADD_CAPABILITIES = 142 "AddCapabilities";
            RETRANSFORM_CLASSES = 152 "RetransformClasses";
        }
    }

    /// Indices of JNI functions.
    pub mod jni {
        table! {
            DEFINE_CLASS = 5 "DefineClass";
            FIND_CLASS = 6 "FindClass";
            TO_REFLECTED_FIELD = 12 "ToReflectedField";
            EXCEPTION_CLEAR = 17 "ExceptionClear";
            PUSH_LOCAL_FRAME = 19 "PushLocalFrame";
            POP_LOCAL_FRAME = 20 "PopLocalFrame";
            NEW_GLOBAL_REF = 21 "NewGlobalRef";
            DELETE_LOCAL_REF = 23 "DeleteLocalRef";
            NEW_LOCAL_REF = 25 "NewLocalRef";
            GET_OBJECT_CLASS = 31 "GetObjectClass";
            GET_METHOD_ID = 33 "GetMethodID";
            CALL_OBJECT_METHOD_A = 36 "CallObjectMethodA";
            CALL_BOOLEAN_METHOD_A = 39 "CallBooleanMethodA";
            CALL_LONG_METHOD_A = 54 "CallLongMethodA";
            GET_FIELD_ID = 94 "GetFieldID";
            GET_STATIC_METHOD_ID = 113 "GetStaticMethodID";
            CALL_STATIC_OBJECT_METHOD_A = 116 "CallStaticObjectMethodA";
            GET_STRING_UTF_CHARS = 169 "GetStringUTFChars";
            RELEASE_STRING_UTF_CHARS = 170 "ReleaseStringUTFChars";
            GET_ARRAY_LENGTH = 171 "GetArrayLength";
            GET_OBJECT_ARRAY_ELEMENT = 173 "GetObjectArrayElement";
            REGISTER_NATIVES = 215 "RegisterNatives";
            EXCEPTION_CHECK = 228 "ExceptionCheck";
        }
    }
}

/// `JVMTI_VERSION_1_2`, which every JVM since Java 7 supports.
const JVMTI_VERSION: c_int = 0x3001_0200;
/// `JNI_VERSION_1_6`.
const JNI_VERSION: c_int = 0x0001_0006;

/// A reference to a Java object, or null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Object(pub(crate) *mut c_void);

impl Object {
    pub(crate) const NULL: Self = Self(ptr::null_mut());

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }
}

/// A pointer to a table of functions, which every environment is.
type Table = *mut *const *const c_void;

/// Returns the function at an index of a table, with the given type.
macro_rules! function {
    ($table:expr, $place:expr, fn($($argument:ty),* $(,)?) $(-> $result:ty)?) => {{
        let table: Table = $table;
        // SAFETY: an environment of the JVM is a pointer to a table of functions, and all JVMs have a function of
        // this type at the index, according to the headers; a test compares the indices with them.
        unsafe {
            let function = *(*table).add($place);
            std::mem::transmute::<*const c_void, unsafe extern "system" fn(Table $(, $argument)*) $(-> $result)?>(function)
        }
    }};
}

mod jni;
mod jvmti;
mod stacks;
mod virtual_threads;

/// The virtual machine (`JavaVM`), usable on every thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vm(NonNull<c_void>);

// SAFETY: by JNI's specification a process has one `JavaVM`, which any thread may use.
unsafe impl Send for Vm {}
// SAFETY: by JNI's specification a process has one `JavaVM`, which any thread may use.
unsafe impl Sync for Vm {}

/// Indices in `struct JNIInvokeInterface_`.
const DETACH_CURRENT_THREAD: usize = 5;
const GET_ENV: usize = 6;
const ATTACH_CURRENT_THREAD_AS_DAEMON: usize = 7;

impl Vm {
    /// Wraps the pointer that the JVM passes. `None` if it is null.
    pub(crate) fn new(vm: *mut c_void) -> Option<Self> {
        NonNull::new(vm).map(Self)
    }

    fn table(self) -> Table {
        self.0.as_ptr().cast()
    }

    fn env(self, version: c_int) -> Option<NonNull<c_void>> {
        let get = function!(self.table(), GET_ENV, fn(*mut *mut c_void, c_int) -> c_int);
        let mut env = ptr::null_mut();
        // SAFETY: the pointer is to a local variable.
        let result = unsafe { get(self.table(), &raw mut env, version) };
        if result == 0 { NonNull::new(env) } else { None }
    }

    /// Creates a JVMTI environment. Each call creates another one.
    pub(crate) fn jvmti(self) -> Option<Jvmti> {
        self.env(JVMTI_VERSION).map(Jvmti)
    }

    /// Returns the JNI environment of this thread. `None` if the thread is not attached to the JVM.
    pub(crate) fn jni(self) -> Option<Jni> {
        self.env(JNI_VERSION).map(Jni)
    }

    /// Runs a function with JNI on a thread of the agent, which is attached to the JVM as a daemon meanwhile.
    pub(crate) fn attached<T>(self, name: &CStr, run: impl FnOnce(Jni) -> T) -> Option<T> {
        if let Some(jni) = self.jni() {
            return Some(run(jni));
        }
        let mut arguments = Arguments { version: JNI_VERSION, name: name.as_ptr(), group: ptr::null_mut() };
        let attach = function!(
            self.table(),
            ATTACH_CURRENT_THREAD_AS_DAEMON,
            fn(*mut *mut c_void, *mut c_void) -> c_int
        );
        let mut env = ptr::null_mut();
        // SAFETY: both pointers are to local variables, which live until the call returns.
        let result = unsafe { attach(self.table(), &raw mut env, (&raw mut arguments).cast()) };
        let env = NonNull::new(env).filter(|_| result == 0)?;
        let detach = AtEnd(self);
        let value = run(Jni(env));
        drop(detach);
        Some(value)
    }
}

/// `JavaVMAttachArgs`
#[repr(C)]
struct Arguments {
    version: c_int,
    name: *const c_char,
    group: *mut c_void,
}

/// Detaches the thread when dropped, also after a panic.
struct AtEnd(Vm);

impl Drop for AtEnd {
    fn drop(&mut self) {
        let detach = function!(self.0.table(), DETACH_CURRENT_THREAD, fn() -> c_int);
        // SAFETY: the agent attached this thread, which has no Java frames.
        unsafe { detach(self.0.table()) };
    }
}
