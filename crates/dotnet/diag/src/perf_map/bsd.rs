//! Files as a target sees them: identical to this process's view, because there is one root directory (macOS).

use std::path::{Path, PathBuf};

/// Returns a function that finds a file of a target and returns its path for this process and its size.
#[expect(clippy::unnecessary_wraps, reason = "on Linux the files of some targets are not accessible")]
pub(super) fn finder(_pid: u32) -> Option<impl Fn(&Path) -> Option<(PathBuf, u64)>> {
    Some(|theirs: &Path| Some((theirs.to_owned(), theirs.metadata().ok()?.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_files_are_found_with_their_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perf-1.map");
        let file = finder(1).unwrap();
        assert_eq!(file(&path), None);
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(file(&path), Some((path, 3)));
    }
}
