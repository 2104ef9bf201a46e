//! JNI: definition of the probe class, and access to a few objects.

#![expect(unsafe_code, reason = "JNI is a table of C functions")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{self, NonNull};

use super::{Object, Table, index};

/// The JNI environment of one thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Jni(pub(super) NonNull<c_void>);

/// A native method to register.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Native {
    pub(crate) name: &'static CStr,
    pub(crate) descriptor: &'static CStr,
    /// A function whose parameters are those of JNI, followed by those of the descriptor.
    pub(crate) function: *const c_void,
}

impl Jni {
    /// Wraps the environment that a callback or a native method received.
    pub(crate) fn from_raw(env: *mut c_void) -> Option<Self> {
        NonNull::new(env).map(Self)
    }

    pub(super) fn table(self) -> Table {
        self.0.as_ptr().cast()
    }

    /// Clears a pending exception; returns whether there was one.
    pub(crate) fn clear(self) -> bool {
        let check = function!(self.table(), index::jni::EXCEPTION_CHECK, fn() -> u8);
        // SAFETY: callable at any time.
        let pending = unsafe { check(self.table()) } != 0;
        if pending {
            let clear = function!(self.table(), index::jni::EXCEPTION_CLEAR, fn());
            // SAFETY: callable at any time.
            unsafe { clear(self.table()) };
        }
        pending
    }

    pub(super) fn some(self, object: Object) -> Option<Object> {
        if self.clear() || object.is_null() { None } else { Some(object) }
    }

    pub(super) fn id(self, id: *mut c_void) -> Option<NonNull<c_void>> {
        if self.clear() { None } else { NonNull::new(id) }
    }

    pub(crate) fn delete_local_ref(self, object: Object) {
        if !object.is_null() {
            let delete = function!(self.table(), index::jni::DELETE_LOCAL_REF, fn(Object));
            // SAFETY: a local reference of this thread, which is not used any more.
            unsafe { delete(self.table(), object) };
        }
    }

    /// Creates another local reference to an object.
    pub(super) fn local(self, object: Object) -> Option<Object> {
        let new = function!(self.table(), index::jni::NEW_LOCAL_REF, fn(Object) -> Object);
        // SAFETY: a currently valid reference.
        self.some(unsafe { new(self.table(), object) })
    }

    /// Starts a frame of local references, which are freed together, with the given capacity.
    pub(crate) fn push_frame(self, capacity: c_int) -> bool {
        let push = function!(self.table(), index::jni::PUSH_LOCAL_FRAME, fn(c_int) -> c_int);
        // SAFETY: callable at any time.
        let result = unsafe { push(self.table(), capacity) };
        !self.clear() && result == 0
    }

    /// Frees the local references since [`push_frame`](Self::push_frame).
    pub(crate) fn pop_frame(self) {
        let pop = function!(self.table(), index::jni::POP_LOCAL_FRAME, fn(Object) -> Object);
        // SAFETY: a frame was pushed, and its references are not used any more; null means that none is to survive.
        unsafe { pop(self.table(), Object::NULL) };
    }

    /// Finds a class of the boot loader, or one that this thread's caller can access.
    pub(crate) fn find_class(self, name: &CStr) -> Option<Object> {
        let find = function!(self.table(), index::jni::FIND_CLASS, fn(*const c_char) -> Object);
        // SAFETY: the name is NUL-terminated.
        self.some(unsafe { find(self.table(), name.as_ptr()) })
    }

    /// Defines a class in the boot loader.
    pub(crate) fn define_class(self, name: &CStr, bytes: &[u8]) -> Option<Object> {
        let define = function!(
            self.table(),
            index::jni::DEFINE_CLASS,
            fn(*const c_char, Object, *const u8, c_int) -> Object
        );
        let length = c_int::try_from(bytes.len()).ok()?;
        // SAFETY: the name is NUL-terminated, and there are `length` bytes; null means the boot loader.
        self.some(unsafe { define(self.table(), name.as_ptr(), Object::NULL, bytes.as_ptr(), length) })
    }

    pub(crate) fn global(self, object: Object) -> Option<Object> {
        let new = function!(self.table(), index::jni::NEW_GLOBAL_REF, fn(Object) -> Object);
        // SAFETY: a currently valid reference.
        self.some(unsafe { new(self.table(), object) })
    }

