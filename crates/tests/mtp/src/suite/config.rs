//! Search for `runtap.toml`.
//!
//! Searches a directory and its ancestors, and rejects files that other users may have written. The content is parsed
//! by [`runtap_test::plan::Config`].

use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use runtap_test::plan::{Config, ConfigError, Report};
use thiserror::Error;

use crate::suite::own_file::{self, OpenedFile};
use crate::suite::report::STDOUT;

/// The name of the file.
pub const FILE_NAME: &str = "runtap.toml";

/// The maximum size of a configuration file in bytes.
const MAX_FILE_SIZE: u64 = 1 << 20;

/// A configuration and its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The options.
    pub config: Config,
    /// The file, or `None` for the default configuration.
    pub path: Option<PathBuf>,
    /// Whether the file was found by the search, not specified by the user. Its author may be untrusted.
    pub found: bool,
    /// A file that was found but not used, and the user who owns it.
    pub ignored: Option<(PathBuf, u32)>,
}

/// An error in the path of a report.
#[derive(Debug, Error)]
pub enum ReportPathError {
    /// A path cannot be made absolute.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A path of the file leads outside of its directory.
    #[error(transparent)]
    Configured(#[from] LoadError),
}

/// An error that occurs when loading a configuration.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The specified file does not exist.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    /// The file cannot be read.
    #[error("{} can't be read: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A report of a found file would be written outside of the file's directory.
    #[error(
        "{}: the report {report:?} is not written: {why}; --config {} allows any path",
        .path.display(),
        .path.display()
    )]
    Outside {
        /// The file.
        path: PathBuf,
        /// The path of the report, as written in the file.
        report: String,
        /// The reason.
        why: &'static str,
    },
    /// The content of the file is invalid.
    #[error("{}, {source}", .path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The error, with its line.
        source: Box<ConfigError>,
    },
}

impl Configuration {
    /// Loads this file.
    ///
    /// # Errors
    /// Returns an error if the file does not exist, cannot be read, is larger than 1 MiB, or is invalid.
    pub fn at(path: &Path) -> Result<Self, LoadError> {
        Self::read(path, true)?.ok_or_else(|| LoadError::Missing(path.to_owned()))
    }

    /// Loads the nearest `runtap.toml` in this directory or its ancestors. The search ends at the top of a repository
    /// (`.git`). A file that users other than this user and root may have written is not used.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is invalid.
    pub fn find(directory: &Path) -> Result<Self, LoadError> {
        for directory in directory.ancestors() {
            if let Some(found) = Self::read(&directory.join(FILE_NAME), false)? {
                return Ok(found);
            }
            if directory.join(".git").exists() {
                break;
            }
        }
        Ok(Self::default())
    }

    /// Returns the path of a report of this file. If the file was found by the search, the path must be below its
    /// directory.
    ///
    /// # Errors
    /// Returns an error if the path leads elsewhere, directly or through a link.
    pub fn report_path(&self, report: &str) -> Result<PathBuf, LoadError> {
        let own = self.path.as_deref().unwrap_or_else(|| Path::new(""));
        let base = own.parent().unwrap_or_else(|| Path::new(""));
        match outside(base, Path::new(report)).filter(|_| self.found) {
            Some(why) => Err(LoadError::Outside { path: own.to_owned(), report: report.to_owned(), why }),
            None => Ok(base.join(report)),
        }
    }

    /// Returns the names and paths of the reports to write: those of the command line (`NAME` or `NAME=PATH`), or else those of this
    /// file. [`STDOUT`] stays, and other paths become absolute.
    ///
    /// # Errors
    /// Returns an error if a path of this file leads outside of its directory, or cannot be made absolute.
    pub fn reports(
        &self,
        given: &[String],
        configured: &[Report],
    ) -> Result<Vec<(String, Option<PathBuf>)>, ReportPathError> {
        let parse = |text: &String| match text.split_once('=') {
            Some((name, STDOUT)) => Ok((name.to_owned(), Some(STDOUT.into()))),
            Some((name, path)) => Ok((name.to_owned(), Some(std::path::absolute(path)?))),
            None => Ok((text.clone(), None)),
        };
        if !given.is_empty() {
            return given.iter().map(parse).collect();
        }
        let configured = configured.iter().map(|report| {
            let path = match report.path.as_deref() {
                Some(STDOUT) => Some(STDOUT.into()),
                Some(path) => Some(self.report_path(path)?),
                None => None,
            };
            Ok((report.format.clone(), path))
        });
        configured.collect()
    }

