//! The command line that the server passes.
//!
//! Determines whether a server started this process, the requested mode, and the address of the server. Opens only
//! response files.

mod files;
mod options;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use runtap_mtp_proto::CommandLineOption;
use thiserror::Error;

pub use options::CommandOption;

use crate::{Diagnostic, Policy, Verbosity};
use options::{OptionSet, ParsedOptions};

/// The requested mode. If several modes are requested, the first of these applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// `--info`: print information about the application, without a server.
    Info,
    /// `--help`: list the options.
    Help,
    /// `--list-tests`: list the tests.
    Discover,
    /// Run the tests.
    Run,
}

/// The address of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// A socket at this path (`--dotnet-test-pipe`).
    Pipe(PathBuf),
    /// A loopback port (`--dotnet-test-transport http`, MTP 2.4).
    Http {
        /// The URL, `http://127.0.0.1:PORT/PATH`.
        endpoint: String,
        /// The bearer token.
        token: String,
    },
}

/// The parsed command line of a process that was started by a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The requested mode.
    pub mode: Mode,
    /// The address of the server.
    pub server: Server,
    /// The ids of the tests to run or list (`--filter-uid`). Unknown ids are ignored. `None` for all tests.
    pub filter_uids: Option<Vec<String>>,
    /// The directory for files that the run produces (`--results-directory`).
    pub results_directory: Option<PathBuf>,
    /// The configuration file (`--config-file`).
    pub config_file: Option<PathBuf>,
    /// The directory for diagnostic logs (`--diagnostic-output-directory`).
    pub diagnostic_output_directory: Option<PathBuf>,
    /// The diagnostic log (`--diagnostic` and its other options).
    pub diagnostic: Option<Diagnostic>,
    /// The time limit of the session (`--timeout`).
    pub timeout: Option<Duration>,
    /// The options that affect the exit code.
    pub policy: Policy,
    own: Vec<(String, Vec<String>)>,
}

/// An error in a server's command line. The application exits with [`Exit::USAGE`](crate::Exit::USAGE).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The option is unknown.
    #[error("unknown option --{0}")]
    UnknownOption(String),
    /// The argument belongs to no option.
    #[error("unexpected argument {0:?}")]
    UnexpectedArgument(String),
    /// An option has too few or too many values.
    #[error("--{name} takes {expected}, not {given} values")]
    Arity {
        /// The name of the option, without dashes.
        name: String,
        /// The expected number of values.
        expected: String,
        /// The actual number of values.
        given: usize,
    },
    /// A value is invalid.
    #[error("--{name} {value:?}: {expected}")]
    Value {
        /// The name of the option, without dashes.
        name: String,
        /// The value.
        value: String,
        /// A description of the expected value.
        expected: &'static str,
    },
    /// A required option is missing.
    #[error("--{0} is missing")]
    Missing(&'static str),
    /// An argument is not valid UTF-8.
    #[error("the argument {0:?} is not UTF-8")]
    NotText(OsString),
    /// A response file cannot be read.
    #[error("can't read {path}: {error}")]
    ResponseFile {
        /// The path of the file.
        path: String,
        /// The cause.
        error: String,
    },
    /// An option of the application has the name of a platform option.
    #[error("the option --{0} is reserved by the platform")]
    Reserved(String),
}

