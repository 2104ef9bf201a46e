//! What the server has put on the command line.
//!
//! Owns: whether a server has started this process at all, what it is to do, and where the server is. Refuses to: open
//! anything but response files.

mod files;
mod options;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use runtap_mtp_proto::CommandLineOption;
use thiserror::Error;

pub use options::CommandOption;

use crate::{Diagnostic, Policy, Verbosity};
use options::{Given, OptionSet};

/// What the application is to do. If several are asked for, the first of these counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// `--info`: print what it is, without a server.
    Info,
    /// `--help`: say which options it has.
    Help,
    /// `--list-tests`: say which tests it has.
    Discover,
    /// Run them.
    Run,
}

/// Where the server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// A socket at this path (`--dotnet-test-pipe`).
    Pipe(PathBuf),
    /// A port of this machine (`--dotnet-test-transport http`, MTP 2.4).
    Http {
        /// `http://127.0.0.1:PORT/PATH`.
        endpoint: String,
        /// The bearer token.
        token: String,
    },
}

/// A start by a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// What to do.
    pub mode: Mode,
    /// Where the server is.
    pub server: Server,
    /// The only tests to run or to list (`--filter-uid`). Unknown ones are ignored.
    pub filter_uids: Option<Vec<String>>,
    /// Where files go that the run produces (`--results-directory`).
    pub results_directory: Option<PathBuf>,
    /// `--config-file`.
    pub config_file: Option<PathBuf>,
    /// `--diagnostic-output-directory`.
    pub diagnostic_output_directory: Option<PathBuf>,
    /// The diagnostic log (`--diagnostic` and its other options).
    pub diagnostic: Option<Diagnostic>,
    /// How long the session may take (`--timeout`).
    pub timeout: Option<Duration>,
    /// What decides the exit code.
    pub policy: Policy,
    own: Vec<(String, Vec<String>)>,
}

/// A command line that no server would write. The application ends with [`Exit::USAGE`](crate::Exit::USAGE).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// Nobody has declared it.
    #[error("unknown option --{0}")]
    UnknownOption(String),
    /// It belongs to no option.
    #[error("unexpected argument {0:?}")]
    UnexpectedArgument(String),
    /// Too few or too many values.
    #[error("--{name} takes {expected}, not {given} values")]
    Arity {
        /// The option, without dashes.
        name: String,
        /// What it takes.
        expected: String,
        /// How many there are.
        given: usize,
    },
    /// A value that the option does not take.
    #[error("--{name} {value:?}: {expected}")]
    Value {
        /// The option, without dashes.
        name: String,
        /// The value.
        value: String,
        /// What it takes.
        expected: &'static str,
    },
    /// An option that has to be there with another one.
    #[error("--{0} is missing")]
    Missing(&'static str),
    /// A word that is no text.
    #[error("the argument {0:?} is not UTF-8")]
    NotText(OsString),
    /// A response file that can't be read.
    #[error("can't read {path}: {error}")]
    ResponseFile {
        /// The file.
        path: String,
        /// Why not.
        error: String,
    },
    /// The application uses the name of an option of the platform's.
    #[error("the option --{0} is the platform's own")]
    Reserved(String),
}

impl Launch {
    /// Reads the arguments, without the program's name. `Ok(None)`: no server has started this process. `own` are the
    /// options that the application has beside the platform's.
    ///
    /// Response files (`@FILE`) are read: `runtap test` passes long lists of tests and the token of HTTP in one.
    ///
    /// # Errors
    /// A server has started it, and the rest of the command line is wrong.
    pub fn parse(
        arguments: impl IntoIterator<Item = OsString>,
        own: &[CommandOption],
    ) -> Result<Option<Self>, LaunchError> {
        let expanded = files::expand(arguments.into_iter().collect());
        if !expanded.iter().flatten().any(is_server) {
            return Ok(None);
        }
        let words = expanded.into_iter().map(|word| {
            let word = word?;
            word.into_string().map_err(LaunchError::NotText)
        });
        let words = words.collect::<Result<Vec<_>, _>>()?;
        let given = OptionSet::new(own)?.read(&words)?;
        Self::of(given).map(Some)
    }

    /// A run of all tests, for whoever has found the server in another way.
    pub fn by(server: Server) -> Self {
        Self {
            mode: Mode::Run,
            server,
            filter_uids: None,
            results_directory: None,
            config_file: None,
            diagnostic_output_directory: None,
            diagnostic: None,
            timeout: None,
            policy: Policy::default(),
            own: Vec::new(),
        }
    }

    /// The values of an option of the application's own; `None` if it was not given.
    pub fn values(&self, name: &str) -> Option<&[String]> {
        self.own.iter().find(|(known, _)| known == name).map(|(_, values)| values.as_slice())
    }