    pub(crate) fn object_class(self, object: Object) -> Option<Object> {
        let get = function!(self.table(), index::jni::GET_OBJECT_CLASS, fn(Object) -> Object);
        // SAFETY: the object is not null, which all callers ensure.
        self.some(unsafe { get(self.table(), object) })
    }

    /// Returns the offset of a field of type `long` in objects of a class, as defined by `Unsafe`.
    pub(crate) fn field_offset(self, class: Object, field: &CStr, unsafe_class: &CStr) -> Option<i64> {
        let get_field = function!(
            self.table(),
            index::jni::GET_FIELD_ID,
            fn(Object, *const c_char, *const c_char) -> *mut c_void
        );
        // SAFETY: both texts are NUL-terminated.
        let id = unsafe { get_field(self.table(), class, field.as_ptr(), c"J".as_ptr()) };
        let id = self.id(id)?;
        let reflect =
            function!(self.table(), index::jni::TO_REFLECTED_FIELD, fn(Object, *mut c_void, u8) -> Object);
        // SAFETY: the id belongs to an instance field of this class.
        let field = self.some(unsafe { reflect(self.table(), class, id.as_ptr(), 0) })?;
        let theirs = self.find_class(unsafe_class)?;
        let descriptor = CString::new(format!("()L{};", unsafe_class.to_str().ok()?)).ok()?;
        let get_static = self.static_method(theirs, c"getUnsafe", &descriptor)?;
        let call = function!(
            self.table(),
            index::jni::CALL_STATIC_OBJECT_METHOD_A,
            fn(Object, *mut c_void, *const u64) -> Object
        );
        // SAFETY: a static method of this class without parameters that returns an object.
        let the_unsafe =
            self.some(unsafe { call(self.table(), theirs, get_static.as_ptr(), ptr::null()) })?;
        let get_method = function!(
            self.table(),
            index::jni::GET_METHOD_ID,
            fn(Object, *const c_char, *const c_char) -> *mut c_void
        );
        let (name, descriptor) = (c"objectFieldOffset", c"(Ljava/lang/reflect/Field;)J");
        // SAFETY: both texts are NUL-terminated.
        let id = unsafe { get_method(self.table(), theirs, name.as_ptr(), descriptor.as_ptr()) };
        let id = self.id(id)?;
        let call = function!(
            self.table(),
            index::jni::CALL_LONG_METHOD_A,
            fn(Object, *mut c_void, *const Object) -> i64
        );
        // SAFETY: a method of this object's class with one object parameter, a `jvalue` of 8 bytes, that returns a long.
        let offset = unsafe { call(self.table(), the_unsafe, id.as_ptr(), &raw const field) };
        if self.clear() { None } else { Some(offset) }
    }

    /// Returns a static method, after initializing its class.
    pub(crate) fn static_method(
        self,
        class: Object,
        name: &CStr,
        descriptor: &CStr,
    ) -> Option<NonNull<c_void>> {
        let get = function!(
            self.table(),
            index::jni::GET_STATIC_METHOD_ID,
            fn(Object, *const c_char, *const c_char) -> *mut c_void
        );
        // SAFETY: both texts are NUL-terminated.
        let id = unsafe { get(self.table(), class, name.as_ptr(), descriptor.as_ptr()) };
        self.id(id)
    }

    pub(crate) fn register_natives(self, class: Object, natives: &[Native]) -> bool {
        /// `JNINativeMethod`
        #[repr(C)]
        struct Row {
            name: *const c_char,
            descriptor: *const c_char,
            function: *const c_void,
        }
        let row = |native: &Native| Row {
            name: native.name.as_ptr(),
            descriptor: native.descriptor.as_ptr(),
            function: native.function,
        };
        let rows: Vec<Row> = natives.iter().map(row).collect();
        let register =
            function!(self.table(), index::jni::REGISTER_NATIVES, fn(Object, *const Row, c_int) -> c_int);
        let count = c_int::try_from(rows.len()).unwrap_or(0);
        // SAFETY: there are `count` rows, whose texts are NUL-terminated.
        let result = unsafe { register(self.table(), class, rows.as_ptr(), count) };
        !self.clear() && result == 0
    }
}