    fn read(path: &Path, is_named: bool) -> Result<Option<Self>, LoadError> {
        let unreadable = |source| LoadError::Unreadable { path: path.to_owned(), source };
        let file = match own_file::open(path, MAX_FILE_SIZE, is_named).map_err(unreadable)? {
            OpenedFile::Nothing => return Ok(None),
            OpenedFile::Foreign(user) => {
                return Ok(Some(Self { ignored: Some((path.to_owned(), user)), ..Self::default() }));
            }
            OpenedFile::File(file) => file,
        };
        let text = io::read_to_string(file.take(MAX_FILE_SIZE)).map_err(unreadable)?;
        let config = text.parse().map_err(|error| {
            let source = Box::new(error);
            LoadError::Wrong { path: path.to_owned(), source }
        })?;
        Ok(Some(Self { config, path: Some(path.to_owned()), found: !is_named, ignored: None }))
    }
}

/// Returns why a path is not below this directory, or `None` if it is.
fn outside(base: &Path, path: &Path) -> Option<&'static str> {
    for part in path.components() {
        match part {
            Component::Normal(name) if name.eq_ignore_ascii_case(".git") => {
                return Some("it is in the directory of the repository itself");
            }
            Component::Normal(_) | Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Some("it is outside the directory of that file");
            }
        }
    }
    let behind_link = Some("a link leads out of the directory of that file");
    let Ok(base) = base.canonicalize() else { return behind_link };
    // Missing parts are created by runtap, and are not links.
    let full = base.join(path);
    let there = full.ancestors().find(|part| part.symlink_metadata().is_ok())?;
    match there.canonicalize() {
        Ok(real) if real.starts_with(&base) => None,
        _ => behind_link,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_nearest_file_within_the_repository_is_used() {
        let top = tempfile::tempdir().unwrap();
        let inner = top.path().join("repository/source/tests");
        fs::create_dir_all(&inner).unwrap();
        fs::write(top.path().join(FILE_NAME), "[test]\nretries = 1").unwrap();
        let retries = || Configuration::find(&inner).unwrap().config.options(None).unwrap().retries;
        assert_eq!(retries(), Some(1));
        fs::create_dir(top.path().join("repository/.git")).unwrap();
        assert_eq!(retries(), None, "above the repository");
        let own = top.path().join("repository").join(FILE_NAME);
        fs::write(&own, "[test]\nretries = 2").unwrap();
        assert_eq!(retries(), Some(2));
        fs::set_permissions(&own, Permissions::from_mode(0o666)).unwrap();
        let found = Configuration::find(&inner).unwrap();
        assert_eq!((found.path, found.ignored.map(|(path, _)| path)), (None, Some(own.clone())));
        assert_eq!(Configuration::at(&own).unwrap().config.options(None).unwrap().retries, Some(2));
    }

    #[test]
    fn reports_of_a_found_file_stay_below_its_directory() {
        let top = tempfile::tempdir().unwrap();
        let place = top.path().join("place");
        fs::create_dir_all(place.join("inner")).unwrap();
        fs::write(place.join(FILE_NAME), "[test]").unwrap();
        for (link, to) in [("out", ".."), ("in", "inner"), ("dangling", "../nothing"), ("file", "../victim")]
        {
            std::os::unix::fs::symlink(to, place.join(link)).unwrap();
        }
        fs::write(top.path().join("victim"), "text").unwrap();
        let (found, named) =
            (Configuration::find(&place).unwrap(), Configuration::at(&place.join(FILE_NAME)).unwrap());
        for inside in ["a.xml", "new/a.xml", "in/a.xml", "./inner/a.xml"] {
            assert_eq!(found.report_path(inside).unwrap(), place.join(inside));
        }
        let absolute = top.path().join("a.xml").display().to_string();
        let outside =
            ["../a.xml", "inner/../../a.xml", &absolute, "out/a.xml", "out/new/a.xml", "dangling", "file"];
        for outside in outside.into_iter().chain([".git/config", "inner/.GIT/hooks/x"]) {
            let message = found.report_path(outside).unwrap_err().to_string();
            assert!(message.contains("is not written"), "{message}");
            assert_eq!(
                named.report_path(outside).unwrap(),
                place.join(outside),
                "the file was specified by the user"
            );
        }
    }

    #[test]
    fn errors_contain_the_path_of_the_file() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("a.toml");
        assert_eq!(
            Configuration::at(&path).unwrap_err().to_string(),
            format!("{} does not exist", path.display())
        );
        fs::write(&path, "[test]\nretries = -1").unwrap();
        let message = Configuration::at(&path).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{}, line 2, column 11: ", path.display())), "{message}");
        fs::write(&path, b"\xff").unwrap();
        assert!(Configuration::at(&path).unwrap_err().to_string().contains("can't be read"));
    }
}
