//! Copies of the files that applications leave, in one place: a folder for each application, so that those of several do not
//! overwrite each other.
//!
//! Owns: where the copies go, and what is no file to be copied. An application names any path that it likes: only regular
//! files of this user are taken, no links, and no more than there is room for in a limit. Refuses to: print; know formats.

#[cfg_attr(unix, path = "artifacts/unix.rs")]
#[cfg_attr(windows, path = "artifacts/windows.rs")]
mod system;

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

use runtap_mtp::{Module, ModuleId, RunEvent};
use runtap_outputs::{Draft, Error, copy, make_folder, numbered, plain_name};

/// All copies of a run together have no more bytes: a limit for an application that leaves files without an end.
pub const MOST: u64 = 8 << 30;
/// More complaints help nobody.
const MOST_REFUSED: usize = 20;

/// Copies files as soon as the process that left them has ended.
#[derive(Debug)]
pub struct Collector {
    /// By module.
    folders: Vec<PathBuf>,
    waiting: Vec<(ModuleId, PathBuf)>,
    /// Bytes that may still be copied.
    left: u64,
    collected: Collected,
}

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
    pub fn new(directory: PathBuf, modules: &[Module]) -> Result<Self, Error> {
        make_folder(&directory)?;
        // Where case does not matter, they are told apart too.
        let mut taken = HashSet::new();
        let folder = |module: &Module| {
            let base = plain_name(&module.name());
            let free = (1..).map(|n| numbered(Path::new(&base), n, ""));
            let name = free.into_iter().find(|name| taken.insert(name.to_string_lossy().to_lowercase()));
            directory.join(name.unwrap_or_default())
        };
        let folders = modules.iter().map(folder).collect();
        let collected = Collected { directory, ..Collected::default() };
        Ok(Self { folders, waiting: Vec::new(), left: MOST, collected })
    }

    /// Something has happened.
    pub fn event(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Artifact { module, artifact } => self.waiting.push((*module, artifact.path.clone())),
            // Another process of it may write another file under the same path.
            RunEvent::LaunchEnded { module, .. } | RunEvent::ModuleEnded { module, .. } => {
                let of_it = self.waiting.extract_if(.., |(of, _)| of == module).map(|(_, path)| path);
                for path in of_it.collect::<BTreeSet<_>>() {
                    self.take(*module, &path);
                }
            }
            _ => {}
        }
    }

    /// The run is over.
    pub fn finish(mut self) -> Collected {
        for (module, path) in std::mem::take(&mut self.waiting) {
            self.take(module, &path);
        }
        self.collected
    }

    fn take(&mut self, module: ModuleId, path: &Path) {
        let Some(folder) = self.folders.get(module.0) else { return };
        match copied(path, folder, self.left) {
            Ok(bytes) => {
                self.left -= bytes;
                self.collected.copies += 1;
            }
            Err(_) if self.collected.refused.len() == MOST_REFUSED => self.collected.more_refused += 1,
            Err(why) => self.collected.refused.push((path.to_owned(), why)),
        }
    }
}

/// Copies a file into this folder, under the first free name. Returns its size.
fn copied(path: &Path, folder: &Path, most: u64) -> Result<u64, String> {
    let from = open(path)?;
    let metadata = from.metadata().map_err(|error| error.to_string())?;
    if metadata.len() > most {
        return Err(format!("the files of a run that are collected have {} GiB at most", MOST >> 30));
    }
    let told = |error: Error| format!("{error}: {}", error.cause);
    make_folder(folder).map_err(told)?;
    let draft = Draft::within(folder).map_err(told)?;
    copy(&from, draft.file()).map_err(|error| error.to_string())?;
    system::same_rights(&metadata, draft.file()).map_err(|error| error.to_string())?;
    let part = |text: Option<&OsStr>| text.map(|text| plain_name(&text.to_string_lossy()));
    let base = folder.join(part(path.file_stem()).unwrap_or_default());
    let extension = part(path.extension()).map(|it| format!(".{it}")).unwrap_or_default();
    draft.settle(|n| numbered(&base, n, &extension)).map_err(told)?;
    Ok(metadata.len())
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
    use runtap_mtp::{Artifact, LaunchEnd, LaunchId};

    fn left(module: usize, path: &Path) -> RunEvent {
        let artifact = Artifact { path: path.to_owned(), ..Artifact::default() };
        RunEvent::Artifact { module: ModuleId(module), artifact }
    }

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
        let mut collector = Collector::new(out.clone(), &modules).unwrap();
        for (module, content) in [(0, "one"), (1, "two"), (0, "three")] {
            fs::write(&file, content).unwrap();
            collector.event(&left(module, &file));
            // Named by a test and by its application.
            collector.event(&left(module, &file));
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
        let mut collector = Collector::new(path("out"), &[Module::new("/a/Shop")]).unwrap();
        for name in ["link", "pipe", "out", "nothing"] {
            collector.event(&left(0, &path(name)));
        }
        collector.event(&left(0, Path::new("file")));
        collector.event(&left(0, Path::new("/dev/null")));
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
        assert_eq!(copied(&odd, &out, 4), Ok(4));
        let copy = out.join("_-a_b__x_.tar.gz");
        assert_eq!(fs::metadata(&copy).unwrap().mode() & 0o777, 0o640);
        assert_eq!(text(&copy), "text");
        assert!(copied(&odd, &out, 3).unwrap_err().contains("GiB"));
        assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
    }
}
