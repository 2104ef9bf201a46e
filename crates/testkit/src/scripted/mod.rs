//! A test application that plays a scenario, right or wrong: for the tests of whoever runs test applications.
//!
//! A program calls [`play_if_asked`] first in its `main`: if it was started as a test application, with
//! `--dotnet-test-pipe`, it plays the scenario at the path in its first argument, or else the one whose path is its own with
//! `.mtp` behind it. So a link to the program, with a scenario beside it, is a test application.
//!
//! The format is described in docs/design/scenarios.md; the scenarios are in `crates/testkit/scenarios`.

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

/// The scenario itself is wrong.
const WRONG: u8 = 97;
/// The server's reply is not the one that was expected.
const UNEXPECTED: u8 = 98;

/// Where the scenarios are.
pub fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// Plays a scenario if this process was started as a test application. `None`: it was not.
pub fn play_if_asked() -> Option<ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    arguments.iter().any(|argument| argument == "--dotnet-test-pipe").then(|| play(&arguments))
}

/// Plays the scenario that the command line names.
pub fn play(arguments: &[OsString]) -> ExitCode {
    let said = |text: &str| drop(writeln!(io::stderr(), "scripted host: {text}"));
    match Options::read(arguments).and_then(|options| {
        let text = std::fs::read_to_string(&options.script)
            .map_err(|error| Wrong::from(format!("{}: {error}", options.script.display())))?;
        Player::new(options, Script::parse(&text)?).play()
    }) {
        Ok(code) => ExitCode::from(code),
        Err(Wrong::Closed) => {
            // What hosts of MTP 2.x say and do.
            said("the pipe was closed by the server");
            ExitCode::from(1)
        }
        Err(wrong) => {
            said(&wrong.to_string());
            ExitCode::from(if matches!(wrong, Wrong::Reply(_)) { UNEXPECTED } else { WRONG })
        }
    }
}

/// Why a scenario can't go on.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wrong {
    /// It is no scenario.
    Script(String),
    /// The server has not answered as it should.
    Reply(String),
    /// The server has closed a connection and owes a reply.
    Closed,
}

impl Wrong {
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

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Script(text) | Self::Reply(text) => f.write_str(text),
            Self::Closed => f.write_str("the pipe was closed by the server"),
        }
    }
}

impl From<String> for Wrong {
    fn from(text: String) -> Self {
        Self::Script(text)
    }
}

impl From<&str> for Wrong {
    fn from(text: &str) -> Self {
        Self::Script(text.to_owned())
    }
}

impl From<io::Error> for Wrong {
    fn from(error: io::Error) -> Self {
        Self::Script(error.to_string())
    }
}

/// `12ms`, `3s`, `5m`.
fn duration(text: &str) -> Result<Duration, Wrong> {
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
