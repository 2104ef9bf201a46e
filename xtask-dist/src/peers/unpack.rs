//! Unpacks archives into folders atomically: into a temporary folder that is renamed when complete. The stamp
//! `.unpacked` contains the archive's SHA-256, as written by the shared folder's own script. Folders with the right
//! stamp are not touched.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use super::Peers;

const STAMP: &str = ".unpacked";
const PART: &str = ".part-";

/// What to extract from an archive.
#[derive(Debug)]
pub(super) struct Archive<'a> {
    pub(super) path: &'a Path,
    /// The folder in the archive that becomes the peer.
    pub(super) inner: &'a str,
    /// Files in `inner` that need the execute bit, which wheels do not preserve.
    pub(super) executables: &'a [&'a str],
}

/// Returns whether `name` was unpacked from the archive with this checksum.
pub(super) fn is_ready(peers: &Peers<'_>, name: &str, sum: &str) -> bool {
    fs::read_to_string(peers.folder.join(name).join(STAMP)).is_ok_and(|stamp| stamp.trim() == sum)
}

pub(super) fn unpack(peers: &Peers<'_>, name: &str, sum: &str, archive: &Archive<'_>) -> Result<()> {
    if is_ready(peers, name, sum) {
        return Ok(());
    }
    let part = part(&peers.folder, name)?;
    extract(peers, archive.path, &part)?;
    let inner = part.join(archive.inner);
    for file in archive.executables {
        make_executable(&inner.join(file))?;
    }
    fs::write(inner.join(STAMP), format!("{sum}\n"))
        .with_context(|| format!("{} has no folder {}", archive.path.display(), archive.inner))?;
    let place = peers.folder.join(name);
    remove_link(&place)?;
    if place.exists() {
        fs::rename(&place, part.join(".old"))
            .with_context(|| format!("cannot move {} away", place.display()))?;
    }
    fs::rename(&inner, &place).with_context(|| format!("cannot create {}", place.display()))?;
    fs::remove_dir_all(&part).with_context(|| format!("cannot remove {}", part.display()))
}

/// Copies a file atomically, unless the destination has the same contents.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    if to.is_file() && sha256(from)? == sha256(to)? {
        return Ok(());
    }
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    fs::copy(from, &part).with_context(|| format!("cannot copy {}", from.display()))?;
    fs::rename(&part, to).with_context(|| format!("cannot create {}", to.display()))
}

/// Creates an empty folder that [`remove_parts`] finds after an interruption.
pub(super) fn part(folder: &Path, name: &str) -> Result<std::path::PathBuf> {
    let part = folder.join(format!("{PART}{name}"));
    fs::create_dir(&part).with_context(|| format!("cannot create {}", part.display()))?;
    Ok(part)
}

/// Removes what an interrupted run left. The lock must be held.
pub(super) fn remove_parts(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PART) {
            fs::remove_dir_all(entry.path())
                .with_context(|| format!("cannot remove {}", entry.path().display()))?;
        }
    }
    Ok(())
}

/// Removes a link to an installed runtime, but never a folder.
pub(super) fn remove_link(place: &Path) -> Result<()> {
    if place.is_symlink() {
        fs::remove_file(place).with_context(|| format!("cannot remove the link {}", place.display()))?;
    }
    Ok(())
}

#[cfg(unix)]
pub(super) fn link(to: &Path, place: &Path) -> Result<()> {
    std::os::unix::fs::symlink(to, place).with_context(|| format!("cannot create {}", place.display()))
}

#[cfg(not(unix))]
pub(super) fn link(_: &Path, _: &Path) -> Result<()> {
    bail!("links are only supported on Unix")
}

fn extract(peers: &Peers<'_>, archive: &Path, into: &Path) -> Result<()> {
    let name = archive.to_string_lossy();
    let tool = if name.ends_with(".tar.xz") || name.ends_with(".tgz") {
        peers.ws.tool("tar").arg("-xf").arg(archive).arg("--no-same-owner").arg("-C").arg(into)
    } else if name.ends_with(".whl") {
        peers.ws.tool("python3").args(&["-m", "zipfile", "-e"]).arg(archive).arg(into)
    } else {
        bail!("{name} has an unknown archive format");
    };
    tool.quiet().capture()?;
    Ok(())
}

#[cfg(unix)]
fn make_executable(file: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot make {} executable", file.display()))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    Ok(())
}

/// Returns the SHA-256 of a file in hexadecimal.
pub(super) fn sha256(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = file.read(&mut buffer).with_context(|| format!("cannot read {}", path.display()))?;
        if length == 0 {
            break;
        }
        hash.update(&buffer[..length]);
    }
    Ok(format!("{:x}", hash.finalize()))
}

/// Returns the first digits of a checksum, for display.
pub(super) fn short(sum: &str) -> &str {
    sum.get(..12).unwrap_or(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("abc");
        fs::write(&file, "abc").unwrap();
        // FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(&file).unwrap(), expected);
    }

    #[test]
    fn a_copy_is_updated_if_the_source_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        for text in ["one", "two", "two"] {
            fs::write(&from, text).unwrap();
            copy(&from, &to).unwrap();
            assert_eq!(fs::read_to_string(&to).unwrap(), text);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn only_temporary_folders_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("dotnet-8");
        fs::create_dir(&kept).unwrap();
        let left = part(folder.path(), "dotnet-8").unwrap();
        fs::write(left.join("half"), "").unwrap();
        remove_parts(folder.path()).unwrap();
        assert!(kept.is_dir() && !left.exists());
    }
}
