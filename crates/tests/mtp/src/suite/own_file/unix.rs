//! Trust by the owner and the mode of a file.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::process::geteuid;

use super::OpenedFile;

/// Opens a file of at limit `limit` bytes. The file may grow, so readers must apply a limit too.
///
/// `is_named` is whether the user specified the file; its owner is not checked then.
///
/// # Errors
/// Returns an error if the file cannot be opened, is not a regular file, or is too large.
pub(crate) fn open(path: &Path, limit: u64, is_named: bool) -> io::Result<OpenedFile> {
    // Do not block on terminals and pipes of other users; links may be created by any user.
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    flags.set(OFlags::NOFOLLOW, !is_named);
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let foreign = || std::fs::symlink_metadata(path).map(|it| OpenedFile::Foreign(it.uid()));
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(OpenedFile::Nothing);
        }
        // Links, sockets, and unreadable files of other users must not make the run fail.
        Err(error) => {
            let found = std::fs::symlink_metadata(path).ok().filter(|_| !is_named);
            let foreign = found.filter(|found| !found.is_file() || !is_trusted(found));
            return foreign.map(|found| OpenedFile::Foreign(found.uid())).ok_or(error);
        }
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() && !is_named {
        return foreign();
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if !is_named && !is_trusted(&metadata) {
        return Ok(OpenedFile::Foreign(metadata.uid()));
    }
    if metadata.len() > limit {
        return Err(io::Error::other(format!("it is larger than {limit} bytes")));
    }
    Ok(OpenedFile::File(file))
}

/// Returns whether only this user and root can have written the file.
fn is_trusted(found: &Metadata) -> bool {
    [0, geteuid().as_raw()].contains(&found.uid()) && found.mode() & 0o022 == 0
}

/// Returns the owner of a file or a folder, or `None` if it does not exist.
pub(crate) fn owner_of(path: &Path) -> Option<u32> {
    rustix::fs::stat(path).ok().map(|found| found.st_uid)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Returns the text, or the owner as an error.
    fn text(path: &Path, limit: u64, is_named: bool) -> Option<Result<String, u32>> {
        match open(path, limit, is_named).unwrap() {
            OpenedFile::Nothing => None,
            OpenedFile::Foreign(user) => Some(Err(user)),
            OpenedFile::File(file) => Some(Ok(io::read_to_string(file).unwrap())),
        }
    }

    #[test]
    fn files_that_others_can_write_are_used_only_if_specified() {
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
        assert_eq!(text(directory.path(), 4, false), foreign, "not a file");
        let socket = directory.path().join("socket");
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        assert_eq!(text(&socket, 4, false), foreign, "the socket cannot be opened");
        assert!(open(&socket, 4, true).is_err());
        rustix::fs::mkfifoat(rustix::fs::CWD, directory.path().join("pipe"), rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(text(&directory.path().join("pipe"), 4, false), foreign);
        assert_eq!(open(directory.path(), 4, true).unwrap_err().to_string(), "it is not a regular file");
    }
}
