//! Opens files that somebody else may have put there: refuses everything that is no ordinary file, because whoever opens a
//! pipe waits for its writer, and a device has no end; and links, which lead anywhere, unless the user has named the file.

#[cfg_attr(unix, path = "ordinary/unix.rs")]
#[cfg_attr(windows, path = "ordinary/windows.rs")]
mod system;

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens an ordinary file for reading; no link.
///
/// # Errors
/// It can't be opened, is a link, or is no ordinary file.
pub fn open_ordinary(path: &Path) -> io::Result<File> {
    checked(system::open(path)?)
}

/// The same, by links too: for a file that the user has named.
///
/// # Errors
/// It can't be opened, or is no ordinary file.
pub fn open_named(path: &Path) -> io::Result<File> {
    checked(system::open_by_links(path)?)
}

/// Whether nobody can find a file any more: it was deleted while it was open.
///
/// # Errors
/// The system does not tell.
pub fn is_deleted(file: &File) -> io::Result<bool> {
    system::is_deleted(file)
}

fn checked(file: File) -> io::Result<File> {
    let kind = file.metadata()?;
    match kind.is_file() {
        true => Ok(file),
        false if kind.is_symlink() => {
            Err(refused("it is a link, and links are not followed: put the file itself there"))
        }
        false => Err(refused("it is no ordinary file")),
    }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn an_ordinary_file_until_it_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "text").unwrap();
        for open in [open_ordinary, open_named] {
            let mut text = String::new();
            open(&path).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "text");
            assert!(open(folder.path()).is_err());
            assert_eq!(open(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        }
        let file = open_ordinary(&path).unwrap();
        assert!(!is_deleted(&file).unwrap());
        std::fs::remove_file(&path).unwrap();
        // Wine does not tell.
        assert!(is_deleted(&file).unwrap() || cfg!(windows));
    }
}
