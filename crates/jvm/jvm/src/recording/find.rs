//! What there is of a recording.
//!
//! Owns: [`find`], from a path to the streams of each agent. A path is a folder, one of its files with bytes, or what the files
//! of an agent have in common: `run/agent0` for `run/agent0.ctl.a2h.bin` and the others.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runtap_bytefrog::hq::Connection;
use runtap_bytefrog_proto::Side;

use crate::recording::error::Error;
use crate::recording::marks::{Marks, MarksTrouble};
use crate::recording::names::StreamName;
use crate::recording::writer::MARKS;

/// The most that is read of a file of marks, in bytes.
const MOST_MARKS: u64 = 16 << 20;

/// The most marks of a recording, once for each of its agents: a report has them with every agent.
const MOST_MARKS_OF_ALL: usize = 1 << 21;

/// One direction of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamFiles {
    /// What it is.
    pub name: StreamName,
    /// Its bytes.
    pub bytes: PathBuf,
    /// When they came; `None`: nobody has written that down.
    pub index: Option<PathBuf>,
}

/// An agent that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The name that the recording gives it.
    pub agent: String,
    /// Its streams: control before data, the agent's before HQ's.
    pub streams: Vec<StreamFiles>,
    /// Named parts of the recording: all its agents have the same.
    pub marks: Arc<Marks>,
}

impl Recorded {
    /// What the agent has sent on its control connection.
    pub(crate) fn control(&self) -> Option<&StreamFiles> {
        let is_control =
            |name: &StreamName| name.connection == Connection::Control && name.side == Side::Agent;
        self.streams.iter().find(|stream| is_control(&stream.name))
    }

    /// Bytes of all streams together.
    pub fn bytes(&self) -> u64 {
        let size = |stream: &StreamFiles| fs::metadata(&stream.bytes).map_or(0, |it| it.len());
        self.streams.iter().map(size).fold(0, u64::saturating_add)
    }
}

/// The agents of a recording, in the order of their names, numbers by their value.
///
/// # Errors
/// There is nothing of a recording, a folder can't be read, or an agent has no control connection.
pub fn find(path: &Path) -> Result<Vec<Recorded>, Error> {
    let read = |error| Error::Read { path: path.to_owned(), error };
    let (folder, wanted) = match fs::metadata(path) {
        Ok(there) if there.is_dir() => (path.to_owned(), None),
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
    let mut agents: Vec<Recorded> = Vec::new();
    for stream in streams {
        if let Some(last) = agents.last_mut().filter(|last| last.agent == stream.name.agent) {
            last.streams.push(stream);
        } else {
            let agent = stream.name.agent.clone();
            agents.push(Recorded { agent, streams: vec![stream], marks: Arc::default() });
        }
    }
    if agents.is_empty() {
        return Err(Error::NoRecording(path.to_owned()));
    }
    if let Some(lacking) = agents.iter().find(|agent| agent.control().is_none()) {
        return Err(Error::NoControl { path: folder, agent: lacking.agent.clone() });
    }
    agents.sort_by_key(|agent| by_number(&agent.agent));
    let marks = Arc::new(marks(&folder.join(MARKS)).at_most(MOST_MARKS_OF_ALL / agents.len()));
    for agent in &mut agents {
        agent.marks = Arc::clone(&marks);
    }
    Ok(agents)
}

/// Where a file lies.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// `agent10` comes after `agent9`.
fn by_number(name: &str) -> (String, u64) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = name.get(stem.len()..).and_then(|digits| digits.parse().ok()).unwrap_or(0);
    (stem.to_owned(), number)
}

/// The streams of all agents, or of one, in order.
fn streams(folder: &Path, wanted: Option<&str>) -> Result<Vec<StreamFiles>, Error> {
    let read = |error| Error::Read { path: folder.to_owned(), error };
    let mut streams = Vec::new();
    for entry in fs::read_dir(folder).map_err(read)? {
        let entry = entry.map_err(read)?;
        let Some(name) = entry.file_name().to_str().and_then(StreamName::parse) else { continue };
        if wanted.is_some_and(|wanted| wanted != name.agent) {
            continue;
        }
        // Whatever has its name: that it is no index is told when it is opened.
        let index = Some(folder.join(name.index_file())).filter(|index| fs::symlink_metadata(index).is_ok());
        streams.push(StreamFiles { name, bytes: entry.path(), index });
    }
    streams.sort_by(|a, b| {
        let key = |it: &StreamFiles| (it.name.agent.clone(), it.name.connection, it.name.side == Side::Hq);
        key(a).cmp(&key(b))
    });
    Ok(streams)
}

/// The marks of a folder. Without them the rest can be read: what is wrong with them is [told](Marks::trouble) with them.
fn marks(path: &Path) -> Marks {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        runtap_os::output::open_ordinary(path)?.take(MOST_MARKS + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MOST_MARKS {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => Marks::parse(&bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Marks::default(),
        Err(error) => Marks::unreadable(MarksTrouble::File(error.to_string())),
    }
}
