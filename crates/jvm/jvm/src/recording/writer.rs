//! The writer of recordings.
//!
//! HQ passes every byte to a [`RecordingWriter`]. Nothing is buffered: the bytes are written before the row of the index
//! that covers them, so that a recording is readable if HQ is killed. After a failed write, a file is not written
//! any more.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use runtap_bytefrog::hq::{AgentId, Connection, Recorder, Tape};
use runtap_bytefrog_proto::Side;
use runtap_os::output::{PendingFile, is_deleted, make_folder};

use crate::recording::chunks::Row;
use crate::recording::error::Error;
use crate::recording::marks::Mark;
use crate::recording::names::StreamName;

/// The maximum number of parts that may be open at the same time.
const MAX_OPEN: usize = 1000;

/// The name of the file of named parts.
pub(crate) const MARKS: &str = "marks.tsv";

/// A folder that a recording is written to. The files are readable by their owner only, because names of classes
/// and threads, and values of markers, may be confidential.
#[derive(Debug)]
pub struct RecordingWriter {
    path: PathBuf,
    marks: Mutex<MarksFile>,
}

/// The file of named parts.
#[derive(Debug, Default)]
struct MarksFile {
    /// The file, once there is a mark.
    file: Option<File>,
    /// The names of the open parts.
    open: BTreeSet<String>,
}

impl RecordingWriter {
    /// Creates the folder if it does not exist. Its parent must exist, so that a mistyped path creates no folders.
    ///
    /// # Errors
    /// Fails if the folder cannot be created or read, or already contains a recording.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let parent = path.parent().filter(|parent| *parent != Path::new(""));
        if let Some(parent) = parent
            && matches!(fs::metadata(parent), Err(error) if error.kind() == io::ErrorKind::NotFound)
        {
            return Err(Error::NoParent(parent.to_owned()));
        }
        make_folder(path)?;
        let read = |error| Error::Read { path: path.to_owned(), error };
        for entry in fs::read_dir(path).map_err(read)? {
            let name = entry.map_err(read)?.file_name();
            let is_of_recording =
                name.to_str().is_some_and(|name| name == MARKS || StreamName::parse(name).is_some());
            if is_of_recording {
                return Err(Error::AlreadyRecorded(path.to_owned()));
            }
        }
        Ok(Self { path: path.to_owned(), marks: Mutex::default() })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a file that is visible immediately.
    fn file(&self, name: &str) -> io::Result<File> {
        let made = PendingFile::of(&self.path.join(name)).and_then(PendingFile::appear);
        // The message includes the cause, because it is reported without the error's source.
        made.map(|(file, _)| file).map_err(|error| io::Error::other(format!("{error}: {}", error.cause)))
    }
}

impl Recorder for RecordingWriter {
    fn open(&self, agent: AgentId, connection: Connection) -> io::Result<Box<dyn Tape>> {
        let mut directions = BTreeMap::new();
        for (side, is_hq) in [(Side::Agent, false), (Side::Hq, true)] {
            let name = StreamName { agent: format!("agent{}", agent.0), connection, side };
            // The bytes first: an index alone would refer to a missing file.
            let bytes = self.file(&name.bytes_file())?;
            let index = self.file(&name.index_file())?;
            directions.insert(is_hq, DirectionFiles { bytes, index, last: Duration::ZERO });
        }
        Ok(Box::new(ConnectionTape { directions }))
    }

    fn mark(&self, at: Duration, name: &str, begins: bool) -> io::Result<()> {
        let mark = Mark::new(at, name, begins)
            .map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?;
        let rejected = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        // `DIR#NAME` could not select such a part: there, these characters denote segments and ranges.
        if name.contains('=') || name.contains("..") {
            return Err(rejected(format!("'{name}': the name of a part must contain neither '=' nor '..'")));
        }
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let MarksFile { file, open } = &mut *marks;
        match (begins, open.contains(name)) {
            (true, true) => return Err(rejected(format!("part '{name}' has already started"))),
            (false, false) => return Err(rejected(format!("part '{name}' has not started"))),
            _ => {}
        }
        if begins && open.len() >= MAX_OPEN {
            return Err(rejected(format!("{MAX_OPEN} parts are open, which is the limit")));
        }
        let file = match file {
            Some(file) => file,
            none => none.insert(self.file(MARKS)?),
        };
        file.write_all(format!("{mark}\n").as_bytes())?;
        if begins {
            open.insert(name.to_owned());
        } else {
            open.remove(name);
        }
        Ok(())
    }
}

/// The files of a connection; the key `true` is HQ's direction.
struct ConnectionTape {
    directions: BTreeMap<bool, DirectionFiles>,
}

struct DirectionFiles {
    bytes: File,
    index: File,
    last: Duration,
}

impl DirectionFiles {
    fn row(&mut self, row: Row) -> io::Result<()> {
        self.index.write_all(format!("{row}\n").as_bytes())
    }

    /// Returns the time, at least that of the last row: the times of two threads may be out of order.
    fn at(&mut self, at: Duration) -> Duration {
        self.last = self.last.max(at);
        self.last
    }
}

impl Tape for ConnectionTape {
    fn write(&mut self, side: Side, at: Duration, bytes: &[u8]) -> io::Result<()> {
        let Some(direction) = self.directions.get_mut(&(side == Side::Hq)) else { return Ok(()) };
        let at = direction.at(at);
        direction.bytes.write_all(bytes)?;
        direction.row(Row::Bytes { at, bytes: bytes.len() as u64 })
    }

    fn end(&mut self, at: Duration) -> io::Result<()> {
        if let Some(direction) = self.directions.get_mut(&false) {
            let at = direction.at(at);
            direction.row(Row::End { at })?;
        }
        // Writes to deleted files succeed, so check whether the files still exist.
        for file in self.directions.values().flat_map(|it| [&it.bytes, &it.index]) {
            if is_deleted(file)? {
                return Err(io::Error::other("the files were deleted while they were written"));
            }
        }
        Ok(())
    }
}
