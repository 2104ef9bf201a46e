//! A directory of its own with a socket that is called as the runtime's own, so that a tool with this directory as its `TMPDIR`
//! takes it for the runtime's; or a path that somebody has chosen.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use runtap_os::random_u64;
use runtap_transport::naming::SocketName;
use runtap_transport::{BindOptions, Listener};

use super::{Place, PlaceError};

/// Names that are tried for a directory of our own.
const MAX_NAMES: u32 = 16;

pub(super) fn listen(at: Option<&Path>, name: Option<SocketName>) -> Result<(Place, Listener), PlaceError> {
    let file = name.map_or_else(|| "port".to_owned(), |name| name.to_string());
    let (path, own) = match at {
        Some(at) if at.is_dir() => (at.join(file), None),
        Some(at) => (at.to_owned(), None),
        None => {
            let own = make()?;
            (own.join(file), Some(own))
        }
    };
    // Before it is tried: the directory goes again if it fails.
    let place = Place { path, own };
    let listener = Listener::bind(&place.path, BindOptions::default().replace_stale(true))?;
    Ok((place, listener))
}

pub(super) fn directory(path: &Path) -> Option<&Path> {
    let name = path.file_name().and_then(OsStr::to_str).and_then(SocketName::parse);
    path.parent().filter(|directory| name.is_some() && !directory.as_os_str().is_empty())
}

fn make() -> Result<PathBuf, PlaceError> {
    let parent = std::env::temp_dir();
    let mut tries = 0;
    loop {
        let path = parent.join(format!("runtap-{:016x}", random_u64()));
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < MAX_NAMES => tries += 1,
            Err(source) => return Err(PlaceError::Directory { path: parent, source }),
        }
    }
}
