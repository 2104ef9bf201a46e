//! Where `runtap.toml` is.
//!
//! Owns: the search from a directory upwards, and who may have written what is found there. Refuses to: know the keys;
//! [`runtap_test_plan::Config`] does.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use runtap_test_plan::{Config, ConfigError};
use thiserror::Error;

use crate::own_file::{self, Found};

/// The name of the file.
pub const FILE_NAME: &str = "runtap.toml";

/// More than anybody has written by hand.
const LARGEST: u64 = 1 << 20;

/// What is configured, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The options.
    pub config: Config,
    /// The file; `None` if there is none.
    pub path: Option<PathBuf>,
    /// A file that was found and not used, and the user who owns it.
    pub ignored: Option<(PathBuf, u32)>,
}

/// Why there is no configuration.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file that was named is not there.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    /// It can't be read.
    #[error("{} can't be read: {source}", .path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What it says is wrong.
    #[error("{}, {source}", .path.display())]
    Wrong {
        /// Which file.
        path: PathBuf,
        /// What, and in which line.
        source: Box<ConfigError>,
    },
}

impl Configuration {
    /// What this file says.
    ///
    /// # Errors
    /// It is not there, can't be read, is larger than 1 MiB, or says what is wrong.
    pub fn at(path: &Path) -> Result<Self, LoadError> {
        Self::read(path, true)?.ok_or_else(|| LoadError::Missing(path.to_owned()))
    }

    /// What the nearest `runtap.toml` in this directory or one above it says; the search ends at the top of a
    /// repository (`.git`). A file that somebody other than this user and root may have written is not used.
    ///
    /// # Errors
    /// It can't be read or says what is wrong.
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

    fn read(path: &Path, anybodys: bool) -> Result<Option<Self>, LoadError> {
        let unreadable = |source| LoadError::Unreadable { path: path.to_owned(), source };
        let file = match own_file::open(path, LARGEST, anybodys).map_err(unreadable)? {
            Found::Nothing => return Ok(None),
            Found::Foreign(user) => {
                return Ok(Some(Self { ignored: Some((path.to_owned(), user)), ..Self::default() }));
            }
            Found::File(file) => file,
        };
        let text = io::read_to_string(file.take(LARGEST)).map_err(unreadable)?;
        let config = text.parse().map_err(|error| {
            let source = Box::new(error);
            LoadError::Wrong { path: path.to_owned(), source }
        })?;
        Ok(Some(Self { config, path: Some(path.to_owned()), ignored: None }))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_nearest_file_up_to_the_repository_counts() {
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
    fn mistakes_name_the_file() {
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
