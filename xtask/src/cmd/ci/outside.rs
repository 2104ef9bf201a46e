//! Checks that nothing outside of the checkout is changed. Plants files in the root, in the temporary folder and beside
//! the checkout, lists what else is there, and compares afterwards.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{env, io};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::output;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// Prefixes of names that Java machines, Wine and .NET (its named locks) leave in `/tmp`.
const LEFT_BY_OTHERS: [&str; 5] = ["hsperfdata_", ".java_pid", ".wine-", "wine-", ".dotnet"];
/// Maximum number of differences that are printed.
const MOST_SHOWN: usize = 40;
const TEXT: &str = "planted: nothing of this may change\n";

/// The state of the folders before the checks.
pub(crate) struct Outside(Vec<Place>);

struct Place {
    folder: PathBuf,
    /// `None` if the folder is not writable.
    planted: Option<Planted>,
    names: BTreeSet<OsString>,
}

/// A planted file, an empty folder and a link, which are removed on drop.
struct Planted {
    root: TempDir,
    written: SystemTime,
}

impl Outside {
    pub(crate) fn plant(ws: &Workspace) -> Result<Self> {
        let root = ws.root();
        let beside = root.parent().unwrap_or(root).to_owned();
        let folders: BTreeSet<PathBuf> = [PathBuf::from("/"), env::temp_dir(), beside].into();
        Ok(Self(folders.into_iter().map(Place::plant).collect::<Result<_>>()?))
    }

    /// Fails if planted files were changed. New and removed names are only reported, because other processes may have
    /// caused them.
    pub(crate) fn check(&self) -> Result<Outcome> {
        let mut changed = Vec::new();
        for place in &self.0 {
            let folder = place.folder.display();
            let now = names(&place.folder)?;
            for (what, names) in
                [("new", now.difference(&place.names)), ("gone", place.names.difference(&now))]
            {
                let ours = names.filter(|name| !place.is_by_others(name));
                changed.extend(ours.map(|name| format!("{folder}: {what}: {}", name.display())));
            }
            if let Some(planted) = &place.planted {
                planted.unchanged().with_context(|| format!("what was planted in {folder}"))?;
            }
        }
        if changed.is_empty() {
            return Ok(Outcome::Passed);
        }
        let shown = changed.iter().take(MOST_SHOWN).map(String::as_str).collect::<Vec<_>>().join("; ");
        Ok(Outcome::Told(format!(
            "{} names changed outside the checkout, by the steps or by other programs: {shown}",
            changed.len()
        )))
    }
}

impl Place {
    fn plant(folder: PathBuf) -> Result<Self> {
        let planted = match Planted::new(&folder) {
            Ok(planted) => Some(planted),
            Err(error) if is_refused(&error) => {
                output::note(&format!("nothing is planted in {}: {error}", folder.display()));
                None
            }
            Err(error) => return Err(error).with_context(|| format!("cannot plant in {}", folder.display())),
        };
        let names = names(&folder)?;
        Ok(Self { folder, planted, names })
    }

    /// Returns whether Java, Wine or .NET leave a name in `/tmp` whatever the temporary folder is, or whether it is the
    /// pipe of a killed test application, which Microsoft's library creates there.
    fn is_by_others(&self, name: &OsStr) -> bool {
        let text = name.to_string_lossy();
        LEFT_BY_OTHERS.iter().any(|prefix| text.starts_with(prefix))
            || text.len() == 32
                && text.bytes().all(|byte| byte.is_ascii_hexdigit())
                && is_socket(&self.folder.join(name))
    }
}

impl Planted {
    fn new(folder: &Path) -> io::Result<Self> {
        let root = tempfile::Builder::new().prefix("runtap-planted-").tempdir_in(folder)?;
        fs::create_dir(root.path().join("empty"))?;
        fs::write(root.path().join("file"), TEXT)?;
        #[cfg(unix)]
        std::os::unix::fs::symlink("file", root.path().join("link"))?;
        let written = fs::metadata(root.path().join("file"))?.modified()?;
        Ok(Self { root, written })
    }

    fn unchanged(&self) -> Result<()> {
        let root = self.root.path();
        let expected: BTreeSet<OsString> = if cfg!(unix) {
            ["empty", "file", "link"].map(OsString::from).into()
        } else {
            ["empty", "file"].map(OsString::from).into()
        };
        let (found, inside) = (names(root)?, names(&root.join("empty"))?);
        if found != expected || !inside.is_empty() {
            bail!("there is {found:?}, and {inside:?} in the empty folder");
        }
        let file = root.join("file");
        let (text, modified) = (fs::read_to_string(&file)?, fs::metadata(&file)?.modified()?);
        if text != TEXT || modified != self.written {
            bail!("the file was written");
        }
        Ok(())
    }
}

fn names(folder: &Path) -> Result<BTreeSet<OsString>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name());
    entries.map(name).collect()
}

#[cfg(unix)]
fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// Always false: there are no such sockets on other systems.
#[cfg(not(unix))]
fn is_socket(_: &Path) -> bool {
    false
}

fn is_refused(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outside(folder: &Path) -> Outside {
        Outside(vec![Place::plant(folder.to_owned()).unwrap()])
    }

    fn planted(outside: &Outside) -> PathBuf {
        outside.0[0].planted.as_ref().unwrap().root.path().to_owned()
    }

    #[test]
    fn new_and_removed_names_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("old"), "").unwrap();
        let outside = outside(folder.path());
        assert!(matches!(outside.check(), Ok(Outcome::Passed)));
        fs::write(folder.path().join("hsperfdata_anna"), "").unwrap();
        #[cfg(unix)]
        let _pipe =
            std::os::unix::net::UnixListener::bind(folder.path().join("0123456789abcdef0123456789abcdef"))
                .unwrap();
        assert!(matches!(outside.check(), Ok(Outcome::Passed)));
        fs::write(folder.path().join("new"), "").unwrap();
        fs::remove_file(folder.path().join("old")).unwrap();
        let Ok(Outcome::Told(told)) = outside.check() else { panic!("it is not told") };
        assert!(told.contains("new: new") && told.contains("gone: old"), "{told}");
    }

    #[test]
    fn a_changed_planted_file_fails() {
        let folder = tempfile::tempdir().unwrap();
        let touch: [fn(&Path); 4] = [
            |root| fs::remove_file(root.join("link")).unwrap(),
            |root| fs::write(root.join("empty/x"), "").unwrap(),
            |root| fs::write(root.join("file"), "other").unwrap(),
            |root| fs::remove_dir_all(root).unwrap(),
        ];
        for touch in touch {
            let outside = outside(folder.path());
            touch(&planted(&outside));
            assert!(outside.check().is_err());
        }
    }
}
