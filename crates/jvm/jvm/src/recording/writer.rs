//! Recordings while they are made.
//!
//! Owns: [`Folder`], which HQ hands every byte. Nothing is buffered: the bytes are with the system before the row that speaks of
//! them, so that whatever is left when HQ is killed can be read. A file that could not be written whole gets nothing more.

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

/// Parts that may be open at a time.
const MOST_OPEN: usize = 1000;

/// The file of named parts.
pub(crate) const MARKS: &str = "marks.tsv";

/// A folder that a recording is written to. Files are readable for their owner alone: names of classes and threads, and values
/// of markers, are a program's own business.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    marks: Mutex<Marked>,
}

/// What was marked.
#[derive(Debug, Default)]
struct Marked {
    /// The file, once there is a mark.
    file: Option<File>,
    /// The parts that have begun and not ended.
    open: BTreeSet<String>,
}

impl Folder {
    /// Makes the folder, if it is not there. Those that lead to it have to be: a slip of the pen makes no tree of folders.
    ///
    /// # Errors
    /// It can't be made or looked at, or has a recording already.
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
            let is_ours =
                name.to_str().is_some_and(|name| name == MARKS || StreamName::parse(name).is_some());
            if is_ours {
                return Err(Error::Taken(path.to_owned()));
            }
        }
        Ok(Self { path: path.to_owned(), marks: Mutex::default() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file that is there at once.
    fn file(&self, name: &str) -> io::Result<File> {
        let made = PendingFile::of(&self.path.join(name)).and_then(PendingFile::appear);
        // With its cause: nobody asks further.
        made.map(|(file, _)| file).map_err(|error| io::Error::other(format!("{error}: {}", error.cause)))
    }
}

impl Recorder for Folder {
    fn open(&self, agent: AgentId, connection: Connection) -> io::Result<Box<dyn Tape>> {
        let mut directions = BTreeMap::new();
        for (side, is_hq) in [(Side::Agent, false), (Side::Hq, true)] {
            let name = StreamName { agent: format!("agent{}", agent.0), connection, side };
            // The bytes first: an index alone would speak of what is not there.
            let bytes = self.file(&name.bytes_file())?;
            let index = self.file(&name.index_file())?;
            directions.insert(is_hq, Direction { bytes, index, last: Duration::ZERO });
        }
        Ok(Box::new(Files { directions }))
    }

    fn mark(&self, at: Duration, name: &str, begins: bool) -> io::Result<()> {
        let mark = Mark::new(at, name, begins)
            .map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?;
        let refused = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        // `DIR#NAME` could not choose it: these are segments and ranges there.
        if name.contains('=') || name.contains("..") {
            return Err(refused(format!("'{name}': the name of a part has neither '=' nor '..'")));
        }
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let Marked { file, open } = &mut *marks;
        match (begins, open.contains(name)) {
            (true, true) => return Err(refused(format!("'{name}' has begun and not ended"))),
            (false, false) => return Err(refused(format!("'{name}' has not begun"))),
            _ => {}
        }
        if begins && open.len() >= MOST_OPEN {
            return Err(refused(format!("{MOST_OPEN} parts have begun and not ended")));
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

/// The files of a connection; HQ's direction is `true`.
struct Files {
    directions: BTreeMap<bool, Direction>,
}

struct Direction {
    bytes: File,
    index: File,
    last: Duration,
}

impl Direction {
    fn row(&mut self, row: Row) -> io::Result<()> {
        self.index.write_all(format!("{row}\n").as_bytes())
    }

    /// Times of two threads may cross.
    fn at(&mut self, at: Duration) -> Duration {
        self.last = self.last.max(at);
        self.last
    }
}

impl Tape for Files {
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
        // The system takes every byte for a file that nobody can find any more.
        for file in self.directions.values().flat_map(|it| [&it.bytes, &it.index]) {
            if is_deleted(file)? {
                return Err(io::Error::other("its files were deleted while they were written"));
            }
        }
        Ok(())
    }
}
