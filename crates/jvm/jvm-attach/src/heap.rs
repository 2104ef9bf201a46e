//! The heap of a JVM: a dump that it writes to a file, and its sums by class.
//!
//! A JVM writes with its own rights and never to an existing file. The file is in a new folder that only its user may enter,
//! in a temporary folder of its root, so this also works for JVMs in containers and of other users.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::client::Client;
use crate::codec::Request;
use crate::error::AttachError;
use crate::identity::as_its_user;
use crate::jvm::Jvm;
use crate::private::PrivateFolder;

/// The time limit for creating the folder.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// The time limit for the reply, which follows a full collection and the writing of all objects.
const DUMP_TIME_LIMIT: Duration = Duration::from_hours(1);
/// The name of the file. Some tools check the extension.
const NAME: &str = "heap.hprof";
/// What a JVM replies if it has written the file. There is no other sign of success.
const SUCCESS: &str = "Heap dump file created";
/// The maximum length of a quoted reply, in characters.
const MAX_QUOTE: usize = 500;

/// A file into which a JVM writes its heap. It is removed on drop, with its folder.
#[derive(Debug)]
pub struct HeapDumpFile {
    path: PathBuf,
    private: PrivateFolder,
}

impl HeapDumpFile {
    /// Creates a folder for the file where a JVM can write and other users cannot.
    ///
    /// # Errors
    /// Fails if no folder is suitable.
    pub async fn create(jvm: &Jvm) -> Result<Self, AttachError> {
        const WHAT: &str = "create a directory for the heap";
        as_its_user(jvm, TIME_LIMIT, WHAT, move |jvm| {
            let root = jvm.dir().root().map_err(AttachError::io(WHAT))?;
            let private = PrivateFolder::for_data(&root, jvm.user());
            let private = private.map_err(|reason| AttachError::NoDumpFolder { pid: jvm.pid(), reason })?;
            Ok(Self { path: private.path().join(NAME), private })
        })
        .await
    }

    /// Returns the path of the file in the JVM's file system.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file for reading. Any program of the JVM's user can have written it.
    ///
    /// # Errors
    /// Fails if there is no such file, or if it is not a regular file.
    pub fn open(&self) -> io::Result<File> {
        self.private.inside().open_itself(NAME.as_ref())
    }

    /// Returns the number of bytes that have been written.
    pub fn bytes(&self) -> u64 {
        let stat = self.private.inside().stat(NAME.as_ref());
        stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Deletes the file and its folder.
    pub fn delete(&self) {
        // Errors are ignored: a folder that cannot be removed is removed by a later run.
        let _ = self.private.inside().remove(NAME.as_ref());
        self.private.delete();
    }
}

impl Drop for HeapDumpFile {
    fn drop(&mut self) {
        self.delete();
    }
}

impl Client {
    /// Has the JVM write the objects that are alive to the file, after a full collection.
    ///
    /// # Errors
    /// Fails if the JVM has not written the file.
    pub async fn dump_heap(&self, file: &HeapDumpFile) -> Result<(), AttachError> {
        let reply = self.request_within(&Request::dump_heap(file.path()), DUMP_TIME_LIMIT).await?;
        let text = reply.message();
        if reply.code == 0 && text.contains(SUCCESS) && file.bytes() > 0 {
            return Ok(());
        }
        let text = text.trim().chars().take(MAX_QUOTE).collect();
        Err(AttachError::NotDumped { pid: self.jvm().pid(), text })
    }

    /// Returns the sums by class of the objects that are alive, after a full collection, as the JVM prints them.
    ///
    /// # Errors
    /// Fails if the JVM does not reply, or rejects the command.
    pub async fn inspect_heap(&self) -> Result<Vec<u8>, AttachError> {
        let request = Request::inspect_heap();
        let reply = self.request_within(&request, DUMP_TIME_LIMIT).await?;
        if reply.code == 0 {
            return Ok(reply.text);
        }
        let (command, code, message) = (request.command(), reply.code, reply.message());
        Err(AttachError::Rejected { command, code, message })
    }
}
