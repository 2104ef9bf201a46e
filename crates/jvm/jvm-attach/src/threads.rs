//! The threads of a JVM: `threaddump`, and for virtual threads a file that the JVM writes into a private folder.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use runtap_model::thread_dump::ThreadDump;

use crate::client::Client;
use crate::codec::{Request, ThreadDumpLimits, add_virtual_threads, thread_dump, vm_version};
use crate::error::AttachError;
use crate::identity::as_its_user;
use crate::jvm::Jvm;
use crate::private::PrivateFolder;

/// The first version with virtual threads.
const FIRST_VERSION: u32 = 21;
const WHAT: &str = "create a directory for the list of virtual threads";
/// The name of the file that the JVM writes.
const FILE: &str = "threads.json";
/// The maximum size of the file, in bytes. 10,000 virtual threads take about 6 MB.
const MAX_FILE: u64 = 512 << 20;
/// The time limit for file operations, which allows for slow disks.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Whether the virtual threads of a JVM are in its dump.
#[derive(Debug)]
pub enum VirtualThreads {
    /// The JVM has no virtual threads (JDK 20 and earlier).
    Unsupported,
    /// The virtual threads were not requested.
    NotRequested,
    /// The virtual threads are included.
    Included,
    /// The JVM could not list its virtual threads.
    Failed(AttachError),
}

/// The content of a dump.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadDumpOptions {
    /// Whether to determine the owners of `java.util.concurrent` locks outside of deadlocks. The JVM stops all threads while it
    /// searches its heap for the locks.
    pub synchronizers: bool,
    /// Whether to include virtual threads. The JVM writes them to a file, which is then read and removed.
    pub virtual_threads: bool,
}

impl Client {
    /// Returns the threads of the JVM.
    ///
    /// # Errors
    /// Fails if there is no thread dump. Missing virtual threads are not an error.
    pub async fn thread_dump(
        &self,
        options: ThreadDumpOptions,
    ) -> Result<(ThreadDump, VirtualThreads), AttachError> {
        let pid = self.jvm().pid();
        let limits = ThreadDumpLimits::default();
        let reply = self.execute(&Request::thread_dump(options.synchronizers)).await?;
        let dump = thread_dump(&reply, &limits);
        let mut dump = dump.map_err(|source| AttachError::ThreadDump { pid, source })?;
        if vm_version(&reply).is_some_and(|version| version < FIRST_VERSION) {
            return Ok((dump, VirtualThreads::Unsupported));
        }
        if !options.virtual_threads {
            return Ok((dump, VirtualThreads::NotRequested));
        }
        let added = match self.virtual_threads().await {
            Ok(file) => {
                let added = add_virtual_threads(&mut dump, &file, &limits);
                added.map(|_count| ()).map_err(|source| AttachError::ThreadDump { pid, source })
            }
            Err(error) => Err(error),
        };
        Ok((dump, added.map_or_else(VirtualThreads::Failed, |()| VirtualThreads::Included)))
    }

    /// Returns the file with all threads in JSON.
    async fn virtual_threads(&self) -> Result<Vec<u8>, AttachError> {
        let file = ThreadFile::create(self.jvm()).await?;
        let mut command = OsString::from("Thread.dump_to_file -format=json ");
        command.push(file.path());
        let reply = self.request(&Request::jcmd(&command)).await?;
        // A JVM reports success for some files that it does not complete.
        let message = reply.message();
        if reply.code != 0 || !message.starts_with("Created ") {
            let command = "jcmd Thread.dump_to_file".to_owned();
            return Err(AttachError::Rejected { command, code: reply.code, message });
        }
        file.read()
    }
}

/// A file for the list of threads. It is removed on drop, with its folder.
#[derive(Debug)]
struct ThreadFile {
    private: PrivateFolder,
}

impl ThreadFile {
    async fn create(jvm: &Jvm) -> Result<Self, AttachError> {
        as_its_user(jvm, TIME_LIMIT, WHAT, move |jvm| {
            let root = jvm.dir().root().map_err(AttachError::io(WHAT))?;
            let private = PrivateFolder::below(&root, jvm.user());
            let private = private.map_err(|reason| AttachError::NoFolder { pid: jvm.pid(), reason })?;
            Ok(Self { private })
        })
        .await
    }

    /// Returns the path in the JVM's file system.
    fn path(&self) -> PathBuf {
        self.private.path().join(FILE)
    }

    fn read(&self) -> Result<Vec<u8>, AttachError> {
        let io = AttachError::io("read the list of virtual threads");
        let file = self.private.inside().open_itself(FILE.as_ref()).map_err(&io)?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE).read_to_end(&mut bytes).map_err(io)?;
        Ok(bytes)
    }
}

impl Drop for ThreadFile {
    fn drop(&mut self) {
        let _ = self.private.inside().remove(FILE.as_ref());
    }
}
