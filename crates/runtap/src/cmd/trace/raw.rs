//! The file of the stream as it was received.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::recorder::Sink;
use super::summary::OutputFile;
use crate::cli::FileFormat;
use crate::files::{Destination, NAMES_TRIED, Planned, numbered, with_extension};

/// Where the stream goes.
#[derive(Debug)]
pub(super) struct Raw {
    to: Destination,
    /// Nobody asked for it: it goes when the files made from it are there.
    temporary: bool,
}

impl Raw {
    /// Creates the file. With `fresh` names (chosen by us) nothing that is there is overwritten: the plan comes back
    /// with names that were free.
    pub(super) fn create(
        mut planned: Vec<Planned>,
        fresh: bool,
        base: &Path,
    ) -> anyhow::Result<(Self, Sink, Vec<Planned>)> {
        let asked = planned.iter().position(|planned| planned.format == FileFormat::Nettrace);
        let Some(asked) = asked else {
            let (path, file) = create_temporary(&planned, base)?;
            let raw = Self { to: Destination::File(path), temporary: true };
            return Ok((raw, Sink::File(file), planned));
        };
        let (to, sink) = match planned.get(asked).map(|planned| planned.to.clone()) {
            Some(Destination::File(path)) => {
                let failed = || format!("can't write {}", path.display());
                let (path, file) = if fresh {
                    create_new(|n| numbered(base, n, FileFormat::Nettrace.extension()), 0o666)
                        .with_context(failed)?
                } else {
                    (path.clone(), File::create(&path).with_context(failed)?)
                };
                (Destination::File(path), Sink::File(file))
            }
            _ => (Destination::Stdout, Sink::Stdout),
        };
        if let Some(planned) = planned.get_mut(asked) {
            planned.to.clone_from(&to);
        }
        Ok((Self { to, temporary: false }, sink, planned))
    }

    pub(super) fn is_stdout(&self) -> bool {
        self.to == Destination::Stdout
    }

    pub(super) fn is_temporary(&self) -> bool {
        self.temporary
    }

    /// Its path, unless it is stdout.
    pub(super) fn path(&self) -> Option<PathBuf> {
        match &self.to {
            Destination::File(path) => Some(path.clone()),
            Destination::Stdout => None,
        }
    }

    /// Itself as one of the files that were asked for, if it is.
    pub(super) fn asked_for(&self) -> anyhow::Result<Option<OutputFile>> {
        let Some(path) = self.path().filter(|_| !self.temporary) else { return Ok(None) };
        let bytes = fs::metadata(&path)?.len();
        Ok(Some(OutputFile::new(&path, FileFormat::Nettrace, bytes)))
    }

    /// Deletes it if nobody asked for it.
    pub(super) fn remove_temporary(&self) -> anyhow::Result<()> {
        match self.path() {
            Some(path) if self.temporary => {
                fs::remove_file(&path).with_context(|| format!("can't delete {}", path.display()))
            }
            _ => Ok(()),
        }
    }
}

/// A file of our own for the stream: beside the first result, so that it is on the disk that the user chose; in the
/// temporary folder when the result is no file.
fn create_temporary(planned: &[Planned], base: &Path) -> anyhow::Result<(PathBuf, File)> {
    let regular = |path: &&PathBuf| fs::metadata(path).map_or(true, |meta| meta.is_file());
    let beside = planned.iter().find_map(|planned| match &planned.to {
        Destination::File(path) => Some(path),
        Destination::Stdout => None,
    });
    let base = match beside.filter(regular) {
        Some(path) => path.clone(),
        None => std::env::temp_dir().join(base),
    };
    let extension = format!(".{}.nettrace.part", std::process::id());
    create_new(|n| numbered(&base, n, &extension), 0o600)
        .with_context(|| format!("can't write {}", with_extension(&base, &extension).display()))
}

/// Creates a file under the first name that is free. Follows no link that somebody else has put there.
fn create_new(name: impl Fn(u32) -> PathBuf, mode: u32) -> io::Result<(PathBuf, File)> {
    let mut n = 1;
    loop {
        let path = name(n);
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && n < NAMES_TRIED => n += 1,
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(format: FileFormat, path: &Path) -> Vec<Planned> {
        vec![Planned { format, to: Destination::File(path.to_owned()) }]
    }

    #[test]
    fn names_of_ours_overwrite_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("app_1_20260101_000000");
        let path = with_extension(&base, ".nettrace");
        fs::write(&path, "precious").unwrap();
        let (raw, _sink, planned) = Raw::create(planned(FileFormat::Nettrace, &path), true, &base).unwrap();
        let other = with_extension(&base, "_2.nettrace");
        assert_eq!(raw.path(), Some(other.clone()));
        assert_eq!(planned[0].to, Destination::File(other));
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn a_temporary_file_is_private_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.folded");
        let (raw, _sink, _) = Raw::create(planned(FileFormat::Folded, &path), false, Path::new("b")).unwrap();
        let temporary = raw.path().unwrap();
        assert_eq!(temporary.parent(), Some(dir.path()));
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&temporary).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        raw.remove_temporary().unwrap();
        assert!(!temporary.exists());
    }

    #[test]
    fn nothing_is_put_beside_a_device() {
        let (raw, _sink, _) =
            Raw::create(planned(FileFormat::Folded, Path::new("/dev/null")), false, Path::new("b")).unwrap();
        assert!(raw.path().unwrap().starts_with(std::env::temp_dir()));
        raw.remove_temporary().unwrap();
    }
}
