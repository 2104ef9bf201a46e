//! A client of `HotSpot`'s attach protocol that needs no JDK: it loads agents into running Java programs, and sends
//! them commands.
//!
//! ```text
//!   client                                            JVM
//!     │ creates /tmp/.attach_pidN (N: the JVM's own process ID) │
//!     │── SIGQUIT ──────────────────────────────────────────▶│ sees the file and listens on /tmp/.java_pidN
//!     │── connects ─────────────────────────────────────────▶│ checks the peer: the user must be its own, or root
//!     │── request: version, command, arguments ─────────────▶│
//!     │◀─ reply: code, text, end of the connection ──────────│
//! ```
//!
//! SIGQUIT terminates every program that does not handle it. So [`Jvm::examine`] first verifies that the process is
//! a `HotSpot` JVM that handles the signal, and the signal is sent to exactly that process, by its descriptor. A
//! JVM that already listens receives no signal.
//!
//! The contents of temporary folders are not trusted: the socket is used only if the kernel reports that the
//! process itself listens on it, and files are created with the rights of the JVM's user, so that none can appear
//! where that user could not create it. Replies are limited in size and time.
//!
//! - [`codec`]: encoding of requests and decoding of replies, without I/O.
//! - [`Jvm`]: an examined process. [`Client`]: sends it commands. [`PlacedLibrary`]: a library where the JVM can
//!   load it. [`keep`]: a persistent library, for JVMs that are started later. [`HeapDumpFile`]: the heap of a JVM.
//! - [`Client::thread_dump`]: the threads of a JVM, with their stacks, locks and deadlocks.
//! - [`AgentLibrary`] and [`AgentOptions`]: runtap's agent, which [`Client::load_agent`] loads into a running JVM, and
//!   [`with_agent`] into the JVMs of a command.
//!
//! This crate supports Linux only. `OpenJ9`, which has another protocol, is detected and rejected. Sources:
//! `openjdk/jdk`, `src/hotspot/os/posix/attachListener_posix.cpp`, and measurements with JDK 11, 17, 21 and 25.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![warn(clippy::cast_possible_truncation)]

#[cfg(target_os = "linux")]
mod agent;
#[cfg(target_os = "linux")]
mod client;
pub mod codec;
#[cfg(target_os = "linux")]
mod error;
#[cfg(target_os = "linux")]
mod folder;
/// Entry points of the fuzz targets.
#[cfg(all(fuzzing, target_os = "linux"))]
#[doc(hidden)]
pub mod fuzzing {
    use crate::proc_texts::{MemoryMap, on_quit};

    /// Parses the bytes as a memory map, and as a status.
    pub fn proc_texts(bytes: &[u8]) {
        let mapped = MemoryMap::parse(bytes, "libruntap_jvm_agent");
        assert!(mapped.libraries.len() <= bytes.len());
        for path in &mapped.libraries {
            let _ = crate::private::path_in_target(path);
        }
        let _ = on_quit(bytes);
    }
}
#[cfg(target_os = "linux")]
mod heap;
#[cfg(target_os = "linux")]
mod identity;
#[cfg(target_os = "linux")]
mod jvm;
#[cfg(target_os = "linux")]
mod kept;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod library;
#[cfg(target_os = "linux")]
mod private;
#[cfg(target_os = "linux")]
mod proc_texts;
#[cfg(target_os = "linux")]
mod threads;
#[cfg(target_os = "linux")]
mod trigger;

#[cfg(target_os = "linux")]
pub use self::{
    agent::{AGENT_NAME, AgentLibrary, AgentOptions, agent_file_name},
    client::{Client, Timeouts},
    error::AttachError,
    heap::HeapDumpFile,
    jvm::{Jvm, switch_in},
    kept::keep,
    launch::{JAVA_TOOL_OPTIONS, built_for_musl, is_java, with_agent},
    library::{AgentAnswer, PlacedLibrary},
    proc_texts::CLibrary,
    threads::{ThreadDumpOptions, VirtualThreads},
};
