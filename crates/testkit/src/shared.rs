//! The shared folder with runtimes, programs and recordings. `RUNTAP_SHARED` is its path relative to the workspace; the
//! default is `shared` beside the workspace, if it exists.

use std::env;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peers::run;
use crate::{Skip, installed};

/// Returns the root of the workspace that this test kit was built in.
pub fn workspace_root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_owned()
}

/// Returns the shared folder. `None` on a machine without it.
///
/// # Panics
/// If `RUNTAP_SHARED` is not a folder.
pub fn shared_dir() -> Option<PathBuf> {
    let root = workspace_root();
    if let Some(given) = env::var_os("RUNTAP_SHARED") {
        let given = root.join(given);
        assert!(given.is_dir(), "RUNTAP_SHARED is {}, which is not a folder", given.display());
        // Programs report their paths with symbolic links resolved.
        return given.canonicalize().ok();
    }
    let beside = root.parent().map(|parent| parent.join("shared"));
    beside.filter(|folder| folder.join("runtimes").is_dir()).and_then(|folder| folder.canonicalize().ok())
}

/// Returns the shared folder, or the reason to skip.
pub(crate) fn required() -> Result<PathBuf, Skip> {
    shared_dir().ok_or_else(|| Skip::because("there is no shared folder (RUNTAP_SHARED)"))
}

/// Returns an archive (`.tar.xz`) by its path below the shared folder.
///
/// # Errors
/// If there is no shared folder, or no `xz`, which `tar` needs.
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

/// Returns a file below `data` of the shared folder, decompressed if its name ends with `.zst`.
///
/// # Errors
/// If there is no shared folder.
///
/// # Panics
/// If the shared folder exists but the file cannot be read.
pub fn shared_data(path: impl AsRef<Path>) -> Result<Vec<u8>, Skip> {
    Ok(unpacked(&required()?.join("data").join(path)))
}

/// Returns the bytes of a file, decompressed if its name ends with `.zst`.
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
