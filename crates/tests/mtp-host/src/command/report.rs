//! The file that a command leaves its results in: read only if this run has written it, and never removed. It may be
//! anything that people have named by mistake.

#[cfg_attr(unix, path = "report/unix.rs")]
#[cfg_attr(windows, path = "report/windows.rs")]
mod system;

use std::fs;
use std::io::{self, Error};
use std::path::{Path, PathBuf};

use self::system::{Look, look};

#[derive(Debug)]
pub(crate) struct Report {
    path: PathBuf,
    before: Option<Look>,
}

impl Report {
    /// The state before the command runs: what is there is an earlier run's.
    pub(crate) fn before(path: PathBuf) -> Self {
        let before = fs::metadata(&path).ok().map(|there| look(&there));
        Self { path, before }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file that this run has written.
    pub(crate) fn open(&self) -> io::Result<fs::File> {
        // A pipe would be waited for without end.
        let file = runtap_os::output::open_named(&self.path)?;
        if self.before == Some(look(&file.metadata()?)) {
            return Err(Error::other("the command has not written it: it is as it was before"));
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
    fn only_what_this_run_has_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.xml");
        let absent = Report::before(path.clone());
        assert_eq!(absent.read().unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::write(&path, "old").unwrap();
        assert_eq!(absent.read().unwrap(), b"old");
        let there = Report::before(path.clone());
        assert!(there.read().unwrap_err().to_string().contains("has not written it"));
        assert_eq!(fs::read(&path).unwrap(), b"old", "it is nobody's to remove");
        fs::write(&path, "newer").unwrap();
        assert_eq!(there.read().unwrap(), b"newer");
        assert!(
            Report::before(folder.path().to_owned()).read().unwrap_err().to_string().contains("ordinary")
        );
    }
}
