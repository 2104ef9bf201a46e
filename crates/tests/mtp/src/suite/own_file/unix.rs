//! By the owner and the mode of a file.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::process::geteuid;

use super::Found;

/// Opens a file of at most `most` bytes. It may grow: whoever reads it sets a limit.
///
/// With `anybodys`, ownership does not matter: the user has named it.
///
/// # Errors
/// It can't be opened, is no regular file, or is too large.
pub(crate) fn open(path: &Path, most: u64, anybodys: bool) -> io::Result<Found> {
    // Neither a terminal nor a pipe that somebody has put there holds us up; a link may be anybody's.
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    flags.set(OFlags::NOFOLLOW, !anybodys);
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let foreign = || std::fs::symlink_metadata(path).map(|it| Found::Foreign(it.uid()));
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Found::Nothing);
        }
        // A link, a socket, a file that its owner keeps to itself: whatever others have put there fails no run.
        Err(error) => {
            let found = std::fs::symlink_metadata(path).ok().filter(|_| !anybodys);
            let foreign = found.filter(|found| !found.is_file() || !is_ours(found));
            return foreign.map(|found| Found::Foreign(found.uid())).ok_or(error);
        }
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() && !anybodys {
        return foreign();
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    if !anybodys && !is_ours(&metadata) {
        return Ok(Found::Foreign(metadata.uid()));
    }
    if metadata.len() > most {
        return Err(io::Error::other(format!("it is larger than {most} bytes")));
    }
    Ok(Found::File(file))
}

/// Whether only this user and root can have written it.
fn is_ours(found: &Metadata) -> bool {
    [0, geteuid().as_raw()].contains(&found.uid()) && found.mode() & 0o022 == 0
}

/// The user whose a file or a folder is; `None` for what is not there.
pub(crate) fn owner_of(path: &Path) -> Option<u32> {
    rustix::fs::stat(path).ok().map(|found| found.st_uid)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// The text; `Err` with the user whose it is.
    fn text(path: &Path, most: u64, anybodys: bool) -> Option<Result<String, u32>> {
        match open(path, most, anybodys).unwrap() {
            Found::Nothing => None,
            Found::Foreign(user) => Some(Err(user)),
            Found::File(file) => Some(Ok(io::read_to_string(file).unwrap())),
        }
    }

    #[test]
    fn what_others_can_write_is_not_believed_unless_it_was_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        assert_eq!(text(&path, 10, false), None);
        assert_eq!(text(&path.join("b"), 10, false), None);
        fs::write(&path, "text").unwrap();
        let whole = Some(Ok("text".to_owned()));
        assert_eq!(text(&path, 4, false), whole);
        assert_eq!(open(&path, 3, false).unwrap_err().to_string(), "it is larger than 3 bytes");
        let foreign = Some(Err(geteuid().as_raw()));
        for mode in [0o666, 0o664, 0o646] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(text(&path, 4, false), foreign, "{mode:o}");
        }
        assert_eq!(text(&path, 4, true), whole);
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(text(&link, 4, false), foreign);
        assert_eq!(text(&link, 4, true), whole);
        assert_eq!(text(directory.path(), 4, false), foreign, "no file at all");
        let socket = directory.path().join("socket");
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        assert_eq!(text(&socket, 4, false), foreign, "it can't be opened");
        assert!(open(&socket, 4, true).is_err());
        rustix::fs::mkfifoat(rustix::fs::CWD, directory.path().join("pipe"), rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(text(&directory.path().join("pipe"), 4, false), foreign);
        assert_eq!(open(directory.path(), 4, true).unwrap_err().to_string(), "it is no regular file");
    }
}
