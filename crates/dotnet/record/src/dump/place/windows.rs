//! Where the user wants a dump on Windows, and how the file gets there.
//!
//! The target makes the file itself, as its own user: beside the place that is wanted, under a name that nobody can foresee.
//! What is there gets its name when it is a minidump, and never in place of something else. Nothing of it is held open
//! meanwhile: a runtime does not share the file that it writes.
//!
//! Refuses shares, devices and pipes: whoever opens one tells another machine or program who he is.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf, Prefix, absolute};

use runtap_diag::core_file::{self, CoreFile, CoreFileError};
use runtap_os::output::{NAMES_TRIED, PendingFile, is_path_of, open_ordinary, temporary_name};

use crate::dump::spec::nth;
use crate::dump::{Error, Kind, Wanted};

/// Names of devices, in every folder and with every extension.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
/// With a digit behind them.
const NUMBERED_DEVICES: [&str; 2] = ["COM", "LPT"];

/// Where it is going to be; it can be written there.
#[derive(Debug)]
pub(crate) struct Files {
    /// Where the user wants the dump; absolute.
    ours: PathBuf,
    /// Whether another name will do.
    fresh: bool,
}

/// The way of a dump.
#[derive(Debug)]
pub(crate) struct Place {
    files: Files,
    theirs: PathBuf,
    told: String,
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) target_path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) core: Result<CoreFile, CoreFileError>,
    pub(crate) crash_report: Result<Option<PathBuf>, Error>,
}

