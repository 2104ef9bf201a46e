//! Recordings as users name them: `RECORDING` or `RECORDING#PART`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::recording::error::Error;
use crate::recording::find::is_recording;
use crate::recording::loaded::{self, LoadedAgent, LoadedRecording};
use crate::recording::names::StreamName;
use crate::recording::part::{Part, PartProblem};

/// A recording, and the part of it to report on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// The path of the recording.
    pub path: PathBuf,
    /// The part; `None` for the whole recording.
    pub part: Option<Part>,
}

impl Operand {
    /// Parses an operand. An existing path is taken literally, even if it contains '#'.
    ///
    /// # Errors
    /// Fails if the syntax of the part is invalid.
    pub fn parse(text: &str) -> Result<Self, PartProblem> {
        let whole = || Self { path: text.into(), part: None };
        if Path::new(text).exists() {
            return Ok(whole());
        }
        match text.rsplit_once('#') {
            None => Ok(whole()),
            Some((path, part)) => Ok(Self { path: path.into(), part: Some(Part::parse(part)?) }),
        }
    }

    /// Returns the operand if its path is a recording, `None` for other files.
    ///
    /// # Errors
    /// Fails if the syntax of the part is invalid.
    pub fn find(path: &Path) -> Result<Option<Self>, PartProblem> {
        if is_recording(path) {
            return Ok(Some(Self { path: path.to_owned(), part: None }));
        }
        match path.to_str().and_then(|text| text.rsplit_once('#')) {
            Some((recording, part)) if !path.exists() && is_recording(Path::new(recording)) => {
                Ok(Some(Self { path: recording.into(), part: Some(Part::parse(part)?) }))
            }
            _ => Ok(None),
        }
    }

    /// Returns the operand as it was given.
    pub fn label(&self) -> String {
        match &self.part {
            Some(part) => format!("{}#{part}", self.path.display()),
            None => self.path.display().to_string(),
        }
    }

    /// Replays the selected agents one after the other, so that only one is in memory.
    ///
    /// # Errors
    /// Fails as [`LoadedRecording::load`] does.
    pub fn each(
        &self,
        agents: &[String],
        slow: Duration,
        take: impl FnMut(LoadedAgent),
    ) -> Result<(), Error> {
        loaded::each(&self.path, self.part.as_ref(), agents, slow, take)
    }

    /// Replays the selected agents.
    ///
    /// # Errors
    /// Fails as [`LoadedRecording::load`] does.
    pub fn load(&self, agents: &[String], slow: Duration) -> Result<LoadedRecording, Error> {
        LoadedRecording::load(&self.path, self.part.as_ref(), agents, slow)
    }

    /// Returns the default path of files made from the recording, without an extension: beside the recording, never inside,
    /// and distinct for each of its parts and agents.
    pub fn base(&self) -> PathBuf {
        // Removes a trailing slash: `run/` and `run` are the same recording.
        let trimmed: PathBuf = self.path.components().collect();
        let mut base = if self.path.is_dir() { with_file_name(&trimmed) } else { agent_base(&trimmed) };
        if let Some(part) = &self.part {
            base.as_mut_os_string().push(format!("-{}", sanitize(&part.to_string())));
        }
        base
    }
}

/// Returns a path that ends with a file name, which `.` lacks.
fn with_file_name(path: &Path) -> PathBuf {
    if path.file_name().is_some() {
        return path.to_owned();
    }
    let there = path.canonicalize().ok();
    there.filter(|there| there.file_name().is_some()).unwrap_or_else(|| PathBuf::from("recording"))
}

/// Returns the path for an agent or stream in a directory, beside the directory: `run-agent0` for `run/agent0` and for
/// `run/agent0.ctl.a2h.bin`.
fn agent_base(path: &Path) -> PathBuf {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let agent = StreamName::parse(&name).map_or(name, |stream| stream.agent);
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut base = with_file_name(folder);
    base.as_mut_os_string().push(format!("-{agent}"));
    base
}

/// Converts the name of a part to a piece of a file name.
fn sanitize(part: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._-=".contains(c);
    part.replace("..", "-").chars().map(|c| if is_plain(c) { c } else { '_' }).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_and_each_agent_has_a_name_beside_the_recording() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run.dir");
        std::fs::create_dir(&run).unwrap();
        let of = |given: &str| {
            let operand = Operand::parse(&format!("{}{given}", run.display())).unwrap();
            operand.base().strip_prefix(dir.path()).unwrap().display().to_string()
        };
        for (given, base) in [
            ("", "run.dir"),
            ("/", "run.dir"),
            ("#log in", "run.dir-log_in"),
            ("#0s..1s", "run.dir-0ns-1000000000ns"),
            ("#request=7", "run.dir-request=7"),
            ("/agent0", "run.dir-agent0"),
            ("/agent0.data1.a2h.bin#x", "run.dir-agent0-x"),
        ] {
            assert_eq!(of(given), base, "{given}");
        }
        assert_eq!(sanitize("a/b c"), "a_b_c");
    }
}
