//! The file that changes the effect of SIGQUIT from printing all stacks to listening: `.attach_pidN`, which the JVM
//! looks up in its working directory and then in `/tmp`, and accepts from its own user (and from root, since JDK
//! 9).

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

/// The trigger file. It is removed on drop.
#[derive(Debug)]
pub(crate) struct Trigger {
    /// The folder and the name of the file; `None` if another program created it.
    created: Option<(Folder, String)>,
}

impl Trigger {
    /// Creates the file, on a thread with the rights of the JVM's user: in `/tmp`, where all users may create
    /// files, otherwise in the working directory.
    pub(crate) fn create(jvm: &Jvm) -> Result<Self, AttachError> {
        let name = format!(".attach_pid{}", jvm.own_pid());
        let in_temp = folder::open(jvm, "/tmp").and_then(|temp| create_in(&temp, &name, jvm.user()));
        let in_temp = match in_temp {
            Ok(created) => return Ok(Self { created: created.map(|temp| (temp, name)) }),
            // In the working directory, the JVM would find the file, but it could not create its socket.
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
            Ok(created) => Ok(Self { created: created.map(|working| (working, name)) }),
            Err(error) => {
                let reason = format!("{in_temp} (/tmp); {error} (its working directory)");
                Err(AttachError::Trigger { pid: jvm.pid(), name, reason })
            }
        }
    }
}

/// Creates the file. Returns the folder; `None` if a file that the JVM accepts already exists.
fn create_in(folder: &Folder, name: &str, user: u32) -> io::Result<Option<Folder>> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR) {
        Ok(_) => Ok(Some(folder.clone())),
        Err(Errno::EXIST) => {
            let existing = folder.stat(OsStr::new(name))?;
            let is_file = FileType::from_raw_mode(existing.st_mode) == FileType::RegularFile;
            if is_file && existing.st_uid == user {
                return Ok(None);
            }
            Err(io::Error::other("a file of another user has this name"))
        }
        Err(error) => Err(error.into()),
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        if let Some((folder, name)) = self.created.take() {
            // The JVM has seen the file, or never will.
            let _ = folder.remove(name.as_ref());
        }
    }
}
