//! Copies of the files that applications produce, with a folder for each application so that files of several
//! applications do not overwrite each other.
//!
//! Applications can name any path, so only regular files of the current user are copied, no links, and only up to a
//! size limit.

#[cfg_attr(unix, path = "artifacts/unix.rs")]
#[cfg_attr(windows, path = "artifacts/windows.rs")]
mod system;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::{ArtifactKeeper, Module, ModuleId, RunEvent};
use runtap_os::output::{Error, PendingFile, copy, make_folder, numbered, plain_name};

/// The maximum size of all copies of a run in bytes, to limit applications that produce files without end.
pub const MAX_TOTAL_BYTES: u64 = 8 << 30;
/// The maximum number of rejected files that are listed.
const MAX_REJECTED: usize = 20;

/// A collector that copies files when they are named: the process that named a file waits for the reply meanwhile, and
/// may remove the file afterwards. Files that did not exist then, or changed since, are copied when the process exits.
#[derive(Debug)]
pub struct Collector {
    /// The folders of the modules.
    folders: Vec<PathBuf>,
    state: Mutex<CollectorState>,
}

#[derive(Debug)]
struct CollectorState {
    /// The files that running processes have named: their stamps when they were copied, and the copies. `None` if they
    /// could not be copied.
    named: BTreeMap<(ModuleId, PathBuf), Option<(FileStamp, PathBuf)>>,
    /// The number of bytes that may still be copied.
    left: u64,
    collected: Collected,
}

/// A stamp that is equal for an unchanged file: size and modification time.
type FileStamp = (u64, Option<SystemTime>);

/// The result of copying files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    /// The directory of the copies, with a folder for each application that produced files.
    pub directory: PathBuf,
    /// The number of copies.
    pub copies: u64,
    /// The files that were not copied, and the reasons; at most 20.
    pub rejected: Vec<(PathBuf, String)>,
    /// The number of further files that were not copied.
    pub more_rejected: u64,
}

impl Collector {
    /// Creates a collector for a run of these modules. The directory is created if it does not exist.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be created, or lies behind a link of another user.
    pub fn new(directory: &Path, modules: &[Module]) -> Result<Self, Error> {
        make_folder(directory)?;
        // Reports contain the paths of copies, and may be read from other directories.
        let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        // Folder names must differ on case-insensitive file systems too.
        let mut taken = HashSet::new();
        let folder = |module: &Module| {
            let base = plain_name(&module.name());
            let free = (1..).map(|n| numbered(Path::new(&base), n, ""));
            let name = free.into_iter().find(|name| taken.insert(name.to_string_lossy().to_lowercase()));
            absolute.join(name.unwrap_or_default())
        };
        let folders = modules.iter().map(folder).collect();
        let collected = Collected { directory: directory.to_owned(), ..Collected::default() };
        let state = CollectorState { named: BTreeMap::new(), left: MAX_TOTAL_BYTES, collected };
        Ok(Self { folders, state: Mutex::new(state) })
    }

    /// Handles an event of the run.
    pub fn event(&self, event: &RunEvent) {
        if let RunEvent::LaunchEnded { module, .. } | RunEvent::ModuleEnded { module, .. } = event {
            self.settle(|of| of == *module);
        }
    }

    /// Handles the end of the run, and returns the result.
    pub fn finish(&self) -> Collected {
        self.settle(|_| true);
        self.state().collected.clone()
    }

    fn state(&self) -> MutexGuard<'_, CollectorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles the exit of the process that named these files: files that changed since are copied again. Later
    /// processes may write other files with the same paths.
    fn settle(&self, is_over: impl Fn(ModuleId) -> bool) {
        let over: Vec<_> = self.state().named.extract_if(.., |(of, _), _| is_over(*of)).collect();
        for ((module, path), named) in over {
            match named {
                Some((stamp, copy)) => {
                    // A file that was removed, or cannot be copied again, keeps its first copy.
                    if stamp_of(&path).is_some_and(|now| now != stamp) {
                        let _ = self.copy(module, &path, Some(&copy));
                    }
                }
                None => {
                    if let Err(why) = self.copy(module, &path, None) {
                        let collected = &mut self.state().collected;
                        if collected.rejected.len() == MAX_REJECTED {
                            collected.more_rejected += 1;
                        } else {
                            collected.rejected.push((path, why));
                        }
                    }
                }
            }
        }
    }

