//! Symbols that let the library load with a glibc older than the one it was linked against.
//!
//! Owns: imported functions whose version in today's glibc is new although the functions are old. Each is defined here,
//! hidden, and jumps to the version that every glibc since 2.17 has. `pthread_create` and others moved from libpthread to
//! libc in 2.34 and got another version there; `stat64` and `fstat64` were macros until 2.33.
//!
//! The standard library imports newer optional functions weakly and has a fallback for each, but a linker records their
//! version as required all the same. A hidden weak name is never resolved, so the fallback is always used. A test checks
//! which versions the library requires.

#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![expect(unsafe_code, reason = "functions of a few instructions, which only assembly can bind to a version")]

/// Imports a function with an old version.
macro_rules! old {
    ($($name:literal $x86_64:literal;)*) => {
        $(
            #[cfg(target_arch = "x86_64")]
            std::arch::global_asm!(
                concat!(".symver runtap_old_", $name, ", ", $name, "@GLIBC_", $x86_64),
                ".text",
                concat!(".globl ", $name),
                concat!(".hidden ", $name),
                concat!(".type ", $name, ", @function"),
                concat!($name, ":"),
                concat!("jmp *runtap_old_", $name, "@GOTPCREL(%rip)"),
                concat!(".size ", $name, ", . - ", $name),
                options(att_syntax)
            );
            #[cfg(target_arch = "aarch64")]
            std::arch::global_asm!(
                concat!(".symver runtap_old_", $name, ", ", $name, "@GLIBC_2.17"),
                ".text",
                ".p2align 2",
                concat!(".globl ", $name),
                concat!(".hidden ", $name),
                concat!(".type ", $name, ", %function"),
                concat!($name, ":"),
                concat!("adrp x16, :got:runtap_old_", $name),
                concat!("ldr x16, [x16, :got_lo12:runtap_old_", $name, "]"),
                "br x16",
                concat!(".size ", $name, ", . - ", $name),
            );
        )*
    };
}

old! {
    "dlsym" "2.2.5";
    "pthread_attr_getguardsize" "2.2.5";
    "pthread_attr_getstack" "2.2.5";
    "pthread_attr_setstacksize" "2.2.5";
    "pthread_create" "2.2.5";
    "pthread_detach" "2.2.5";
    "pthread_getattr_np" "2.2.5";
    "pthread_join" "2.2.5";
    "pthread_key_create" "2.2.5";
    "pthread_key_delete" "2.2.5";
    "pthread_setname_np" "2.12";
    "pthread_setspecific" "2.2.5";
}

/// Defines `stat64` or `fstat64` by `__xstat64` or `__fxstat64`, which have the structure's version as first argument.
macro_rules! stat {
    ($($name:literal $old:literal;)*) => {
        $(
            #[cfg(target_arch = "x86_64")]
            std::arch::global_asm!(
                concat!(".symver runtap_old_", $old, ", ", $old, "@GLIBC_2.2.5"),
                ".text",
                concat!(".globl ", $name),
                concat!(".hidden ", $name),
                concat!(".type ", $name, ", @function"),
                concat!($name, ":"),
                "mov %rsi, %rdx",
                "mov %rdi, %rsi",
                // _STAT_VER_LINUX
                "mov $1, %edi",
                concat!("jmp *runtap_old_", $old, "@GOTPCREL(%rip)"),
                concat!(".size ", $name, ", . - ", $name),
                options(att_syntax)
            );
            #[cfg(target_arch = "aarch64")]
            std::arch::global_asm!(
                concat!(".symver runtap_old_", $old, ", ", $old, "@GLIBC_2.17"),
                ".text",
                ".p2align 2",
                concat!(".globl ", $name),
                concat!(".hidden ", $name),
                concat!(".type ", $name, ", %function"),
                concat!($name, ":"),
                "mov x2, x1",
                "mov x1, x0",
                // _STAT_VER_LINUX
                "mov w0, #0",
                concat!("adrp x16, :got:runtap_old_", $old),
                concat!("ldr x16, [x16, :got_lo12:runtap_old_", $old, "]"),
                "br x16",
                concat!(".size ", $name, ", . - ", $name),
            );
        )*
    };
}

stat! {
    "stat64" "__xstat64";
    "fstat64" "__fxstat64";
}

/// Hides a function for which the standard library has a fallback.
macro_rules! absent {
    ($($name:literal;)*) => {
        $(
            std::arch::global_asm!(concat!(".weak ", $name), concat!(".hidden ", $name));
        )*
    };
}

absent! {
    "__cxa_thread_atexit_impl";
    "getrandom";
    "gettid";
    "statx";
}
