//! The attach protocol of `HotSpot`, as a client without a JDK: it loads agents into running Java programs, and asks them.
//!
//! ```text
//!   client                                            JVM
//!     │ creates /tmp/.attach_pidN (N: the JVM's own number)  │
//!     │── SIGQUIT ──────────────────────────────────────────▶│ sees the file and listens on /tmp/.java_pidN
//!     │── connects ─────────────────────────────────────────▶│ asks the kernel who that is: its own user, or root
//!     │── request: version, command, arguments ─────────────▶│
//!     │◀─ reply: code, text, end of the connection ──────────│
//! ```
//!
//! SIGQUIT ends every program that does not handle it. So [`Jvm::examine`] proves first that the process is a `HotSpot`
//! machine that does, and the signal goes to that very process, by its descriptor. A JVM that listens already gets none.
//!
//! Nothing that is found in a temporary folder is believed: the socket is used if the kernel says that the process itself
//! listens there, and files are made with the rights of the JVM's user, so that none can appear where that user could not
//! make it. Replies are bounded in size and time.
//!
//! - [`codec`]: requests and replies as bytes, without I/O.
//! - [`Jvm`]: a process that was examined. [`Client`]: what it is asked. [`Placed`]: a library where the JVM can read it.
//!   [`keep`]: one for JVMs that are going to be started.
//!
//! Linux only. `OpenJ9`, which has another protocol, is recognized and refused. Refuses to know what an agent does, and to
//! print. Source: `openjdk/jdk`, `src/hotspot/os/posix/attachListener_posix.cpp`, and JDK 11, 17, 21 and 25 as measured.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![warn(clippy::cast_possible_truncation)]

#[cfg(target_os = "linux")]
mod client;
pub mod codec;
#[cfg(target_os = "linux")]
mod error;
#[cfg(target_os = "linux")]
mod folder;
/// For the fuzz targets.
#[cfg(all(fuzzing, target_os = "linux"))]
#[doc(hidden)]
pub mod fuzzing {
    use crate::proc_texts::{Mapped, on_quit};

    /// Takes these for a memory map, and for a status.
    pub fn proc_texts(bytes: &[u8]) {
        let mapped = Mapped::parse(bytes, "libruntap_jvm_agent");
        assert!(mapped.wanted.len() <= bytes.len());
        for path in &mapped.wanted {
            let _ = crate::private::path_in_target(path);
        }
        let _ = on_quit(bytes);
    }
}
#[cfg(target_os = "linux")]
mod identity;
#[cfg(target_os = "linux")]
mod jvm;
#[cfg(target_os = "linux")]
mod kept;
#[cfg(target_os = "linux")]
mod library;
#[cfg(target_os = "linux")]
mod private;
#[cfg(target_os = "linux")]
mod proc_texts;
#[cfg(target_os = "linux")]
mod trigger;

#[cfg(target_os = "linux")]
pub use self::{
    client::{Client, Timeouts},
    error::AttachError,
    jvm::Jvm,
    kept::keep,
    library::{Answer, Placed},
    proc_texts::CLibrary,
};
