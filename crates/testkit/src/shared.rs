//! The shared folder: runtimes, programs, recordings. `RUNTAP_SHARED` says where it is, relative to the workspace;
//! without that it is `shared` beside the workspace, if there is one.

use std::env;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peers::run;
use crate::{Skip, installed};

/// The root of the workspace that this test kit was built in.
pub fn workspace_root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_owned()
}

/// The shared folder, if there is one.
///
/// # Panics
/// When `RUNTAP_SHARED` names no folder.
pub fn shared_dir() -> Option<PathBuf> {
    let root = workspace_root();
    if let Some(given) = env::var_os("RUNTAP_SHARED") {
        let given = root.join(given);
        assert!(given.is_dir(), "RUNTAP_SHARED is {}, which is no folder", given.display());
        // Programs tell their own paths with links resolved.
        return given.canonicalize().ok();
    }
    let beside = root.parent().map(|parent| parent.join("shared"));
    beside.filter(|folder| folder.join("runtimes").is_dir()).and_then(|folder| folder.canonicalize().ok())
}

/// The shared folder, or the reason to skip.
pub(crate) fn required() -> Result<PathBuf, Skip> {
    shared_dir().ok_or_else(|| Skip::because("there is no shared folder (RUNTAP_SHARED)"))
}

/// An archive (`.tar.xz`) below the shared folder, by its path there.
///
/// # Errors
/// No shared folder, or no `xz`, by which `tar` unpacks it.
pub fn shared_archive(path: impl AsRef<Path>) -> Result<PathBuf, Skip> {
    let path = required()?.join(path);
    installed("xz")?;
    Ok(path)
}

/// Extracts an archive into a directory.
///
/// # Panics
/// If `tar` fails.
pub fn extract(archive: &Path, into: &Path) {
    let mut tar = Command::new("tar");
    run(tar.arg("-xf").arg(archive).arg("--no-same-owner").arg("-C").arg(into));
}

/// A file below `data` of the shared folder, unpacked if its name ends in `.zst`.
///
/// # Errors
/// No shared folder.
///
/// # Panics
/// When the folder is there and the file can't be read.
pub fn shared_data(path: impl AsRef<Path>) -> Result<Vec<u8>, Skip> {
    Ok(unpacked(&required()?.join("data").join(path)))
}

/// A file's bytes, unpacked if its name ends in `.zst`.
pub(crate) fn unpacked(path: &Path) -> Vec<u8> {
    let packed = fs::read(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    if path.extension().is_none_or(|extension| extension != "zst") {
        return packed;
    }
    let mut bytes = Vec::new();
    let decoder = ruzstd::decoding::StreamingDecoder::new(packed.as_slice());
    let read = decoder.map(|mut decoder| decoder.read_to_end(&mut bytes));
    assert!(matches!(read, Ok(Ok(_))), "cannot unpack {}", path.display());
    bytes
}
