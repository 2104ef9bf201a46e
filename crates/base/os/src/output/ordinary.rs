//! Opens regular files that other users may have created. Pipes would block until a writer opens them, and devices may
//! never end, so both are rejected. Symbolic links are rejected unless the user specified the path.

#[cfg_attr(unix, path = "ordinary/unix.rs")]
#[cfg_attr(windows, path = "ordinary/windows.rs")]
mod system;

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a regular file for reading without following a symbolic link.
///
/// # Errors
/// If the file cannot be opened, is a symbolic link, or is not a regular file.
pub fn open_ordinary(path: &Path) -> io::Result<File> {
    checked(system::open(path)?)
}

/// Opens a regular file for reading, following symbolic links: for paths specified by the user.
///
/// # Errors
/// If the file cannot be opened or is not a regular file.
pub fn open_named(path: &Path) -> io::Result<File> {
    checked(system::open_by_links(path)?)
}

/// Returns whether the open file was deleted.
///
/// # Errors
/// If the operating system does not report this.
pub fn is_deleted(file: &File) -> io::Result<bool> {
    system::is_deleted(file)
}

fn checked(file: File) -> io::Result<File> {
    let kind = file.metadata()?;
    match kind.is_file() {
        true => Ok(file),
        false if kind.is_symlink() => {
            Err(invalid_input("it is a symbolic link, which is not followed; put the file itself there"))
        }
        false => Err(invalid_input("it is not a regular file")),
    }
}

fn invalid_input(why: &str) -> io::Error {
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
        // Wine does not report deleted files.
        assert!(is_deleted(&file).unwrap() || cfg!(windows));
    }
}
