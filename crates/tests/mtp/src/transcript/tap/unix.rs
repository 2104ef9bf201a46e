//! Names of sockets on Unix.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

pub(super) fn socket_path(name: &OsStr) -> PathBuf {
    socket_of(name, std::env::var_os("TMPDIR"))
}

/// Converts a name as .NET does: a rooted name is a path, any other name stands for `CoreFxPipe_NAME` in the temporary
/// directory.
fn socket_of(name: &OsStr, temporary: Option<OsString>) -> PathBuf {
    if name.as_bytes().starts_with(b"/") {
        return PathBuf::from(name);
    }
    let directory = temporary.filter(|value| !value.is_empty()).unwrap_or_else(|| "/tmp".into());
    let mut file = OsString::from("CoreFxPipe_");
    file.push(name);
    Path::new(&directory).join(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_converted_as_in_dotnet() {
        let of = |name: &str, temporary: Option<&str>| {
            socket_of(OsStr::new(name), temporary.map(OsString::from)).display().to_string()
        };
        assert_eq!(of("/tmp/a", Some("/x")), "/tmp/a");
        assert_eq!(of("a", Some("/x")), "/x/CoreFxPipe_a");
        assert_eq!(of("a", Some("")), "/tmp/CoreFxPipe_a");
        assert_eq!(of("a", None), "/tmp/CoreFxPipe_a");
    }
}