    /// Copies a file to the first free name in its module's folder, or over an earlier copy.
    fn copy(
        &self,
        module: ModuleId,
        path: &Path,
        again: Option<&Path>,
    ) -> Result<(FileStamp, PathBuf), String> {
        let folder = self.folders.get(module.0).ok_or("its application is unknown")?;
        let from = open(path)?;
        let metadata = from.metadata().map_err(|error| error.to_string())?;
        let stamp = (metadata.len(), metadata.modified().ok());
        {
            let left = &mut self.state().left;
            *left = left.checked_sub(metadata.len()).ok_or_else(too_much)?;
        }
        let copy = copied(path, &from, &metadata, folder, again)?;
        if again.is_none() {
            self.state().collected.copies += 1;
        }
        Ok((stamp, copy))
    }
}

impl ArtifactKeeper for Collector {
    fn keep(&self, module: ModuleId, path: &Path) -> Option<PathBuf> {
        let key = (module, path.to_owned());
        let known = self.state().named.get(&key).cloned();
        if let Some(Some((stamp, copy))) = known
            && stamp_of(path) == Some(stamp)
        {
            return Some(copy);
        }
        // An error is reported only if copying at the exit of the process fails too.
        let named = self.copy(module, path, None).ok();
        let copy = named.as_ref().map(|(_, copy)| copy.clone());
        self.state().named.insert(key, named);
        copy
    }
}

fn stamp_of(path: &Path) -> Option<FileStamp> {
    let metadata = path.symlink_metadata().ok()?;
    Some((metadata.len(), metadata.modified().ok()))
}

fn too_much() -> String {
    format!("the collected files of the run exceed the maximum of {} GiB", MAX_TOTAL_BYTES >> 30)
}

/// Copies a file of this user to this folder, under the first free name or as `again`. Returns the path of the copy.
fn copied(
    path: &Path,
    from: &File,
    metadata: &Metadata,
    folder: &Path,
    again: Option<&Path>,
) -> Result<PathBuf, String> {
    let error_text = |error: Error| format!("{error}: {}", error.cause);
    make_folder(folder).map_err(error_text)?;
    let draft = match again {
        Some(again) => PendingFile::of(again).map_err(error_text)?,
        None => PendingFile::within(folder).map_err(error_text)?,
    };
    copy(from, draft.file()).map_err(|error| error.to_string())?;
    system::same_rights(metadata, draft.file()).map_err(|error| error.to_string())?;
    if again.is_some() {
        return draft.appear_soon().map_err(error_text);
    }
    let part = |text: Option<&OsStr>| text.map(|text| plain_name(&text.to_string_lossy()));
    let base = folder.join(part(path.file_stem()).unwrap_or_default());
    let extension = part(path.extension()).map(|it| format!(".{it}")).unwrap_or_default();
    draft.settle(|n| numbered(&base, n, &extension)).map(|(_, copy)| copy).map_err(error_text)
}

