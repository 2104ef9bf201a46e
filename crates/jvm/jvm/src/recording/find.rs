//! The files of a recording.
//!
//! [`find`] lists the streams of each agent. A path is a folder, one of its files with bytes, or the common prefix
//! of an agent's files: `run/agent0` for `run/agent0.ctl.a2h.bin` and the others.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runtap_bytefrog::hq::Connection;
use runtap_bytefrog_proto::Side;
use runtap_model::order;

use crate::recording::error::Error;
use crate::recording::marks::{Marks, MarksProblem};
use crate::recording::names::StreamName;
use crate::recording::writer::MARKS;

/// The maximum size of a file of marks, in bytes.
const MAX_MARKS_SIZE: u64 = 16 << 20;

/// The maximum number of marks of a recording, times its agents: reports contain the marks for every agent.
const MAX_MARKS_OF_ALL: usize = 1 << 21;

/// The files of one direction of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamFiles {
    /// The connection and the direction.
    pub name: StreamName,
    /// The file with the bytes.
    pub bytes: PathBuf,
    /// The file with the times at which the bytes arrived; `None` if the recording lacks that file.
    pub index: Option<PathBuf>,
}

/// An agent in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedAgent {
    /// The name of the agent in the recording.
    pub agent: String,
    /// The streams: control before data, the agent's direction before HQ's.
    pub streams: Vec<StreamFiles>,
    /// The named parts of the recording, which are the same for all agents.
    pub marks: Arc<Marks>,
}

impl RecordedAgent {
    /// Returns the stream from the agent on its control connection.
    pub(crate) fn control(&self) -> Option<&StreamFiles> {
        let is_control =
            |name: &StreamName| name.connection == Connection::Control && name.side == Side::Agent;
        self.streams.iter().find(|stream| is_control(&stream.name))
    }

    /// Returns the total size of all streams, in bytes.
    pub fn bytes(&self) -> u64 {
        let size = |stream: &StreamFiles| fs::metadata(&stream.bytes).map_or(0, |metadata| metadata.len());
        self.streams.iter().map(size).fold(0, u64::saturating_add)
    }
}

/// Returns the agents of a recording, sorted by name, with numbers in numerical order.
///
/// # Errors
/// Fails if the path is not a recording, a folder cannot be read, or an agent has no control connection.
pub fn find(path: &Path) -> Result<Vec<RecordedAgent>, Error> {
    let read = |error| Error::Read { path: path.to_owned(), error };
    let (folder, wanted) = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => (path.to_owned(), None),
        Ok(_) => {
            let name = path.file_name().and_then(|name| name.to_str()).and_then(StreamName::parse);
            let Some(name) = name else { return Err(Error::NoRecording(path.to_owned())) };
            (folder_of(path), Some(name.agent))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(agent) = path.file_name().and_then(|name| name.to_str()) else {
                return Err(read(error));
            };
            let control =
                StreamName { agent: agent.to_owned(), connection: Connection::Control, side: Side::Agent };
            let folder = folder_of(path);
            if !folder.join(control.bytes_file()).is_file() {
                return Err(read(error));
            }
            (folder, Some(agent.to_owned()))
        }
        Err(error) => return Err(read(error)),
    };
    let streams = streams(&folder, wanted.as_deref())?;
    let mut agents: Vec<RecordedAgent> = Vec::new();
    for stream in streams {
        if let Some(last) = agents.last_mut().filter(|last| last.agent == stream.name.agent) {
            last.streams.push(stream);
        } else {
            let agent = stream.name.agent.clone();
            agents.push(RecordedAgent { agent, streams: vec![stream], marks: Arc::default() });
        }
    }
    if agents.is_empty() {
        return Err(Error::NoRecording(path.to_owned()));
    }
    if let Some(incomplete) = agents.iter().find(|agent| agent.control().is_none()) {
        return Err(Error::NoControl { path: folder, agent: incomplete.agent.clone() });
    }
    order::sort_by_key(&mut agents, |agent| by_number(&agent.agent));
    let marks = Arc::new(marks(&folder.join(MARKS)).at_most(MAX_MARKS_OF_ALL / agents.len()));
    for agent in &mut agents {
        agent.marks = Arc::clone(&marks);
    }
    Ok(agents)
}

/// Returns whether the path is a recording: a folder with streams, a file with the name of a stream, or the common prefix
/// of an agent's files.
pub fn is_recording(path: &Path) -> bool {
    let stream_of = |name: &OsStr| name.to_str().and_then(StreamName::parse);
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::read_dir(path)
            .is_ok_and(|entries| entries.flatten().any(|entry| stream_of(&entry.file_name()).is_some())),
        Ok(_) => path.file_name().and_then(stream_of).is_some(),
        Err(_) => find(path).is_ok(),
    }
}

/// Returns the folder of a file.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Returns a sort key by which `agent10` follows `agent9`.
fn by_number(name: &str) -> (String, u64) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = name.get(stem.len()..).and_then(|digits| digits.parse().ok()).unwrap_or(0);
    (stem.to_owned(), number)
}

/// Returns the streams of all agents, or of one, sorted.
fn streams(folder: &Path, wanted: Option<&str>) -> Result<Vec<StreamFiles>, Error> {
    let read = |error| Error::Read { path: folder.to_owned(), error };
    let mut streams = Vec::new();
    for entry in fs::read_dir(folder).map_err(read)? {
        let entry = entry.map_err(read)?;
        let Some(name) = entry.file_name().to_str().and_then(StreamName::parse) else { continue };
        if wanted.is_some_and(|wanted| wanted != name.agent) {
            continue;
        }
        // Any file with the name of an index is used; opening it reports if it is invalid.
        let index = Some(folder.join(name.index_file())).filter(|index| fs::symlink_metadata(index).is_ok());
        streams.push(StreamFiles { name, bytes: entry.path(), index });
    }
    order::sort_by(&mut streams, |a, b| {
        let key = |it: &StreamFiles| (it.name.agent.clone(), it.name.connection, it.name.side == Side::Hq);
        key(a).cmp(&key(b))
    });
    Ok(streams)
}

/// Reads the marks of a folder. The rest of a recording can be read without them, so problems are
/// [stored](Marks::problem) with the marks.
fn marks(path: &Path) -> Marks {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        runtap_os::output::open_ordinary(path)?.take(MAX_MARKS_SIZE + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_MARKS_SIZE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => Marks::parse(&bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Marks::default(),
        Err(error) => Marks::unreadable(MarksProblem::File(error.to_string())),
    }
}