impl Launch {
    /// Parses the arguments, without the program name. Returns `Ok(None)` if no server started this process. `own` are
    /// the additional options of the application.
    ///
    /// Response files (`@FILE`) are read: `runtap test` uses one to pass long lists of tests and the HTTP token.
    ///
    /// # Errors
    /// Returns an error if a server started this process and the command line is invalid.
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
        let options = OptionSet::new(own)?.parse(&words)?;
        Self::from_options(options).map(Some)
    }

    /// Creates a launch that runs all tests, for programs that determine the server in another way.
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

    /// Returns the values of an additional option, or `None` if the option was not specified.
    pub fn values(&self, name: &str) -> Option<&[String]> {
        self.own.iter().find(|(known, _)| known == name).map(|(_, values)| values.as_slice())
    }

    /// Returns whether [`filter_uids`](Self::filter_uids) includes a test.
    pub fn wants(&self, uid: &str) -> bool {
        self.filter_uids.as_ref().is_none_or(|uids| uids.iter().any(|known| known == uid))
    }

    fn from_options(mut options: ParsedOptions) -> Result<Self, LaunchError> {
        let server = server(&mut options)?;
        let mode = [("info", Mode::Info), ("help", Mode::Help), ("?", Mode::Help), ("h", Mode::Help)];
        let mode = mode.into_iter().find(|(name, _)| options.has(name)).map(|(_, mode)| mode);
        let discover = options.has("list-tests").then_some(Mode::Discover);
        let ignored = options.texts("ignore-exit-code").unwrap_or_default();
        let ignored = ignored.iter().flat_map(|list| list.split([';', ',']));
        let ignored = ignored.map(|code| {
            let wrong = |_| value("ignore-exit-code", code, "expected exit codes separated by ';'");
            code.trim().parse().map_err(wrong)
        });
        let policy = Policy {
            ignored: ignored.collect::<Result<_, _>>()?,
            minimum_expected: options.number("minimum-expected-tests")?,
            maximum_failed: options.number("maximum-failed-tests")?,
            strict_zero: match options.text("zero-tests-policy").as_deref() {
                None | Some("allow-skipped") => false,
                Some("strict") => true,
                Some(other) => {
                    return Err(value("zero-tests-policy", other, "expected allow-skipped or strict"));
                }
            },
        };
        let timeout = options.text("timeout").map(|text| {
            duration(&text)
                .ok_or_else(|| value("timeout", &text, "expected a time such as 90s, 10m or 500ms"))
        });
        let verbosity = options.text("diagnostic-verbosity").map(|text| {
            let expected = "expected Trace, Debug, Information, Warning, Error, Critical or None";
            Verbosity::parse(&text).ok_or_else(|| value("diagnostic-verbosity", &text, expected))
        });
        let verbosity = verbosity.transpose()?.unwrap_or(Verbosity::Everything);
        let file_prefix = options.text("diagnostic-file-prefix").unwrap_or_else(|| "log".to_owned());
        if file_prefix.contains('/') {
            return Err(value(
                "diagnostic-file-prefix",
                &file_prefix,
                "expected the prefix of a file name, not a path",
            ));
        }
        let diagnostic = options.has("diagnostic").then_some(Diagnostic { file_prefix, verbosity });
        Ok(Self {
            mode: mode.or(discover).unwrap_or(Mode::Run),
            server,
            filter_uids: options.texts("filter-uid"),
            results_directory: options.text("results-directory").map(PathBuf::from),
            config_file: options.text("config-file").map(PathBuf::from),
            diagnostic_output_directory: options.text("diagnostic-output-directory").map(PathBuf::from),
            diagnostic,
            timeout: timeout.transpose()?,
            policy,
            own: options.own(),
        })
    }
}

/// Returns the platform's options and the additional options, sorted by name, as messages.
pub(crate) fn all_options(own: &[CommandOption]) -> Result<Vec<CommandLineOption>, LaunchError> {
    Ok(OptionSet::new(own)?.to_messages())
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

fn server(options: &mut ParsedOptions) -> Result<Server, LaunchError> {
    let kind = options.text("server").unwrap_or_default();
    if !kind.eq_ignore_ascii_case("dotnettestcli") {
        return Err(value("server", &kind, "expected dotnettestcli"));
    }
    match options.text("dotnet-test-transport").as_deref() {
        None | Some("pipe") => {
            let path = options.text("dotnet-test-pipe").ok_or(LaunchError::Missing("dotnet-test-pipe"))?;
            Ok(Server::Pipe(path.into()))
        }
        Some("http") => Ok(Server::Http {
            endpoint: options
                .text("dotnet-test-http-endpoint")
                .ok_or(LaunchError::Missing("dotnet-test-http-endpoint"))?,
            token: options
                .text("dotnet-test-http-token")
                .ok_or(LaunchError::Missing("dotnet-test-http-token"))?,
        }),
        Some(other) => Err(value("dotnet-test-transport", other, "expected pipe or http")),
    }
}

/// Parses a time: `1.5h`, `10m`, `90s` or `500ms`. A number without a unit is in seconds.
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
