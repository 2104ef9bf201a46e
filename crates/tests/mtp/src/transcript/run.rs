//! Running an application behind a recording tap, until none of its processes is connected.

#[cfg_attr(unix, path = "run/unix.rs")]
#[cfg_attr(windows, path = "run/windows.rs")]
mod system;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use runtap_transcript::{Header, Journal, JournalTotals};
use runtap_transport::naming::port_address;
use thiserror::Error;

pub use self::system::Signals;
use self::system::{number, prefix, wait, without_prefix};
use super::protocol::{PIPE_OPTION, mode_of};
use super::tally::Tally;
use super::tap::{Server, Tap, socket_path};

/// The time in which processes that the application has started may still send messages after it has exited.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);

/// An error that prevents a recording.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// No program was given.
    #[error("no application was given")]
    Empty,
    /// The option for the server's socket has no path.
    #[error("{PIPE_OPTION} has no value")]
    NoPipe,
    /// The socket for the application can't be created.
    #[error("can't listen for the application: {0}")]
    Listen(#[source] io::Error),
    /// The program can't be started.
    #[error("can't start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// The program can't be waited for.
    #[error(transparent)]
    Wait(io::Error),
}

/// An application and its arguments.
#[derive(Debug, Clone)]
pub struct Application {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// Whether the application's standard output goes to standard error, because standard output carries runtap's result.
    pub stdout_on_stderr: bool,
}

/// The result of a recorded run.
#[derive(Debug)]
pub struct ApplicationOutcome {
    /// The exit status of the application.
    pub status: ExitStatus,
    /// The amount of data recorded.
    pub totals: JournalTotals,
    /// The test results that it reported, if the recorder was the server.
    pub tally: Option<Tally>,
}

/// Creates the header of a recording of an application by this program.
pub fn recorder_header(words: &[OsString], server: &Server, started: String, recorder: &str) -> Header {
    let words = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut header = Header { cmd: Some(words), ..Header::default() };
    header.more.insert("started".to_owned(), started.into());
    header.more.insert("recorder".to_owned(), recorder.into());
    let role = match server {
        Server::At(path) => {
            header.more.insert("server".to_owned(), path.display().to_string().into());
            "recorder"
        }
        Server::Ourselves(_) => "server",
    };
    header.role = Some(role.to_owned());
    header
}

impl Application {
    /// Returns the application's server: the one that its arguments name, or else the recorder.
    ///
    /// # Errors
    /// Fails if the option for the server's socket has no path.
    pub fn server(&self) -> Result<Server, Error> {
        match pipe_argument(&self.words) {
            Some(PathPosition::Next(at)) => {
                self.words.get(at).map(|name| Server::At(socket_path(name))).ok_or(Error::NoPipe)
            }
            Some(PathPosition::Here(at, length)) => {
                let word = self.words.get(at).map(OsString::as_os_str).unwrap_or_default();
                Ok(Server::At(socket_path(&without_prefix(word, length))))
            }
            None => {
                let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
                Ok(Server::Ourselves(mode_of(words.iter().map(|word| &**word))))
            }
        }
    }

    /// Returns the command line with the recorder's socket.
    fn with_socket(&self, socket: &Path) -> Vec<OsString> {
        let (mut words, socket) = (self.words.clone(), port_address(socket));
        match pipe_argument(&words) {
            Some(PathPosition::Next(at)) => {
                if let Some(word) = words.get_mut(at) {
                    *word = socket.into();
                }
            }
            Some(PathPosition::Here(at, length)) => {
                if let Some(word) = words.get_mut(at) {
                    *word = prefix(word, length);
                    word.push(socket);
                }
            }
            None => words.extend(
                [OsStr::new("--server"), "dotnettestcli".as_ref(), PIPE_OPTION.as_ref(), socket.as_ref()]
                    .map(OsStr::to_owned),
            ),
        }
        words
    }
}

/// The position of the path of the server's socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathPosition {
    /// The word with this index.
    Next(usize),
    /// The remainder of the word with this index, after this number of bytes.
    Here(usize, usize),
}

/// Finds the path. The platform accepts `--option value`, `--option=value` and `--option:value`.
fn pipe_argument(words: &[OsString]) -> Option<PathPosition> {
    words.iter().enumerate().skip(1).find_map(|(at, word)| {
        match word.as_encoded_bytes().strip_prefix(PIPE_OPTION.as_bytes())? {
            [] => Some(PathPosition::Next(at + 1)),
            [b'=' | b':', ..] => Some(PathPosition::Here(at, PIPE_OPTION.len() + 1)),
            _ => None,
        }
    })
}

/// Runs the application with a tap in front of it, until it has exited.
///
/// # Errors
/// Fails if the socket can't be created or the application can't be started. Only the header was recorded then.
pub fn run(
    application: &Application,
    journal: &Arc<Journal>,
    signals: &Signals,
) -> Result<ApplicationOutcome, Error> {
    let server = application.server()?;
    let is_server = matches!(server, Server::Ourselves(_));
    // Listen first, because a program that finds no socket retries forever.
    let tap = Tap::listen(server, journal).map_err(Error::Listen)?;
    let words = application.with_socket(tap.path());
    let [program, arguments @ ..] = &words[..] else { return Err(Error::Empty) };
    let mut command = Command::new(program);
    command.args(arguments);
    command.stdout(if application.stdout_on_stderr { io::stderr().into() } else { Stdio::inherit() });
    if is_server {
        // Disable the telemetry of the platform.
        command.env("DOTNET_CLI_TELEMETRY_OPTOUT", "1").env("TESTINGPLATFORM_TELEMETRY_OPTOUT", "1");
    }
    let name = || program.to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|source| Error::Start { program: name(), source })?;
    let status = wait(&mut child, signals).map_err(Error::Wait)?;
    let code = status.code();
    let tally = tap.close(Instant::now() + LINGER_TIMEOUT, code);
    journal.end(number(status));
    Ok(ApplicationOutcome { status, totals: journal.totals(), tally })
}

#[cfg(test)]
mod tests {
    use runtap_mtp_proto::server::Mode;

    use super::*;

    fn application(words: &str) -> Application {
        Application { words: words.split(' ').map(OsString::from).collect(), stdout_on_stderr: false }
    }

    fn with_socket(words: &str) -> String {
        let words = application(words).with_socket(Path::new("/o"));
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_servers_socket_is_found_and_replaced() {
        let server = |words: &str| application(words).server().unwrap();
        let at = |path: &str| Server::At(path.into());
        assert_eq!(server("app --server dotnettestcli --dotnet-test-pipe /p"), at("/p"));
        assert_eq!(server("app --dotnet-test-pipe=/p x"), at("/p"));
        assert_eq!(server("app --dotnet-test-pipe:/p x"), at("/p"));
        assert_eq!(with_socket("app --dotnet-test-pipe /p --x y"), "app --dotnet-test-pipe /o --x y");
        assert_eq!(with_socket("app --dotnet-test-pipe=/p x"), "app --dotnet-test-pipe=/o x");
        assert!(matches!(application("app --dotnet-test-pipe").server(), Err(Error::NoPipe)));
    }

    #[test]
    fn without_a_socket_the_recorder_is_the_server() {
        let server = |words: &str| application(words).server().unwrap();
        assert_eq!(server("app --suite core"), Server::Ourselves(Mode::Run));
        assert_eq!(server("app --list-tests"), Server::Ourselves(Mode::Discover));
        assert_eq!(server("app --list-tests --help"), Server::Ourselves(Mode::Help));
        assert_eq!(with_socket("app x"), "app x --server dotnettestcli --dotnet-test-pipe /o");
    }
}