impl Files {
    /// Looks whether a file can be made there.
    ///
    /// # Errors
    /// It can't, or something is there.
    pub(crate) fn make(wanted: &Wanted, crash_report: bool) -> Result<Self, Error> {
        if crash_report {
            return Err(Error::NoCrashReports);
        }
        let ours = on_a_disk(wanted.path())?;
        let Some(folder) = ours.parent() else { return Err(Error::NoName(ours)) };
        let fresh = matches!(wanted, Wanted::Fresh(_));
        match fs::symlink_metadata(&ours) {
            _ if fresh => {}
            Ok(meta) if !meta.is_file() => return Err(Error::NotOrdinary(ours)),
            Ok(_file) => return Err(Error::Taken(ours)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        // That we can make one there, and no more: it is gone at once.
        PendingFile::within(folder)?;
        Ok(Self { ours, fresh })
    }

    /// Makes sure that a name is free, and keeps it.
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

impl Place {
    /// Beside the place that is wanted, whoever writes.
    ///
    /// # Errors
    /// The protocol can't carry the path.
    pub(crate) fn of(_pid: u32, files: Files, _kind: Kind) -> Result<Self, Error> {
        let theirs = files.ours.with_file_name(temporary_name());
        let text = theirs.to_str().ok_or_else(|| Error::NoText(theirs.clone()))?;
        // A percent sign begins something that the runtime fills in, two are one.
        let told = text.replace('%', "%%");
        Ok(Self { files, theirs, told })
    }

    /// Where the target writes it.
    pub(crate) fn theirs(&self) -> &Path {
        &self.theirs
    }

    /// What the runtime is told of that.
    pub(crate) fn told(&self) -> &str {
        &self.told
    }

    /// Why it has to be fetched: it never is.
    #[expect(clippy::unused_self, reason = "the same as on Linux")]
    pub(crate) fn fetched(&self) -> Option<&str> {
        None
    }

    /// Where the user wants it.
    pub(crate) fn ours(&self) -> &Path {
        &self.files.ours
    }

    /// How much the target has written by now.
    pub(crate) fn written(&self) -> u64 {
        fs::symlink_metadata(&self.theirs).map_or(0, |meta| meta.len())
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// It is no minidump, or can't have that name. What the target wrote stays where it is then, if it may be one.
    pub(crate) fn finish(self, _crash_report: bool) -> Result<Found, Error> {
        let theirs = self.theirs.clone();
        let not_taken = |error| Error::NotTaken { theirs: theirs.clone(), error };
        let file = open_ordinary(&theirs).map_err(not_taken)?;
        let bytes = file.metadata().map_err(not_taken)?.len();
        if bytes == 0 {
            self.clean();
            return Err(Error::Empty(theirs));
        }
        let core = match core_file::inspect_minidump(&file) {
            // Of no use to anybody, and under that name it would be taken for one.
            Err(error) if error.is_no_core() => {
                self.clean();
                return Err(Error::NoCore { theirs, error });
            }
            core => core,
        };
        let path = self.files.claim().map_err(not_taken)?;
        if let Err(error) = fs::rename(&theirs, &path) {
            // The name that was kept for it.
            let _ = fs::remove_file(&path);
            return Err(not_taken(error));
        }
        if !is_path_of(&path, &file) {
            return Err(not_taken(io::Error::other("somebody has exchanged it")));
        }
        Ok(Found { target_path: path.clone(), path, bytes, core, crash_report: Ok(None) })
    }

    /// The dump goes on, or may be there, and nobody waits for it: it stays where the target writes it.
    #[expect(clippy::unused_self, reason = "the same as on Linux")]
    pub(crate) fn leave(self) {}

    /// Removes what the target has written.
    pub(crate) fn clean(&self) {
        // It need not be there.
        let _ = fs::remove_file(&self.theirs);
    }
}

/// The absolute path of a file on a disk of this machine.
///
/// # Errors
/// It is a share, a device, a pipe, or no name.
fn on_a_disk(path: &Path) -> Result<PathBuf, Error> {
    // By the rules of the system: what is called like a device has become `\\.\NUL`, or is looked at below.
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
        // What follows a colon is a part of a file.
        Some(name) if !is_folder && !name.contains(':') => Ok(whole),
        _ => Err(Error::NoName(whole)),
    }
}

/// Whether a name is that of a device: older systems take it for one in every folder, with any extension.
fn is_device(name: &str) -> bool {
    let stem = name.split(['.', ':']).next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let is_numbered = |kind: &str| {
        stem.strip_prefix(kind).is_some_and(|rest| rest.chars().count() == 1 && rest.chars().all(is_digit))
    };
    DEVICES.contains(&&*stem) || NUMBERED_DEVICES.into_iter().any(is_numbered)
}

/// The raised ones count too.
fn is_digit(c: char) -> bool {
    matches!(c, '0'..='9' | '¹' | '²' | '³')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_on_a_disk_are_taken() {
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
    fn nothing_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.dmp");
        fs::write(&path, "mine").unwrap();
        let given = Files::make(&Wanted::Given(path.clone()), false).unwrap_err();
        assert!(matches!(given, Error::Taken(_)), "{given}");
        let files = Files::make(&Wanted::Fresh(path.clone()), false).unwrap();
        let place = Place::of(1, files, Kind::Mini).unwrap();
        fs::write(place.theirs(), [&b"MDMP\x93\xa7\0\0"[..], &[0; 24]].concat()).unwrap();
        let found = place.finish(false).unwrap();
        assert_eq!((found.path, found.bytes), (folder.path().join("x_2.dmp"), 32));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        let folder_itself = Files::make(&Wanted::Given(folder.path().to_owned()), false).unwrap_err();
        assert!(matches!(folder_itself, Error::NotOrdinary(_)), "{folder_itself}");
    }

    #[test]
    fn what_is_no_minidump_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        for (text, expected) in
            [(Some("text"), "no minidump"), (Some(""), "is empty"), (None, "can't be taken")]
        {
            let files = Files::make(&Wanted::Given(folder.path().join("100%.dmp")), false).unwrap();
            let place = Place::of(1, files, Kind::Mini).unwrap();
            if let Some(text) = text {
                fs::write(place.theirs(), text).unwrap();
            }
            let error = place.finish(false).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}
