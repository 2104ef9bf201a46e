//! Files as a target sees them: as we do, where all have one root (macOS).

use std::path::{Path, PathBuf};

/// What finds a file of a target, as we reach it, and its size.
#[expect(clippy::unnecessary_wraps, reason = "on Linux we may not look at every target's files")]
pub(super) fn finder(_pid: u32) -> Option<impl Fn(&Path) -> Option<(PathBuf, u64)>> {
    Some(|theirs: &Path| Some((theirs.to_owned(), theirs.metadata().ok()?.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found_with_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perf-1.map");
        let file = finder(1).unwrap();
        assert_eq!(file(&path), None);
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(file(&path), Some((path, 3)));
    }
}
