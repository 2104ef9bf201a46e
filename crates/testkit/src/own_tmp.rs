//! Programs with a `/tmp` of their own, as in a container. They need a mount namespace.

use std::path::{Path, PathBuf};

/// A script for `sh -c SCRIPT sh COMMAND…` in a mount namespace: the command has an empty `/tmp` and finds this
/// machine's in `/mnt` ([`in_own_tmp`]).
pub const OWN_TMP: &str = "mount --bind /tmp /mnt && mount -t tmpfs none /tmp && exec \"$@\"";

/// Returns the path at which such a program finds a file of this machine.
pub fn in_own_tmp(path: &Path) -> PathBuf {
    path.strip_prefix("/tmp").map_or_else(|_| path.to_owned(), |rest| Path::new("/mnt").join(rest))
}
