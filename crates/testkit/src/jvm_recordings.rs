//! The recordings of the original Bytefrog agents in the shared folder, with the results of an independent reader. A
//! file that neither belongs to a recording nor is read by another test is an error, so that no file is forgotten.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::Skip;
use crate::shared::required;

/// A recording of an agent.
#[derive(Debug, Clone)]
pub struct JvmRecording {
    /// Name, which is the prefix of its file names.
    pub name: String,
    /// Results of an independent reader, and how it was recorded.
    pub expected: Value,
    folder: PathBuf,
}

impl JvmRecording {
    /// Returns its path for commands: the common prefix of its files.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Returns the version in hello.
    ///
    /// # Panics
    /// If the expected results lack it.
    pub fn version(&self) -> u8 {
        let version = self.expected["version"].as_u64().and_then(|version| u8::try_from(version).ok());
        version.expect("an answer has the version")
    }

    /// Returns the names of its streams: `ctl.a2h`, `data0.h2a` …
    ///
    /// # Panics
    /// If the expected results lack them.
    pub fn streams(&self) -> impl Iterator<Item = &str> {
        self.expected["streams"].as_object().expect("an answer has streams").keys().map(String::as_str)
    }

    /// Returns the names of its data connections: `data0` …
    pub fn data(&self) -> impl Iterator<Item = &str> {
        self.streams().filter_map(|stream| stream.strip_suffix(".a2h")).filter(|name| *name != "ctl")
    }

    /// Returns the bytes of a stream.
    ///
    /// # Panics
    /// If the file cannot be read.
    pub fn bytes(&self, stream: &str) -> Vec<u8> {
        let path = self.folder.join(format!("{}.{stream}.bin", self.name));
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Returns the number of messages with this name in all streams.
    pub fn count(&self, message: &str) -> u64 {
        let streams = self.expected["streams"].as_object().into_iter().flat_map(|streams| streams.values());
        streams.filter_map(|stream| stream["counts"][message].as_u64()).sum()
    }

    /// Returns the times and sizes of reads or writes, in milliseconds since the collector started listening, and
    /// bytes.
    ///
    /// # Panics
    /// If the table cannot be read.
    pub fn chunks(&self, stream: &str) -> Vec<(f64, usize)> {
        let path = self.folder.join(format!("{}.{stream}.chunks.tsv", self.name));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let row = |line: &str| {
            let (at, size) = line.split_once('\t')?;
            (size != "EOF").then(|| (at.parse().expect("a time"), size.parse().expect("a size")))
        };
        text.lines().filter_map(row).collect()
    }

    /// Returns the counts of another tool for the same program and arguments, if they exist: sorted lines
    /// `SIGNATURE<TAB>ENTRIES<TAB>EXITS<TAB>EXCEPTION EXITS`, one per method.
    ///
    /// # Panics
    /// If the file cannot be read.
    pub fn oracle(&self) -> Option<Vec<String>> {
        let command = self.expected["cmd"].as_str().unwrap_or_default();
        let (_, arguments) = command.split_once(" demo.Counts ")?;
        let path = self.folder.join(format!("oracle_counts_{}.tsv", arguments.replace(' ', "_")));
        let text = path.is_file().then(|| fs::read_to_string(&path).expect("an oracle can be read"))?;
        Some(text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect())
    }
}

/// Returns all recordings by name.
///
/// # Errors
/// If there is no shared folder.
///
/// # Panics
/// If a file of the folder is missing or belongs to no recording.
pub fn jvm_recordings() -> Result<Vec<JvmRecording>, Skip> {
    let folder = required()?.join("data/bytefrog");
    let names = files(&folder);
    let mut known: BTreeSet<String> = configurations(&names).map(str::to_owned).collect();
    let mut all = Vec::new();
    for file in &names {
        let Some(name) = file.strip_suffix(".json") else { continue };
        let bytes = fs::read(folder.join(file)).expect("an answer can be read");
        let expected = serde_json::from_slice(&bytes).expect("an answer is JSON");
        let recording = JvmRecording { name: name.to_owned(), expected, folder: folder.clone() };
        known.insert(file.clone());
        for stream in recording.streams() {
            known.extend(["bin", "chunks.tsv"].map(|ending| format!("{name}.{stream}.{ending}")));
        }
        if recording.oracle().is_some() {
            let (_, arguments) = recording.expected["cmd"]
                .as_str()
                .and_then(|command| command.split_once(" demo.Counts "))
                .expect("it has an oracle");
            known.insert(format!("oracle_counts_{}.tsv", arguments.replace(' ', "_")));
        }
        all.push(recording);
    }
    assert!(!all.is_empty(), "no recording in {}", folder.display());
    assert_eq!(names, known, "files that belong to no recording, or are missing");
    Ok(all)
}

/// Returns configurations serialized by Java, by file name.
///
/// # Errors
/// If there is no shared folder.
///
/// # Panics
/// If they cannot be read.
pub fn jvm_configurations() -> Result<Vec<(String, Vec<u8>)>, Skip> {
    let folder = required()?.join("data/bytefrog");
    let read = |name: &str| fs::read(folder.join(name)).expect("a configuration can be read");
    Ok(configurations(&files(&folder)).map(|name| (name.to_owned(), read(name))).collect())
}

fn configurations(names: &BTreeSet<String>) -> impl Iterator<Item = &str> {
    names.iter().map(String::as_str).filter(|name| name.starts_with("config_java_serialized_"))
}

fn files(folder: &std::path::Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries
        .map(|entry| entry.expect("an entry of that folder").file_name().into_string().expect("a plain name"))
        .collect()
}
