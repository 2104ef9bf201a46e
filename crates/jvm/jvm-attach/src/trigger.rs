//! The file that turns SIGQUIT from "print all stacks" into "listen": `.attach_pidN`, which the JVM looks for in its working
//! directory, then in `/tmp`, and accepts from its own user (and root, from JDK 9 on). It is removed when it is dropped.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

use runtap_transport::Folder;
use runtap_transport::linux::Location;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::error::AttachError;
use crate::folder;
use crate::jvm::Jvm;

/// The file, while it is there.
#[derive(Debug)]
pub(crate) struct Trigger {
    /// Where it was made, unless somebody else made it.
    made: Option<(Folder, String)>,
}

impl Trigger {
    /// Creates it, on a thread with the rights of the JVM's user: in `/tmp`, since anybody may create files there, else in the
    /// working directory.
    pub(crate) fn create(jvm: &Jvm) -> Result<Self, AttachError> {
        let name = format!(".attach_pid{}", jvm.own_pid());
        let in_temp = folder::open(jvm, "/tmp").and_then(|temp| create_in(&temp, &name, jvm.user()));
        let in_temp = match in_temp {
            Ok(made) => return Ok(Self { made: made.map(|temp| (temp, name)) }),
            // The JVM would see the file in its working directory, and could not create its socket.
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                return Err(AttachError::ReadOnlyTemp { pid: jvm.pid(), own_pid: jvm.own_pid() });
            }
            Err(error) => error,
        };
        let working = jvm.dir().working_directory();
        let in_working = working
            .map(|opened| Folder::opened(opened, Location::WorkingDirectory(PathBuf::new()).shown(jvm.dir())))
            .and_then(|working| create_in(&working, &name, jvm.user()));
        match in_working {
            Ok(made) => Ok(Self { made: made.map(|working| (working, name)) }),
            Err(error) => {
                let reason = format!("{in_temp} (/tmp); {error} (its working directory)");
                Err(AttachError::Trigger { pid: jvm.pid(), name, reason })
            }
        }
    }
}

/// Gives the folder back if the file was made; one that the JVM accepts may be there already.
fn create_in(folder: &Folder, name: &str, user: u32) -> io::Result<Option<Folder>> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR) {
        Ok(_) => Ok(Some(folder.clone())),
        Err(Errno::EXIST) => {
            let there = folder.stat(OsStr::new(name))?;
            let is_file = FileType::from_raw_mode(there.st_mode) == FileType::RegularFile;
            if is_file && there.st_uid == user {
                return Ok(None);
            }
            Err(io::Error::other("another user's file has its name"))
        }
        Err(error) => Err(error.into()),
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        if let Some((folder, name)) = self.made.take() {
            // The JVM has seen it, or never will.
            let _ = folder.remove(name.as_ref());
        }
    }
}