/// Opens a file that an application named.
fn open(path: &Path) -> Result<File, String> {
    if !path.is_absolute() {
        return Err("its path is not absolute".to_owned());
    }
    system::open(path)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;
    use crate::{LaunchEnd, LaunchId};

    fn ended(module: usize) -> RunEvent {
        let (launch, end) = (LaunchId(0), LaunchEnd::default());
        RunEvent::LaunchEnded { module: ModuleId(module), launch, end }
    }

    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    #[test]
    fn applications_and_files_with_equal_names_are_separated() {
        let place = tempfile::tempdir().unwrap();
        let (file, out) = (place.path().join("log.txt"), place.path().join("out/here"));
        let modules = [Module::new("/a/Shop.dll"), Module::new("/b/shop.dll"), Module::new("/c/Cart")];
        let collector = Collector::new(&out, &modules).unwrap();
        for (module, content) in [(0, "one"), (1, "two"), (0, "three")] {
            fs::write(&file, content).unwrap();
            let copy = collector.keep(ModuleId(module), &file).unwrap();
            // Named by a test and by its application.
            assert_eq!(collector.keep(ModuleId(module), &file), Some(copy));
            collector.event(&ended(module));
        }
        assert_eq!(text(&out.join("Shop/log.txt")), "one");
        assert_eq!(text(&out.join("shop_2/log.txt")), "two");
        assert_eq!(text(&out.join("Shop/log_2.txt")), "three");
        let collected = collector.finish();
        assert_eq!((collected.copies, collected.rejected.as_slice()), (3, &[][..]));
        assert!(!out.join("Cart").exists(), "the application produced no files");
    }

    #[test]
    fn only_regular_files_of_the_user_are_copied() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::write(path("file"), "text").unwrap();
        symlink(path("file"), path("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), rustix::fs::Mode::RWXU).unwrap();
        let collector = Collector::new(&path("out"), &[Module::new("/a/Shop")]).unwrap();
        let named = ["link", "pipe", "out", "nothing"].map(path);
        for named in named.iter().map(PathBuf::as_path).chain([Path::new("file"), Path::new("/dev/null")]) {
            assert_eq!(collector.keep(ModuleId(0), named), None, "{named:?}");
            collector.event(&ended(0));
        }
        let collected = collector.finish();
        let why = |at: usize| collected.rejected[at].1.as_str();
        assert_eq!((collected.copies, collected.rejected.len()), (0, 6));
        assert_eq!(
            [why(0), why(1), why(2)],
            ["it is a link", "it is not a regular file", "it is not a regular file"]
        );
        assert_eq!([why(4), why(5)], ["its path is not absolute", "it is not a regular file"]);
        assert_eq!(fs::read_dir(path("out")).unwrap().count(), 0);
    }

    #[test]
    fn names_are_sanitized_and_sizes_are_limited() {
        let place = tempfile::tempdir().unwrap();
        let odd = place.path().join("--a b$(x).tar.gz");
        fs::write(&odd, "text").unwrap();
        fs::set_permissions(&odd, Permissions::from_mode(0o640)).unwrap();
        let out = place.path().join("out");
        let collector = Collector::new(&out, &[Module::new("/a/Shop")]).unwrap();
        let out = out.join("Shop");
        collector.state().left = 7;
        let copy = out.join("_-a_b__x_.tar.gz");
        assert_eq!(collector.keep(ModuleId(0), &odd), Some(copy.clone()));
        assert_eq!(fs::metadata(&copy).unwrap().mode() & 0o777, 0o640);
        assert_eq!(text(&copy), "text");
        assert!(collector.copy(ModuleId(0), &odd, None).unwrap_err().contains("GiB"));
        assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
    }

    #[test]
    fn removed_files_are_kept_and_growing_files_are_copied_completely() {
        let place = tempfile::tempdir().unwrap();
        let (gone, grows, late) =
            (place.path().join("gone"), place.path().join("grows"), place.path().join("late"));
        fs::write(&gone, "text").unwrap();
        fs::write(&grows, "half").unwrap();
        let collector = Collector::new(&place.path().join("out"), &[Module::new("/a/Shop")]).unwrap();
        let keep = |path| collector.keep(ModuleId(0), path);
        let copies = [keep(&gone), keep(&grows)].map(Option::unwrap);
        assert_eq!(keep(&late), None);
        fs::remove_file(&gone).unwrap();
        fs::write(&grows, "half and half").unwrap();
        fs::write(&late, "late").unwrap();
        collector.event(&ended(0));
        assert_eq!(copies.map(|copy| text(&copy)), ["text", "half and half"]);
        assert_eq!(text(&place.path().join("out/Shop/late")), "late");
        let collected = collector.finish();
        assert_eq!((collected.copies, collected.rejected.len()), (3, 0));
    }
}
