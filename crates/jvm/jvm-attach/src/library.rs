//! A library where a JVM can read it, and nobody else can exchange it: in a new folder with an unforeseeable name, which only
//! the JVM's user may enter, in a temporary folder of the JVM's own root. Both are made with that user's rights.
//!
//! A library that was loaded needs no file any more. glibc knows it by its path: who loads the same path again gets what is
//! loaded already, so detaching and attaching again write no file and map nothing twice.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use runtap_transport::linux::Root;
use rustix::fs::{Mode, OFlags};

use crate::error::AttachError;
use crate::identity::as_its_user;
use crate::jvm::Jvm;
use crate::private::Private;
use crate::proc_texts::CLibrary;

/// Slow disks, and file systems of users.
const LIMIT: Duration = Duration::from_secs(30);

/// For messages.
const WRITE: &str = "write the agent";

/// The file in which an agent says why it refuses.
const ANSWER: &str = "answer";
/// How much of that is read.
const MOST_SAID: u64 = 8 << 10;

/// A place where an agent that is attached can say why it refuses. Removed when it is dropped.
#[derive(Debug)]
pub struct Answer {
    path: PathBuf,
    private: Private,
}

impl Answer {
    /// Makes it where a JVM can write.
    ///
    /// # Errors
    /// There is no place for it.
    pub async fn create(jvm: &Jvm) -> Result<Self, AttachError> {
        const WHAT: &str = "make a folder for the agent's answer";
        as_its_user(jvm, LIMIT, WHAT, move |jvm| {
            let root = jvm.dir().root().map_err(AttachError::io(WHAT))?;
            let private = Private::below(&root, jvm.user());
            let private = private.map_err(|reason| AttachError::NoPlace { pid: jvm.pid(), reason })?;
            Ok(Self { path: private.path().join(ANSWER), private })
        })
        .await
    }

    /// The file that the agent is to create, in the JVM's own file system.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it has written: a line, of 8 KiB at most. Any program of its user can write there.
    pub fn read(&self) -> Option<String> {
        let file = self.private.inside().open_itself(ANSWER.as_ref()).ok()?;
        let mut bytes = Vec::new();
        file.take(MOST_SAID).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().next().unwrap_or_default().trim();
        (!line.is_empty()).then(|| line.to_owned())
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let _ = self.private.inside().remove(ANSWER.as_ref());
    }
}

/// A library that a JVM can load. Removed when it is dropped, with its folder.
#[derive(Debug)]
pub struct Placed {
    path: PathBuf,
    name: String,
    private: Private,
}

impl Placed {
    /// Writes it where a JVM can load it, and reads it again.
    ///
    /// # Errors
    /// There is no place for it, or the JVM could not load it anyhow.
    pub async fn write(
        jvm: &Jvm,
        name: &str,
        bytes: impl AsRef<[u8]> + Send + 'static,
    ) -> Result<Self, AttachError> {
        if jvm.c_library() == CLibrary::Musl {
            return Err(AttachError::Musl { pid: jvm.pid() });
        }
        let name = name.to_owned();
        as_its_user(jvm, LIMIT, WRITE, move |jvm| {
            let root = jvm.dir().root().map_err(AttachError::io(WRITE))?;
            Self::below(&root, jvm.user(), &name, bytes.as_ref())
                .map_err(|reason| AttachError::NoPlace { pid: jvm.pid(), reason })
        })
        .await
    }

    /// In the first place that is fit, else what is wrong with each.
    fn below(root: &Root, user: u32, name: &str, bytes: &[u8]) -> Result<Self, String> {
        Private::first(root, user, |private| Self::in_folder(private, name, bytes))
    }

    fn in_folder(private: Private, name: &str, bytes: &[u8]) -> io::Result<Self> {
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

    /// What lies there now.
    fn verify(&self, bytes: &[u8]) -> io::Result<()> {
        let mut there = Vec::new();
        let limit = u64::try_from(bytes.len()).map_err(io::Error::other)?.saturating_add(1);
        self.private.inside().open_itself(self.name.as_ref())?.take(limit).read_to_end(&mut there)?;
        if there == bytes { Ok(()) } else { Err(io::Error::other("what was written reads differently")) }
    }

    /// Where the JVM finds it, in its own file system.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        let _ = self.private.inside().remove(self.name.as_ref());
    }
}
