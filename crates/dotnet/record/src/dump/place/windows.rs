//! The destination of a dump on Windows, and how the file gets there.
//!
//! The target creates the file as its own user, beside the destination and with an unpredictable name. The file gets its final name
//! when it is a minidump, and never replaces another file. It is not kept open meanwhile, because a runtime opens it without
//! sharing.
//!
//! Shares, devices and pipes are rejected: opening one would reveal the user's identity to another machine or program.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf, Prefix, absolute};

use runtap_diag::core_file::{self, CoreFile, CoreFileError};
use runtap_os::output::{NAMES_TRIED, PendingFile, is_path_of, open_ordinary, temporary_name};

use crate::dump::spec::nth;
use crate::dump::{Destination, DumpKind, Error};

/// Names of devices, which are reserved in every directory and with every extension.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
/// Names of devices that are followed by a digit.
const NUMBERED_DEVICES: [&str; 2] = ["COM", "LPT"];

/// The destination, which is writable.
#[derive(Debug)]
pub(crate) struct Files {
    /// The absolute path of the dump's destination.
    ours: PathBuf,
    /// Whether another name may be used.
    fresh: bool,
}

/// A prepared dump.
#[derive(Debug)]
pub(crate) struct DumpPlan {
    files: Files,
    theirs: PathBuf,
    told: String,
}

/// A dump that was written.
#[derive(Debug)]
pub(crate) struct WrittenFile {
    pub(crate) path: PathBuf,
    pub(crate) target_path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) core: Result<CoreFile, CoreFileError>,
    pub(crate) crash_report: Result<Option<PathBuf>, Error>,
}