    /// Whether [`filter_uids`](Self::filter_uids) lets a test through.
    pub fn wants(&self, uid: &str) -> bool {
        self.filter_uids.as_ref().is_none_or(|uids| uids.iter().any(|known| known == uid))
    }

    fn of(mut given: Given) -> Result<Self, LaunchError> {
        let server = server(&mut given)?;
        let mode = [("info", Mode::Info), ("help", Mode::Help), ("?", Mode::Help), ("h", Mode::Help)];
        let mode = mode.into_iter().find(|(name, _)| given.has(name)).map(|(_, mode)| mode);
        let discover = given.has("list-tests").then_some(Mode::Discover);
        let ignored = given.texts("ignore-exit-code").unwrap_or_default();
        let ignored = ignored.iter().flat_map(|list| list.split([';', ',']));
        let ignored = ignored.map(|code| {
            let wrong = |_| value("ignore-exit-code", code, "exit codes, with ';' between them");
            code.trim().parse().map_err(wrong)
        });
        let policy = Policy {
            ignored: ignored.collect::<Result<_, _>>()?,
            minimum_expected: given.number("minimum-expected-tests")?,
            maximum_failed: given.number("maximum-failed-tests")?,
            strict_zero: match given.text("zero-tests-policy").as_deref() {
                None | Some("allow-skipped") => false,
                Some("strict") => true,
                Some(other) => {
                    return Err(value("zero-tests-policy", other, "is allow-skipped or strict"));
                }
            },
        };
        let timeout = given.text("timeout").map(|text| {
            duration(&text).ok_or_else(|| value("timeout", &text, "is a time such as 90s, 10m or 500ms"))
        });
        let verbosity = given.text("diagnostic-verbosity").map(|text| {
            let expected = "is Trace, Debug, Information, Warning, Error, Critical or None";
            Verbosity::of(&text).ok_or_else(|| value("diagnostic-verbosity", &text, expected))
        });
        let verbosity = verbosity.transpose()?.unwrap_or(Verbosity::Everything);
        let file_prefix = given.text("diagnostic-file-prefix").unwrap_or_else(|| "log".to_owned());
        if file_prefix.contains('/') {
            return Err(value("diagnostic-file-prefix", &file_prefix, "is the beginning of a name, no path"));
        }
        let diagnostic = given.has("diagnostic").then_some(Diagnostic { file_prefix, verbosity });
        Ok(Self {
            mode: mode.or(discover).unwrap_or(Mode::Run),
            server,
            filter_uids: given.texts("filter-uid"),
            results_directory: given.text("results-directory").map(PathBuf::from),
            config_file: given.text("config-file").map(PathBuf::from),
            diagnostic_output_directory: given.text("diagnostic-output-directory").map(PathBuf::from),
            diagnostic,
            timeout: timeout.transpose()?,
            policy,
            own: given.own(),
        })
    }
}

/// The platform's options and the application's own, by name, as help sends them.
pub(crate) fn all_options(own: &[CommandOption]) -> Result<Vec<CommandLineOption>, LaunchError> {
    Ok(OptionSet::new(own)?.told())
}

fn is_server(word: &OsString) -> bool {
    word.to_str().is_some_and(|word| {
        let name = word.trim_start_matches('-');
        word.starts_with("--") && name.split(['=', ':']).next() == Some("server")
    })
}

fn value(name: &str, value: &str, expected: &'static str) -> LaunchError {
    LaunchError::Value { name: name.to_owned(), value: value.to_owned(), expected }
}

fn server(given: &mut Given) -> Result<Server, LaunchError> {
    let kind = given.text("server").unwrap_or_default();
    if !kind.eq_ignore_ascii_case("dotnettestcli") {
        return Err(value("server", &kind, "only dotnettestcli is known here"));
    }
    match given.text("dotnet-test-transport").as_deref() {
        None | Some("pipe") => {
            let path = given.text("dotnet-test-pipe").ok_or(LaunchError::Missing("dotnet-test-pipe"))?;
            Ok(Server::Pipe(path.into()))
        }
        Some("http") => Ok(Server::Http {
            endpoint: given
                .text("dotnet-test-http-endpoint")
                .ok_or(LaunchError::Missing("dotnet-test-http-endpoint"))?,
            token: given
                .text("dotnet-test-http-token")
                .ok_or(LaunchError::Missing("dotnet-test-http-token"))?,
        }),
        Some(other) => Err(value("dotnet-test-transport", other, "is pipe or http")),
    }
}

/// `1.5h`, `10m`, `90s`, `500ms`; a number alone is in seconds.
fn duration(text: &str) -> Option<Duration> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    Duration::try_from_secs_f64(number * factor).ok().filter(|duration| !duration.is_zero())
}

#[cfg(test)]
mod tests;
