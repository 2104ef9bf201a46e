//! A process that was examined: whether it is a `HotSpot` machine, and whether SIGQUIT does it no harm. Reads only.

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
use crate::proc_texts::{CLibrary, Make, Mapped, OnQuit, on_quit};

/// More of a memory map, of arguments or of an environment is not read: the process chooses how long they are.
const MOST_MAPS: usize = 32 << 20;
const MOST_WORDS: usize = 4 << 20;
/// Variables with options of the JVM.
const OPTION_VARIABLES: [&[u8]; 3] = [b"JAVA_TOOL_OPTIONS=", b"JDK_JAVA_OPTIONS=", b"_JAVA_OPTIONS="];

/// A process that runs a `HotSpot` machine. Whatever becomes of its number, it is this process that is meant.
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
    /// Examines the process with this id. Sends it nothing.
    ///
    /// # Errors
    /// It is no `HotSpot` machine, or may not be looked into.
    pub fn examine(pid: u32) -> Result<Self, AttachError> {
        let gone = || AttachError::NoProcess { pid };
        let dir = ProcDir::open(Path::new("/proc"), pid).map_err(|_gone| gone())?;
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
        let pidfd = match pidfd_open(number, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            // The number is that of a thread.
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Err(gone()),
            Err(error) => return Err(AttachError::io("hold the process (Linux 5.3 or later)")(error.into())),
        };
        let status = dir.status().ok_or_else(gone)?;
        let maps = dir.read_most("maps", MOST_MAPS).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied
                if status.effective_uid == rustix::process::geteuid().as_raw() =>
            {
                AttachError::Protected { pid }
            }
            io::ErrorKind::PermissionDenied => AttachError::NotPermitted { pid, user: status.effective_uid },
            _ => gone(),
        })?;
        // The folder could be read: so it was this process to which the number belonged when the descriptor was made.
        let (_, start_time) = dir.stat().ok_or_else(gone)?;
        if status.state == 'Z' || status.tgid != pid {
            return Err(gone());
        }
        let mapped = Mapped::parse(&maps, "");
        match mapped.make {
            Some(Make::HotSpot) => {}
            Some(Make::OpenJ9) => return Err(AttachError::OpenJ9 { pid }),
            None => return Err(AttachError::NotAJvm { pid }),
        }
        let c_library = mapped.c_library;
        let (own_pid, user, group) = (status.ns_pid, status.effective_uid, status.effective_gid);
        Ok(Self { pid, own_pid, start_time, user, group, c_library, dir, pidfd: Arc::new(pidfd) })
    }

    /// Its id in our pid namespace.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its id in its own pid namespace, by which it names its files.
    pub fn own_pid(&self) -> u32 {
        self.own_pid
    }

    /// When it was started, in clock ticks since boot.
    pub fn start_time(&self) -> u64 {
        self.start_time
    }

    /// Its effective user.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Its effective group.
    pub fn group(&self) -> u32 {
        self.group
    }

    /// The C library of its JVM.
    pub fn c_library(&self) -> CLibrary {
        self.c_library
    }

    /// Its folder in `/proc`.
    pub fn dir(&self) -> &ProcDir {
        &self.dir
    }

    /// Whether it has another network than we have: an address of this machine's loopback is another one there.
    pub fn has_other_network(&self) -> bool {
        self.has_other("ns/net")
    }

    /// Whether it is in another user namespace than we are: users have other numbers there.
    pub fn has_other_users(&self) -> bool {
        self.has_other("ns/user")
    }

    fn has_other(&self, namespace: &str) -> bool {
        let ours = ProcDir::open(Path::new("/proc"), "self").and_then(|own| own.link(namespace));
        matches!((ours, self.dir.link(namespace)), (Ok(ours), Ok(theirs)) if ours != theirs)
    }

    /// The libraries that it has mapped whose names begin so, by the paths by which it has loaded them. A file may have been
    /// removed since.
    ///
    /// # Errors
    /// It has ended.
    pub fn libraries(&self, name: &str) -> Result<Vec<PathBuf>, AttachError> {
        let gone = |_gone| AttachError::NoProcess { pid: self.pid };
        let maps = self.dir.read_most("maps", MOST_MAPS).map_err(gone)?;
        Ok(Mapped::parse(&maps, name).wanted)
    }

    /// Whether an option such as `-XX:+DisableAttachMechanism` was given to it, by its arguments and variables: the last of
    /// both forms counts. Files of arguments are not read.
    pub fn has_option(&self, name: &str) -> Option<bool> {
        let words = self.dir.read_most("cmdline", MOST_WORDS).unwrap_or_default();
        let environment = self.dir.read_most("environ", MOST_WORDS).unwrap_or_default();
        let variables = environment.split(|byte| *byte == 0);
        let variables =
            variables.filter_map(|text| OPTION_VARIABLES.iter().find_map(|name| text.strip_prefix(*name)));
        let of_variables = variables.flat_map(|text| text.split(u8::is_ascii_whitespace));
        let of_words = words.split(|byte| *byte == 0);
        // What the command line says comes after what the variables say, but for one of them; the program's own arguments
        // come last and hardly look so.
        last_of(of_variables.chain(of_words), name)
    }

    /// Whether the process has ended, with all of its threads.
    pub fn has_ended(&self) -> bool {
        let mut watched = [PollFd::new(&*self.pidfd, PollFlags::IN)];
        poll(&mut watched, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Whether it lets itself be attached to, as far as that shows from outside. Sends it nothing.
    ///
    /// # Errors
    /// [`AttachError::Disabled`]
    pub fn check_enabled(&self) -> Result<(), AttachError> {
        match self.has_option("DisableAttachMechanism") {
            Some(true) => Err(AttachError::Disabled { pid: self.pid }),
            _ => Ok(()),
        }
    }

    /// Whether it can be asked to listen.
    pub(crate) fn check_alive(&self) -> Result<(), AttachError> {
        let pid = self.pid;
        let status = self.dir.status().filter(|status| status.state != 'Z');
        match status.ok_or(AttachError::NoProcess { pid })?.state {
            'T' | 't' => Err(AttachError::Stopped { pid }),
            _ => Ok(()),
        }
    }

    /// Whether it handles SIGQUIT by now.
    pub(crate) fn handles_quit(&self) -> Result<bool, AttachError> {
        let gone = || AttachError::NoProcess { pid: self.pid };
        let status = self.dir.read("status").map_err(|_gone| gone())?;
        Ok(on_quit(&status).ok_or_else(gone)? == OnQuit::Handled)
    }

    /// Sends SIGQUIT, to this process and no other, if it handles it.
    ///
    /// # Errors
    /// [`AttachError::Deaf`] if it does not: then nothing was sent.
    pub(crate) fn quit(&self) -> Result<(), AttachError> {
        let pid = self.pid;
        if !self.handles_quit()? {
            return Err(AttachError::Deaf { pid });
        }
        match pidfd_send_signal(&*self.pidfd, Signal::QUIT) {
            Ok(()) => Ok(()),
            Err(Errno::SRCH) => Err(AttachError::NoProcess { pid }),
            Err(error) => Err(AttachError::io("send SIGQUIT to the JVM")(error.into())),
        }
    }
}

/// The last word of these that switches an option on or off: `-XX:+NAME`, `-XX:-NAME`.
fn last_of<'a>(words: impl Iterator<Item = &'a [u8]>, name: &str) -> Option<bool> {
    let name = OsString::from(name);
    let switch = |word: &[u8]| match word.strip_prefix(b"-XX:")?.split_first()? {
        (b'+', rest) if rest == name.as_bytes() => Some(true),
        (b'-', rest) if rest == name.as_bytes() => Some(false),
        _ => None,
    };
    words.filter_map(switch).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_switch_counts() {
        let last = |words: &str| last_of(words.split(' ').map(str::as_bytes), "DisableAttachMechanism");
        assert_eq!(last("java -XX:+DisableAttachMechanism Main"), Some(true));
        assert_eq!(last("java -XX:+DisableAttachMechanism -XX:-DisableAttachMechanism Main"), Some(false));
        assert_eq!(last("java -XX:+DisableAttachMechanisms -XX: -XX:DisableAttachMechanism"), None);
    }

    #[test]
    fn what_is_no_jvm_is_refused() {
        let own = std::process::id();
        assert!(matches!(Jvm::examine(own), Err(AttachError::NotAJvm { pid }) if pid == own));
        assert!(matches!(Jvm::examine(0), Err(AttachError::NoProcess { pid: 0 })));
        assert!(matches!(Jvm::examine(u32::MAX), Err(AttachError::NoProcess { .. })));
    }
}
