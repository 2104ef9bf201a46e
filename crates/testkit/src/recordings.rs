//! The recordings of the shared folder, with the results of an independent reader.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::Skip;
use crate::shared::{required, unpacked};

/// A recording with expected results.
#[derive(Debug)]
pub struct Recording {
    /// Path of the file, which may be compressed.
    pub path: PathBuf,
    /// Uncompressed bytes.
    pub bytes: Vec<u8>,
    /// Results of an independent reader.
    pub expected: Value,
}

impl Recording {
    /// Returns the version of its format.
    pub fn version(&self) -> u64 {
        self.expected["version"].as_u64().unwrap_or_default()
    }
}

/// Returns all recordings with expected results, in all versions of the format. Read once per process.
///
/// # Errors
/// If there is no shared folder.
///
/// # Panics
/// If the shared folder exists, but the recording of some results is missing.
pub fn recordings() -> Result<&'static [Recording], Skip> {
    static RECORDINGS: OnceLock<Vec<Recording>> = OnceLock::new();
    let shared = required()?;
    Ok(RECORDINGS.get_or_init(|| find(&shared.join("data/nettrace"))))
}

/// Matches results and recordings by the hash of the recording, because their names differ.
fn find(root: &Path) -> Vec<Recording> {
    let mut answers = BTreeMap::new();
    let mut traces = Vec::new();
    for folder in ["", "expected", "net8", "net9", "net10"] {
        for entry in fs::read_dir(root.join(folder)).expect("a folder of recordings") {
            let path = entry.expect("an entry of that folder").path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let answer = fs::read(&path).expect("an answer can be read");
                let answer: Value = serde_json::from_slice(&answer).expect("an answer is JSON");
                let hash = answer["sha256"].as_str().expect("an answer names its recording").to_owned();
                answers.insert(hash, answer);
            } else if path.is_file() && is_trace(&path) {
                traces.push(path);
            }
        }
    }
    traces.sort();
    let mut found = Vec::new();
    for path in traces {
        let bytes = unpacked(&path);
        if let Some(expected) = answers.remove(&format!("{:x}", Sha256::digest(&bytes))) {
            found.push(Recording { path, bytes, expected });
        }
    }
    assert!(answers.is_empty(), "answers without a recording: {:?}", answers.keys());
    found
}

fn is_trace(path: &Path) -> bool {
    let name = path.to_string_lossy();
    let name = name.strip_suffix(".zst").unwrap_or(&name);
    [".nettrace", ".netperf"].iter().any(|ending| name.ends_with(ending))
}
