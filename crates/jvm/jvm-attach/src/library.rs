//! A library in a folder where a JVM can load it and other users cannot replace it: a new folder with an
//! unpredictable name, which only the JVM's user may enter, in a temporary folder of the JVM's root. Both are
//! created with that user's rights.
//!
//! A loaded library no longer needs its file. glibc identifies libraries by path: loading the same path again
//! returns the loaded library, so detaching and attaching again neither writes a file nor maps the library twice.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use runtap_transport::linux::Root;
use rustix::fs::{Mode, OFlags};

use crate::error::AttachError;
use crate::identity::as_its_user;
use crate::jvm::Jvm;
use crate::private::PrivateFolder;

/// The time limit for file operations, which allows for slow disks.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The attempted action, for messages.
const WRITE: &str = "write the agent";

/// The name of the file in which an agent reports why it cannot start.
const ANSWER: &str = "answer";
/// The maximum size of the answer that is read, in bytes.
const MAX_ANSWER: u64 = 8 << 10;

/// A file in which an agent that is being attached can report why it cannot start. It is removed on drop.
#[derive(Debug)]
pub struct AgentAnswer {
    path: PathBuf,
    private: PrivateFolder,
}

impl AgentAnswer {
    /// Creates a folder for the file where a JVM can write.
    ///
    /// # Errors
    /// Fails if no folder is suitable.
    pub async fn create(jvm: &Jvm) -> Result<Self, AttachError> {
        const WHAT: &str = "create a directory for the agent's reply";
        as_its_user(jvm, TIME_LIMIT, WHAT, move |jvm| {
            let root = jvm.dir().root().map_err(AttachError::io(WHAT))?;
            let private = PrivateFolder::below(&root, jvm.user());
            let private = private.map_err(|reason| AttachError::NoFolder { pid: jvm.pid(), reason })?;
            Ok(Self { path: private.path().join(ANSWER), private })
        })
        .await
    }

    /// Returns the path of the file that the agent must create, in the JVM's file system.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the answer: the first line, of at most 8 KiB; `None` if the library has not written one. Any program of the JVM's user
    /// can write it.
    pub fn read(&self) -> Option<String> {
        let file = self.private.inside().open_itself(ANSWER.as_ref()).ok()?;
        let mut bytes = Vec::new();
        file.take(MAX_ANSWER).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().next().unwrap_or_default().trim();
        (!line.is_empty()).then(|| line.to_owned())
    }
}

impl Drop for AgentAnswer {
    fn drop(&mut self) {
        let _ = self.private.inside().remove(ANSWER.as_ref());
    }
}

/// A library that a JVM can load. It is removed on drop, with its folder.
#[derive(Debug)]
pub struct PlacedLibrary {
    path: PathBuf,
    name: String,
    private: PrivateFolder,
}

impl PlacedLibrary {
    /// Writes a library to a folder from which a JVM can load it, and verifies it.
    ///
    /// # Errors
    /// Fails if no folder is suitable, or if the JVM cannot load the library in any case.
    pub async fn write(
        jvm: &Jvm,
        name: &str,
        bytes: impl AsRef<[u8]> + Send + 'static,
    ) -> Result<Self, AttachError> {
        jvm.check_c_library()?;
        let name = name.to_owned();
        as_its_user(jvm, TIME_LIMIT, WRITE, move |jvm| {
            let root = jvm.dir().root().map_err(AttachError::io(WRITE))?;
            Self::below(&root, jvm.user(), &name, bytes.as_ref())
                .map_err(|reason| AttachError::NoFolder { pid: jvm.pid(), reason })
        })
        .await
    }

    /// Writes the library to the first suitable folder. Fails with the reason for each folder.
    fn below(root: &Root, user: u32, name: &str, bytes: &[u8]) -> Result<Self, String> {
        PrivateFolder::first(root, user, |private| Self::in_folder(private, name, bytes))
    }

    fn in_folder(private: PrivateFolder, name: &str, bytes: &[u8]) -> io::Result<Self> {
        let path = private.path().join(name);
        let placed = Self { path, name: name.to_owned(), private };
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::openat(placed.private.inside(), name, flags, Mode::RUSR | Mode::WUSR)?;
        let mut file = File::from(file);
        file.write_all(bytes)?;
        rustix::fs::fchmod(&file, Mode::RUSR | Mode::XUSR)?;
        drop(file);
        placed.verify(bytes)?;
        Ok(placed)
    }

    /// Verifies the content of the file.
    fn verify(&self, bytes: &[u8]) -> io::Result<()> {
        let mut content = Vec::new();
        let limit = u64::try_from(bytes.len()).map_err(io::Error::other)?.saturating_add(1);
        self.private.inside().open_itself(self.name.as_ref())?.take(limit).read_to_end(&mut content)?;
        if content == bytes {
            Ok(())
        } else {
            Err(io::Error::other("the written file has different content"))
        }
    }

    /// Returns the path of the library in the JVM's file system.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PlacedLibrary {
    fn drop(&mut self) {
        let _ = self.private.inside().remove(self.name.as_ref());
    }
}
