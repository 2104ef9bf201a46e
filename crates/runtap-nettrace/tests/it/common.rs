//! What the tests on real recordings share: finding them, unpacking them, and their expected answers.
//! Does not judge.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use runtap_nettrace::{Error, Item, Reader};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Folder with recordings, runtimes and peers, if this machine has it.
pub(crate) fn shared() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("RUNTAP_SHARED").map_or_else(|| workspace.join("../shared"), PathBuf::from);
    if shared.is_dir() {
        return Some(shared);
    }
    println!("skipped: there is no {}", shared.display());
    None
}

/// A recording and what an independent reader found in it.
pub(crate) struct Recording {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) expected: Value,
}

/// All recordings with expected answers, matched by the hash of their bytes.
pub(crate) fn recordings() -> &'static [Recording] {
    static RECORDINGS: OnceLock<Vec<Recording>> = OnceLock::new();
    RECORDINGS.get_or_init(|| shared().map_or_else(Vec::new, |shared| find_recordings(&shared)))
}

/// Those that the reader reads.
pub(crate) fn recordings_of_version_4() -> impl Iterator<Item = &'static Recording> {
    recordings().iter().filter(|recording| recording.expected["version"] == 4)
}

fn find_recordings(shared: &Path) -> Vec<Recording> {
    let root = shared.join("data/nettrace");
    let mut answers = BTreeMap::new();
    let mut traces = Vec::new();
    for folder in ["", "expected", "net8", "net9", "net10"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.extension().is_some_and(|extension| extension == "json") {
                let answer: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
                answers.insert(answer["sha256"].as_str().unwrap().to_owned(), answer);
            } else if path.is_file() && is_trace(name) {
                traces.push(path);
            }
        }
    }
    traces.sort();
    let mut found = Vec::new();
    for path in traces {
        let bytes = unpack(&path);
        let mut hash = String::new();
        for byte in Sha256::digest(&bytes) {
            write!(hash, "{byte:02x}").unwrap();
        }
        if let Some(expected) = answers.remove(&hash) {
            found.push(Recording { path, bytes, expected });
        }
    }
    assert!(answers.is_empty(), "answers without a recording: {:?}", answers.values());
    found
}

fn is_trace(name: &str) -> bool {
    let name = name.trim_end_matches(".zst");
    [".nettrace", ".netperf"].iter().any(|ending| name.ends_with(ending))
}

/// A file's bytes, unpacked if its name says that it is packed.
pub(crate) fn unpack(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    if path.extension().is_none_or(|extension| extension != "zst") {
        return bytes;
    }
    let mut unpacked = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(bytes.as_slice()).unwrap().read_to_end(&mut unpacked).unwrap();
    unpacked
}

/// Feeds `bytes` in chunks of `chunk` bytes and shows each item, and each error, to `see`.
pub(crate) fn read(
    reader: &mut Reader,
    bytes: &[u8],
    chunk: usize,
    mut see: impl FnMut(Result<Item<'_>, Error>),
) {
    let mut drain = |reader: &mut Reader| {
        loop {
            match reader.next() {
                Ok(Some(item)) => see(Ok(item)),
                Ok(None) => break,
                Err(error) => see(Err(error)),
            }
        }
    };
    for chunk in bytes.chunks(chunk.max(1)) {
        reader.feed(chunk);
        drain(reader);
    }
    reader.finish();
    drain(reader);
}
