//! The file to which a command writes its results. It is read only if this run has written it, and never removed,
//! because the path may have been specified by mistake.

#[cfg_attr(unix, path = "report/unix.rs")]
#[cfg_attr(windows, path = "report/windows.rs")]
mod system;

use std::fs;
use std::io::{self, Error};
use std::path::{Path, PathBuf};

use self::system::{FileStamp, stamp};

#[derive(Debug)]
pub(crate) struct Report {
    path: PathBuf,
    before: Option<FileStamp>,
}

impl Report {
    /// Records the state before the command runs, to detect a report of an earlier run.
    pub(crate) fn before(path: PathBuf) -> Self {
        let before = fs::metadata(&path).ok().map(|metadata| stamp(&metadata));
        Self { path, before }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file that this run has written.
    pub(crate) fn open(&self) -> io::Result<fs::File> {
        // Rejects pipes, which could block forever.
        let file = runtap_os::output::open_named(&self.path)?;
        if self.before == Some(stamp(&file.metadata()?)) {
            return Err(Error::other("the command has not written it: the file is unchanged"));
        }
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    impl Report {
        fn read(&self) -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            self.open()?.read_to_end(&mut bytes)?;
            Ok(bytes)
        }
    }

    #[test]
    fn only_a_report_of_this_run_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.xml");
        let absent = Report::before(path.clone());
        assert_eq!(absent.read().unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::write(&path, "old").unwrap();
        assert_eq!(absent.read().unwrap(), b"old");
        let there = Report::before(path.clone());
        assert!(there.read().unwrap_err().to_string().contains("has not written it"));
        assert_eq!(fs::read(&path).unwrap(), b"old", "the old file is not removed");
        fs::write(&path, "newer").unwrap();
        assert_eq!(there.read().unwrap(), b"newer");
        assert!(
            Report::before(folder.path().to_owned()).read().unwrap_err().to_string().contains("regular file")
        );
    }
}
