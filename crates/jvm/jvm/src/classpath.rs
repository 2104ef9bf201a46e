//! The classes of jars and directories, and the source files in directories.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use runtap_classfile::jar::Options;
use runtap_model::order;
use thiserror::Error;

use crate::coverage::Inventory;

/// The maximum depth of directories; packages are less deep.
const MAX_DEPTH: usize = 100;
/// The maximum size of a jar, in bytes.
const MAX_JAR_SIZE: u64 = 2 << 30;
/// The maximum size of a class file, in bytes. Classes of realistic size are far smaller, with tables of at most 65,535
/// entries.
const MAX_CLASS_SIZE: u64 = 64 << 20;

/// An error for a path without readable classes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClasspathError {
    /// The path cannot be read.
    #[error("can't read {}: {reason}", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The path has no classes.
    #[error("{} has no classes", .0.display())]
    NoClasses(PathBuf),
}

/// Returns the classes of these jars and directories, in their order. From a multi-release jar, takes the classes for this
/// release of Java.
///
/// # Errors
/// Fails if a path can't be read or has no classes. Entries that can't be read are in [`Inventory::unread`].
pub fn inventory<'p>(
    paths: impl IntoIterator<Item = &'p PathBuf>,
    release: u16,
) -> Result<Inventory, ClasspathError> {
    let mut inventory = Inventory::default();
    for path in paths {
        let before = inventory.classes.len() as u64 + inventory.duplicates;
        let unread = inventory.unread.len();
        if path.is_dir() {
            directory(path, &mut inventory, MAX_DEPTH).map_err(|error| unreadable(path, error))?;
        } else {
            file(path, release, &mut inventory)?;
        }
        if inventory.classes.len() as u64 + inventory.duplicates == before {
            if let Some(first) = inventory.unread.get(unread) {
                return Err(unreadable(path, &first.reason));
            }
            return Err(ClasspathError::NoClasses(path.clone()));
        }
    }
    Ok(inventory)
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> ClasspathError {
    ClasspathError::Unreadable { path: path.to_owned(), reason: error.to_string() }
}

/// Reads a regular file, following links. Reading a pipe would wait for its writer, and a device may have no end.
fn read(path: &Path, largest: u64) -> io::Result<Vec<u8>> {
    let file = runtap_os::output::open_named(path)?;
    let mut bytes = Vec::new();
    file.take(largest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it exceeds the maximum size of {largest} bytes"),
        ));
    }
    Ok(bytes)
}

/// Adds a jar or a class file.
fn file(path: &Path, release: u16, inventory: &mut Inventory) -> Result<(), ClasspathError> {
    let is_class = path.extension().is_some_and(|extension| extension == "class");
    let largest = if is_class { MAX_CLASS_SIZE } else { MAX_JAR_SIZE };
    let bytes = read(path, largest).map_err(|error| unreadable(path, error))?;
    let label = path.to_string_lossy();
    if is_class {
        inventory.add_class(&label, &bytes);
        return Ok(());
    }
    let options = Options { release, ..Options::default() };
    inventory.add_jar(&label, &bytes, &options).map_err(|error| unreadable(path, error))
}

/// Adds the class files of a directory, sorted by name. Links to directories are not followed.
fn directory(path: &Path, inventory: &mut Inventory, depth: usize) -> io::Result<()> {
    let mut entries = fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
    order::sort_by_cached_key(&mut entries, fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            // Versioned classes replace others in jars only.
            if path.ends_with("META-INF/versions") {
                continue;
            }
            if depth > 0 {
                directory(&path, inventory, depth - 1)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "class") {
            let bytes = read(&path, MAX_CLASS_SIZE)
                .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
            inventory.add_class(&path.to_string_lossy(), &bytes);
        }
    }
    Ok(())
}

/// Returns the path of a source file below one of these directories. The name comes from a class file, which is not trusted:
/// links that lead out of the directory are not followed.
pub fn locate(roots: &[PathBuf], path: &str) -> Option<String> {
    let found = roots.iter().find_map(|root| {
        let found = root.join(path);
        let (below, real) = (fs::canonicalize(root).ok()?, fs::canonicalize(&found).ok()?);
        (real.starts_with(below) && real.is_file()).then_some(found)
    })?;
    Some(found.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_never_found_outside_of_the_roots() {
        let folder = tempfile::tempdir().expect("a directory");
        let root = folder.path().join("src");
        fs::create_dir_all(root.join("a")).expect("it can be made");
        fs::write(folder.path().join("secret"), "x").expect("written");
        fs::write(root.join("a/A.java"), "x").expect("written");
        let secret = folder.path().join("secret").to_string_lossy().into_owned();
        let roots = [root.clone()];
        let expected = root.join("a/A.java").to_string_lossy().into_owned();
        assert_eq!(locate(&roots, "a/A.java"), Some(expected));
        assert_eq!(locate(&roots, "../secret"), None);
        assert_eq!(locate(&roots, "a/../../secret"), None);
        assert_eq!(locate(&roots, &secret), None);
        assert_eq!(locate(&roots, "a"), None);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&secret, root.join("a/L.java")).expect("a link");
            assert_eq!(locate(&roots, "a/L.java"), None);
        }
    }
}
