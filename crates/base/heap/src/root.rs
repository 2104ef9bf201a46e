//! Why objects are alive: the kinds of roots of both kinds of runtimes.

/// The kind of a root: what keeps its object alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RootKind {
    /// A variable on the stack of a thread (.NET, JVM).
    Stack,
    /// A static field (.NET).
    StaticField,
    /// A static field with a value for each thread (.NET).
    ThreadStaticField,
    /// A handle of the runtime or of native code (.NET).
    Handle,
    /// A handle that also keeps the object at its address (.NET).
    PinnedHandle,
    /// A handle with a reference count, as for objects that native code uses (.NET).
    CountedHandle,
    /// The queue of objects to be finalized (.NET, Android).
    Finalizer,
    /// An object of an older generation that was not collected (.NET).
    OlderGeneration,
    /// A handle whose object is measured with everything it references (.NET).
    SizedReference,
    /// An object found after the mark stack overflowed (.NET).
    Overflow,
    /// A managed object that a COM client uses (.NET).
    ComCallable,
    /// A wrapper for an object of COM (.NET).
    ComWrapper,
    /// A global reference of native code (JVM).
    JniGlobal,
    /// A local reference of native code (JVM).
    JniLocal,
    /// A value on a native stack (JVM).
    NativeStack,
    /// A class of the boot class loader, which is never unloaded (JVM).
    SystemClass,
    /// A block of a thread (JVM).
    ThreadBlock,
    /// A thread that has started (JVM).
    Thread,
    /// An object whose monitor is in use (JVM).
    Monitor,
    /// An interned string (Android).
    InternedString,
    /// Data of the virtual machine or of a debugger (Android).
    Vm,
    /// A root of a kind that the source does not state.
    Unknown,
}

impl RootKind {
    /// Returns the name in documents and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stack => "stack",
            Self::StaticField => "static",
            Self::ThreadStaticField => "thread-static",
            Self::Handle => "handle",
            Self::PinnedHandle => "pinned-handle",
            Self::CountedHandle => "counted-handle",
            Self::Finalizer => "finalizer",
            Self::OlderGeneration => "older-generation",
            Self::SizedReference => "sized-reference",
            Self::Overflow => "overflow",
            Self::ComCallable => "com-callable",
            Self::ComWrapper => "com-wrapper",
            Self::JniGlobal => "jni-global",
            Self::JniLocal => "jni-local",
            Self::NativeStack => "native-stack",
            Self::SystemClass => "system-class",
            Self::ThreadBlock => "thread-block",
            Self::Thread => "thread",
            Self::Monitor => "monitor",
            Self::InternedString => "interned-string",
            Self::Vm => "vm",
            Self::Unknown => "unknown",
        }
    }
}
