//! A test application that plays a scenario, whether valid or not, for testing programs that run test applications.
//!
//! A program calls [`play_if_asked`] first in its `main`. If it was started as a test application, with
//! `--dotnet-test-pipe`, it plays the scenario in its first argument, or else the one with its own path plus `.mtp`. So
//! a link to the program beside a scenario is a test application.
//!
//! docs/design/scenarios.md describes the format; the scenarios are in `crates/testkit/scenarios`.

mod bytes;
mod link;
mod message;
mod options;
mod play;
mod process;
mod script;
mod words;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use self::options::Options;
use self::play::Player;
use self::script::Script;

/// Exit code for an invalid scenario.
const INVALID_SCENARIO: u8 = 97;
/// Exit code for an unexpected reply of the server.
const UNEXPECTED: u8 = 98;

/// Returns the folder of the scenarios.
pub fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// Plays a scenario if this process was started as a test application. `None` otherwise.
pub fn play_if_asked() -> Option<ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    arguments.iter().any(|argument| argument == "--dotnet-test-pipe").then(|| play(&arguments))
}

/// Plays the scenario specified by the command line.
pub fn play(arguments: &[OsString]) -> ExitCode {
    let report = |text: &str| drop(writeln!(io::stderr(), "scripted host: {text}"));
    match Options::read(arguments).and_then(|options| {
        let text = std::fs::read_to_string(&options.script)
            .map_err(|error| PlayError::from(format!("{}: {error}", options.script.display())))?;
        Player::new(options, Script::parse(&text)?).play()
    }) {
        Ok(code) => ExitCode::from(code),
        Err(PlayError::Closed) => {
            // Hosts of MTP 2.x print this and exit with this code.
            report("the pipe was closed by the server");
            ExitCode::from(1)
        }
        Err(error) => {
            report(&error.to_string());
            ExitCode::from(if matches!(error, PlayError::Reply(_)) { UNEXPECTED } else { INVALID_SCENARIO })
        }
    }
}

/// An error that ends a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PlayError {
    /// The scenario is invalid.
    Script(String),
    /// The server sent an unexpected reply.
    Reply(String),
    /// The server closed a connection without the expected reply.
    Closed,
}

impl PlayError {
    fn reply(text: String) -> Self {
        Self::Reply(text)
    }

    fn at(self, line: usize) -> Self {
        match self {
            Self::Script(text) if !text.starts_with("line ") => Self::Script(format!("line {line}: {text}")),
            Self::Reply(text) if !text.starts_with("line ") => Self::Reply(format!("line {line}: {text}")),
            other => other,
        }
    }
}

impl std::fmt::Display for PlayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Script(text) | Self::Reply(text) => f.write_str(text),
            Self::Closed => f.write_str("the pipe was closed by the server"),
        }
    }
}

impl From<String> for PlayError {
    fn from(text: String) -> Self {
        Self::Script(text)
    }
}

impl From<&str> for PlayError {
    fn from(text: &str) -> Self {
        Self::Script(text.to_owned())
    }
}

impl From<io::Error> for PlayError {
    fn from(error: io::Error) -> Self {
        Self::Script(error.to_string())
    }
}

/// Parses a duration: `12ms`, `3s`, `5m`.
fn duration(text: &str) -> Result<Duration, PlayError> {
    let split = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_no_number| format!("{text}: no duration, such as 50ms"))?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(60 * number)),
        _ => Err(format!("{text}: no duration, such as 50ms").into()),
    }
}
