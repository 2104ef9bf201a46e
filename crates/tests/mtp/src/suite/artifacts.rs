//! Copies of the files that applications leave, in one place: a folder for each application, so that those of several do not
//! overwrite each other.
//!
//! Owns: where the copies go, and what is no file to be copied. An application names any path that it likes: only regular
//! files of this user are taken, no links, and no more than there is room for in a limit. Refuses to: print; know formats.

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

/// All copies of a run together have no more bytes: a limit for an application that leaves files without an end.
pub const MOST: u64 = 8 << 30;
/// More complaints help nobody.
const MOST_REFUSED: usize = 20;

/// Copies files when they are named: the process that has named one waits for its answer meanwhile, and may remove the file
/// then. What was not there yet, or has changed until the process ends, is copied at its end.
#[derive(Debug)]
pub struct Collector {
    /// By module.
    folders: Vec<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Files that running processes have named: as they were when they were copied, and the copies; `None` if they could not be.
    named: BTreeMap<(ModuleId, PathBuf), Option<(Look, PathBuf)>>,
    /// Bytes that may still be copied.
    left: u64,
    collected: Collected,
}

/// What a file looks like that has not changed since.
type Look = (u64, Option<SystemTime>);

/// What was copied and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    /// Where the copies are: a folder for each application that has left something.
    pub directory: PathBuf,
    /// How many were made.
    pub copies: u64,
    /// What was not copied, and why; at most 20 of them.
    pub refused: Vec<(PathBuf, String)>,
    /// How many more were not.
    pub more_refused: u64,
}

impl Collector {
    /// For a run of these modules. The directory is made when it is not there.
    ///
    /// # Errors
    /// It can't be made, or lies behind a link of somebody else.
    pub fn new(directory: &Path, modules: &[Module]) -> Result<Self, Error> {
        make_folder(directory)?;
        // Reports name the copies, wherever they are read.
        let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        // Where case does not matter, they are told apart too.
        let mut taken = HashSet::new();
        let folder = |module: &Module| {
            let base = plain_name(&module.name());
            let free = (1..).map(|n| numbered(Path::new(&base), n, ""));
            let name = free.into_iter().find(|name| taken.insert(name.to_string_lossy().to_lowercase()));
            absolute.join(name.unwrap_or_default())
        };
        let folders = modules.iter().map(folder).collect();
        let collected = Collected { directory: directory.to_owned(), ..Collected::default() };
        let state = State { named: BTreeMap::new(), left: MOST, collected };
        Ok(Self { folders, state: Mutex::new(state) })
    }

    /// Something has happened.
    pub fn event(&self, event: &RunEvent) {
        if let RunEvent::LaunchEnded { module, .. } | RunEvent::ModuleEnded { module, .. } = event {
            self.settle(|of| of == *module);
        }
    }

    /// The run is over.
    pub fn finish(&self) -> Collected {
        self.settle(|_| true);
        self.state().collected.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process that has named these files has ended: what it has written since is copied, and what another process writes
    /// under the same path is another file.
    fn settle(&self, is_over: impl Fn(ModuleId) -> bool) {
        let over: Vec<_> = self.state().named.extract_if(.., |(of, _), _| is_over(*of)).collect();
        for ((module, path), named) in over {
            match named {
                Some((look, copy)) => {
                    // One that is gone, or can't be copied once more, was copied as it was.
                    if look_of(&path).is_some_and(|now| now != look) {
                        let _ = self.copy(module, &path, Some(&copy));
                    }
                }
                None => {
                    if let Err(why) = self.copy(module, &path, None) {
                        let collected = &mut self.state().collected;
                        if collected.refused.len() == MOST_REFUSED {
                            collected.more_refused += 1;
                        } else {
                            collected.refused.push((path, why));
                        }
                    }
                }
            }
        }
    }

    /// Copies a file under the first free name of its module's folder, or in the place of an earlier copy.
    fn copy(&self, module: ModuleId, path: &Path, again: Option<&Path>) -> Result<(Look, PathBuf), String> {
        let folder = self.folders.get(module.0).ok_or("its application is not known")?;
        let from = open(path)?;
        let metadata = from.metadata().map_err(|error| error.to_string())?;
        let look = (metadata.len(), metadata.modified().ok());
        {
            let left = &mut self.state().left;
            *left = left.checked_sub(metadata.len()).ok_or_else(too_much)?;
        }
        let copy = copied(path, &from, &metadata, folder, again)?;
        if again.is_none() {
            self.state().collected.copies += 1;
        }
        Ok((look, copy))
    }
}

impl ArtifactKeeper for Collector {
    fn keep(&self, module: ModuleId, path: &Path) -> Option<PathBuf> {
        let key = (module, path.to_owned());
        let known = self.state().named.get(&key).cloned();
        if let Some(Some((look, copy))) = known
            && look_of(path) == Some(look)
        {
            return Some(copy);
        }
        // Why not is said when it can't be copied at the end of its process, either.
        let named = self.copy(module, path, None).ok();
        let copy = named.as_ref().map(|(_, copy)| copy.clone());
        self.state().named.insert(key, named);
        copy
    }
}

fn look_of(path: &Path) -> Option<Look> {
    let metadata = path.symlink_metadata().ok()?;
    Some((metadata.len(), metadata.modified().ok()))
}

fn too_much() -> String {
    format!("the files of a run that are collected have {} GiB at most", MOST >> 30)
}

/// Copies a file of this user into this folder, under the first free name or as `again`. Returns where the copy is.
fn copied(
    path: &Path,
    from: &File,
    metadata: &Metadata,
    folder: &Path,
    again: Option<&Path>,
) -> Result<PathBuf, String> {
    let told = |error: Error| format!("{error}: {}", error.cause);
    make_folder(folder).map_err(told)?;
    let draft = match again {
        Some(again) => PendingFile::of(again).map_err(told)?,
        None => PendingFile::within(folder).map_err(told)?,
    };
    copy(from, draft.file()).map_err(|error| error.to_string())?;
    system::same_rights(metadata, draft.file()).map_err(|error| error.to_string())?;
    if again.is_some() {
        return draft.appear_soon().map_err(told);
    }
    let part = |text: Option<&OsStr>| text.map(|text| plain_name(&text.to_string_lossy()));
    let base = folder.join(part(path.file_stem()).unwrap_or_default());
    let extension = part(path.extension()).map(|it| format!(".{it}")).unwrap_or_default();
    draft.settle(|n| numbered(&base, n, &extension)).map(|(_, copy)| copy).map_err(told)
}

/// Opens what an application has named.
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
    fn applications_of_one_name_and_files_of_one_name_stay_apart() {
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
        assert_eq!((collected.copies, collected.refused.as_slice()), (3, &[][..]));
        assert!(!out.join("Cart").exists(), "it has left nothing");
    }

    #[test]
    fn what_is_no_file_of_ours_stays_where_it_is() {
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
        let why = |at: usize| collected.refused[at].1.as_str();
        assert_eq!((collected.copies, collected.refused.len()), (0, 6));
        assert_eq!(
            [why(0), why(1), why(2)],
            ["it is a link", "it is no regular file", "it is no regular file"]
        );
        assert_eq!([why(4), why(5)], ["its path is not absolute", "it is no regular file"]);
        assert_eq!(fs::read_dir(path("out")).unwrap().count(), 0);
    }

    #[test]
    fn names_are_made_harmless_and_sizes_are_limited() {
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
    fn what_is_removed_after_it_was_named_is_kept_and_what_grows_is_kept_whole() {
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
        assert_eq!((collected.copies, collected.refused.len()), (3, 0));
    }
}