impl Files {
    /// Checks whether a file can be created there.
    ///
    /// # Errors
    /// Returns an error if it can't, or if a file exists.
    pub(crate) fn make(wanted: &Destination, crash_report: bool) -> Result<Self, Error> {
        if crash_report {
            return Err(Error::NoCrashReports);
        }
        let ours = on_a_disk(wanted.path())?;
        let Some(folder) = ours.parent() else { return Err(Error::NoName(ours)) };
        let fresh = matches!(wanted, Destination::Unused(_));
        match fs::symlink_metadata(&ours) {
            _ if fresh => {}
            Ok(meta) if !meta.is_file() => return Err(Error::NotOrdinary(ours)),
            Ok(_file) => return Err(Error::Taken(ours)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        // Create a temporary file as a test.
        PendingFile::within(folder)?;
        Ok(Self { ours, fresh })
    }

    /// Reserves an unused name.
    fn claim(&self) -> io::Result<PathBuf> {
        let mut n = 1;
        loop {
            let path = nth(&self.ours, n);
            match File::create_new(&path) {
                Ok(_empty) => return Ok(path),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && self.fresh && n < NAMES_TRIED => {
                    n += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl DumpPlan {
    /// Writes beside the destination.
    ///
    /// # Errors
    /// Returns an error if the path is not valid Unicode.
    pub(crate) fn of(_pid: u32, files: Files, _kind: DumpKind) -> Result<Self, Error> {
        let theirs = files.ours.with_file_name(temporary_name());
        let text = theirs.to_str().ok_or_else(|| Error::NoText(theirs.clone()))?;
        // The runtime expands percent signs; two stand for one.
        let told = text.replace('%', "%%");
        Ok(Self { files, theirs, told })
    }

    /// Returns the path to which the target writes.
    pub(crate) fn theirs(&self) -> &Path {
        &self.theirs
    }

    /// Returns the path as it is sent to the runtime.
    pub(crate) fn told(&self) -> &str {
        &self.told
    }

    /// Returns why the file must be copied: never on this system.
    #[expect(clippy::unused_self, reason = "the same as on Linux")]
    pub(crate) fn fetched(&self) -> Option<&str> {
        None
    }

    /// Returns the path of the destination.
    pub(crate) fn ours(&self) -> &Path {
        &self.files.ours
    }

    /// Returns the number of bytes that the target has written.
    pub(crate) fn written(&self) -> u64 {
        fs::symlink_metadata(&self.theirs).map_or(0, |meta| meta.len())
    }

    /// Moves the file to its destination.
    ///
    /// # Errors
    /// Returns an error if the file is not a minidump or can't be renamed. A file that may be a minidump is left in place.
    pub(crate) fn finish(self, _crash_report: bool) -> Result<WrittenFile, Error> {
        let theirs = self.theirs.clone();
        let not_taken = |error| Error::NotTaken { theirs: theirs.clone(), error };
        let file = open_ordinary(&theirs).map_err(not_taken)?;
        let bytes = file.metadata().map_err(not_taken)?.len();
        if bytes == 0 {
            self.clean();
            return Err(Error::Empty(theirs));
        }
        let core = match core_file::inspect_minidump(&file) {
            // A file that is not a minidump is useless, and its name would be misleading.
            Err(error) if error.is_no_core() => {
                self.clean();
                return Err(Error::NoCore { theirs, error });
            }
            core => core,
        };
        let path = self.files.claim().map_err(not_taken)?;
        if let Err(error) = fs::rename(&theirs, &path) {
            // Remove the reserved name.
            let _ = fs::remove_file(&path);
            return Err(not_taken(error));
        }
        if !is_path_of(&path, &file) {
            return Err(not_taken(io::Error::other("another process replaced it")));
        }
        Ok(WrittenFile { target_path: path.clone(), path, bytes, core, crash_report: Ok(None) })
    }

    /// Leaves the file in place, because the target may still write to it.
    #[expect(clippy::unused_self, reason = "the same as on Linux")]
    pub(crate) fn leave(self) {}

    /// Removes what the target has written.
    pub(crate) fn clean(&self) {
        // The file may not exist.
        let _ = fs::remove_file(&self.theirs);
    }
}

/// Returns the absolute path of a file on a local disk.
///
/// # Errors
/// Returns an error if the path is a share, a device, a pipe, or has no file name.
fn on_a_disk(path: &Path) -> Result<PathBuf, Error> {
    // The system converts names of devices to `\\.\NUL`; other ones are checked below.
    let whole = absolute(path)?;
    let on_a_disk = matches!(
        whole.components().next(),
        Some(Component::Prefix(prefix)) if matches!(prefix.kind(), Prefix::Disk(_))
    );
    let names_of =
        |path: &Path| path.components().any(|part| part.as_os_str().to_str().is_some_and(is_device));
    if !on_a_disk || names_of(path) {
        return Err(Error::NoDisk(path.to_owned()));
    }
    let is_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/")
        || path.as_os_str().as_encoded_bytes().ends_with(b"\\");
    match whole.file_name().and_then(|name| name.to_str()) {
        // A colon denotes a stream of a file.
        Some(name) if !is_folder && !name.contains(':') => Ok(whole),
        _ => Err(Error::NoName(whole)),
    }
}

/// Whether a name is that of a device. Older systems reserve such names in every directory and with every extension.
fn is_device(name: &str) -> bool {
    let stem = name.split(['.', ':']).next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let is_numbered = |kind: &str| {
        stem.strip_prefix(kind).is_some_and(|rest| rest.chars().count() == 1 && rest.chars().all(is_digit))
    };
    DEVICES.contains(&&*stem) || NUMBERED_DEVICES.into_iter().any(is_numbered)
}

/// Superscript digits count too.
fn is_digit(c: char) -> bool {
    matches!(c, '0'..='9' | '¹' | '²' | '³')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_on_a_disk_are_accepted() {
        for path in [
            r"\\server\share\x.dmp",
            r"//server/share/x.dmp",
            r"\\?\UNC\server\share\x.dmp",
            r"\\.\pipe\x",
            r"\\.\C:\x.dmp",
            "NUL",
            "nul.dmp",
            r"C:\CON",
            r"C:\com1.dmp",
            r"C:\lpt².dmp",
        ] {
            let error = on_a_disk(Path::new(path)).unwrap_err();
            assert!(matches!(error, Error::NoDisk(_)), "{path}: {error}");
        }
        for path in [r"C:\x.dmp:stream", r"C:\", r"C:\x\"] {
            let error = on_a_disk(Path::new(path)).unwrap_err();
            assert!(matches!(error, Error::NoName(_)), "{path}: {error}");
        }
        for path in [r"C:\a\..\x.dmp", "x.dmp", "null.dmp", "com10.dmp", "grün ✓.dmp"] {
            let whole = on_a_disk(Path::new(path)).unwrap();
            assert!(whole.is_absolute() && !whole.to_str().unwrap().contains(".."), "{path}");
        }
    }

    #[test]
    fn existing_files_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.dmp");
        fs::write(&path, "mine").unwrap();
        let given = Files::make(&Destination::Exact(path.clone()), false).unwrap_err();
        assert!(matches!(given, Error::Taken(_)), "{given}");
        let files = Files::make(&Destination::Unused(path.clone()), false).unwrap();
        let place = DumpPlan::of(1, files, DumpKind::Mini).unwrap();
        fs::write(place.theirs(), [&b"MDMP\x93\xa7\0\0"[..], &[0; 24]].concat()).unwrap();
        let found = place.finish(false).unwrap();
        assert_eq!((found.path, found.bytes), (folder.path().join("x_2.dmp"), 32));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        let folder_itself = Files::make(&Destination::Exact(folder.path().to_owned()), false).unwrap_err();
        assert!(matches!(folder_itself, Error::NotOrdinary(_)), "{folder_itself}");
    }

    #[test]
    fn files_that_are_not_minidumps_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        for (text, expected) in
            [(Some("text"), "not a minidump"), (Some(""), "is empty"), (None, "can't be copied")]
        {
            let files = Files::make(&Destination::Exact(folder.path().join("100%.dmp")), false).unwrap();
            let place = DumpPlan::of(1, files, DumpKind::Mini).unwrap();
            if let Some(text) = text {
                fs::write(place.theirs(), text).unwrap();
            }
            let error = place.finish(false).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}
