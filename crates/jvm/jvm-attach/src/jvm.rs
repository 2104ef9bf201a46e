//! Examination of a process: whether it is a `HotSpot` JVM, and whether SIGQUIT is harmless to it. Nothing is sent.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runtap_transport::linux::ProcDir;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::error::AttachError;
use crate::proc_texts::{CLibrary, JvmKind, MemoryMap, OnQuit, on_quit};

/// Limits on the size of memory maps, arguments and environments, in bytes: the process controls how long they are.
const MAX_MAPS: usize = 32 << 20;
const MAX_ARGUMENTS: usize = 4 << 20;
/// The environment variables with options of the JVM.
const OPTION_VARIABLES: [&[u8]; 3] = [b"JAVA_TOOL_OPTIONS=", b"JDK_JAVA_OPTIONS=", b"_JAVA_OPTIONS="];

/// A process that runs a `HotSpot` JVM. It refers to the same process even if the process ID is reused.
#[derive(Debug, Clone)]
pub struct Jvm {
    pid: u32,
    own_pid: u32,
    start_time: u64,
    user: u32,
    group: u32,
    c_library: CLibrary,
    dir: ProcDir,
    pidfd: Arc<OwnedFd>,
}

impl Jvm {
    /// Examines the process with this ID, without sending it anything.
    ///
    /// # Errors
    /// Fails if the process is not a `HotSpot` JVM, or cannot be inspected.
    pub fn examine(pid: u32) -> Result<Self, AttachError> {
        let gone = || AttachError::NoProcess { pid };
        let dir = ProcDir::open(Path::new("/proc"), pid).map_err(|_gone| gone())?;
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
        let pidfd = match pidfd_open(number, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            // The number is the ID of a thread.
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Err(gone()),
            Err(error) => return Err(AttachError::io("hold the process (Linux 5.3 or later)")(error.into())),
        };
        let status = dir.status().ok_or_else(gone)?;
        let maps = dir.read_most("maps", MAX_MAPS).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied
                if status.effective_uid == rustix::process::geteuid().as_raw() =>
            {
                AttachError::Protected { pid }
            }
            io::ErrorKind::PermissionDenied => AttachError::NotPermitted { pid, user: status.effective_uid },
            _ => gone(),
        })?;
        // The folder was readable, so the process ID still referred to this process when the descriptor was created.
        let (_, start_time) = dir.stat().ok_or_else(gone)?;
        if status.state == 'Z' || status.tgid != pid {
            return Err(gone());
        }
        let mapped = MemoryMap::parse(&maps, "");
        match mapped.jvm {
            Some(JvmKind::HotSpot) => {}
            Some(JvmKind::OpenJ9) => return Err(AttachError::OpenJ9 { pid }),
            None => return Err(AttachError::NotAJvm { pid }),
        }
        let c_library = mapped.c_library;
        let (own_pid, user, group) = (status.ns_pid, status.effective_uid, status.effective_gid);
        Ok(Self { pid, own_pid, start_time, user, group, c_library, dir, pidfd: Arc::new(pidfd) })
    }

    /// Returns the process ID, in the namespace of the caller.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the process ID in its own namespace, which the JVM uses in file names.
    pub fn own_pid(&self) -> u32 {
        self.own_pid
    }

    /// Returns the start time of the process, in clock ticks since boot.
    pub fn start_time(&self) -> u64 {
        self.start_time
    }

    /// Returns the effective user ID.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Returns the effective group ID.
    pub fn group(&self) -> u32 {
        self.group
    }

    /// Returns the C library of the JVM.
    pub fn c_library(&self) -> CLibrary {
        self.c_library
    }

    /// Returns the folder of the process in `/proc`.
    pub fn dir(&self) -> &ProcDir {
        &self.dir
    }

    /// Returns whether the process is in another network namespace, where loopback addresses are different.
    pub fn has_other_network(&self) -> bool {
        self.has_other("ns/net")
    }

    /// Returns whether the process is in another user namespace, where users have different IDs.
    pub fn has_other_users(&self) -> bool {
        self.has_other("ns/user")
    }

    fn has_other(&self, namespace: &str) -> bool {
        let own = ProcDir::open(Path::new("/proc"), "self").and_then(|own| own.link(namespace));
        matches!((own, self.dir.link(namespace)), (Ok(own), Ok(other)) if own != other)
    }

    /// Returns the paths of mapped libraries whose names start with `name`, as they were loaded. A file may have
    /// been removed since.
    ///
    /// # Errors
    /// Fails if the process has ended.
    pub fn libraries(&self, name: &str) -> Result<Vec<PathBuf>, AttachError> {
        let gone = |_gone| AttachError::NoProcess { pid: self.pid };
        let maps = self.dir.read_most("maps", MAX_MAPS).map_err(gone)?;
        Ok(MemoryMap::parse(&maps, name).libraries)
    }

    /// Returns whether an option such as `-XX:+DisableAttachMechanism` is set or cleared in the arguments and
    /// environment variables of the process; the last occurrence counts. Argument files are not read. `None` if
    /// there is no such option.
    pub fn has_option(&self, name: &str) -> Option<bool> {
        let arguments = self.dir.read_most("cmdline", MAX_ARGUMENTS).unwrap_or_default();
        let environment = self.dir.read_most("environ", MAX_ARGUMENTS).unwrap_or_default();
        let variables = environment.split(|byte| *byte == 0);
        let variables =
            variables.filter_map(|text| OPTION_VARIABLES.iter().find_map(|name| text.strip_prefix(*name)));
        let of_variables = variables.flat_map(|text| text.split(u8::is_ascii_whitespace));
        let of_arguments = arguments.split(|byte| *byte == 0);
        // The command line overrides the variables, except for one of them. The program's own arguments come last,
        // but are unlikely to look like options.
        switch_in(of_variables.chain(of_arguments), name)
    }

    /// Returns whether the process has ended, with all of its threads.
    pub fn has_ended(&self) -> bool {
        let mut watched = [PollFd::new(&*self.pidfd, PollFlags::IN)];
        poll(&mut watched, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Checks whether the JVM allows attaching, as far as this is visible from outside. Nothing is sent.
    ///
    /// # Errors
    /// Fails with [`AttachError::Disabled`] if attaching is disabled.
    pub fn check_enabled(&self) -> Result<(), AttachError> {
        match self.has_option("DisableAttachMechanism") {
            Some(true) => Err(AttachError::Disabled { pid: self.pid }),
            _ => Ok(()),
        }
    }

    /// Checks that the agent can be loaded with the JVM's C library.
    ///
    /// # Errors
    /// Fails with [`AttachError::Musl`] if it cannot.
    pub fn check_c_library(&self) -> Result<(), AttachError> {
        match self.c_library {
            CLibrary::Musl => Err(AttachError::Musl { pid: self.pid }),
            _ => Ok(()),
        }
    }

    /// Checks whether the process exists and is not stopped.
    ///
    /// # Errors
    /// Fails if the process has ended or is stopped.
    pub fn check_alive(&self) -> Result<(), AttachError> {
        let pid = self.pid;
        let status = self.dir.status().filter(|status| status.state != 'Z');
        match status.ok_or(AttachError::NoProcess { pid })?.state {
            'T' | 't' => Err(AttachError::Stopped { pid }),
            _ => Ok(()),
        }
    }

    /// Returns whether the process handles SIGQUIT now.
    ///
    /// # Errors
    /// Fails if the process has ended.
    pub fn handles_quit(&self) -> Result<bool, AttachError> {
        let gone = || AttachError::NoProcess { pid: self.pid };
        let status = self.dir.read("status").map_err(|_gone| gone())?;
        Ok(on_quit(&status).ok_or_else(gone)? == OnQuit::Handled)
    }

    /// Sends SIGQUIT to exactly this process, if it handles the signal.
    ///
    /// # Errors
    /// Fails with [`AttachError::SignalNotHandled`] if it does not; then nothing was sent.
    pub(crate) fn quit(&self) -> Result<(), AttachError> {
        let pid = self.pid;
        if !self.handles_quit()? {
            return Err(AttachError::SignalNotHandled { pid });
        }
        match pidfd_send_signal(&*self.pidfd, Signal::QUIT) {
            Ok(()) => Ok(()),
            Err(Errno::SRCH) => Err(AttachError::NoProcess { pid }),
            Err(error) => Err(AttachError::io("send SIGQUIT to the JVM")(error.into())),
        }
    }
}

/// Returns the value of the last argument that switches an option of the JVM on or off: `-XX:+NAME`, `-XX:-NAME`. `None`
/// if there is no such argument.
pub fn switch_in<'a>(arguments: impl Iterator<Item = &'a [u8]>, name: &str) -> Option<bool> {
    let name = OsString::from(name);
    let switch = |argument: &[u8]| match argument.strip_prefix(b"-XX:")?.split_first()? {
        (b'+', rest) if rest == name.as_bytes() => Some(true),
        (b'-', rest) if rest == name.as_bytes() => Some(false),
        _ => None,
    };
    arguments.filter_map(switch).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_switch_counts() {
        let last = |words: &str| switch_in(words.split(' ').map(str::as_bytes), "DisableAttachMechanism");
        assert_eq!(last("java -XX:+DisableAttachMechanism Main"), Some(true));
        assert_eq!(last("java -XX:+DisableAttachMechanism -XX:-DisableAttachMechanism Main"), Some(false));
        assert_eq!(last("java -XX:+DisableAttachMechanisms -XX: -XX:DisableAttachMechanism"), None);
    }

    #[test]
    fn other_processes_are_rejected() {
        let own = std::process::id();
        assert!(matches!(Jvm::examine(own), Err(AttachError::NotAJvm { pid }) if pid == own));
        assert!(matches!(Jvm::examine(0), Err(AttachError::NoProcess { pid: 0 })));
        assert!(matches!(Jvm::examine(u32::MAX), Err(AttachError::NoProcess { .. })));
    }
}
