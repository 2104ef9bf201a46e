//! An application that is started with a tap in front of it, from its start until nothing of it is connected.

#[cfg_attr(unix, path = "run/unix.rs")]
#[cfg_attr(windows, path = "run/windows.rs")]
mod system;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use runtap_transcript::{Journal, Totals};
use runtap_transport::naming::port_address;
use thiserror::Error;

pub use self::system::Signals;
use self::system::{behind, number, up_to, wait};
use super::protocol::{PIPE_OPTION, mode_of};
use super::tally::Tally;
use super::tap::{Server, Tap, socket_path};

/// Processes that the application has started may have something left to say when it has ended.
const LINGER: Duration = Duration::from_secs(2);

/// What keeps a recording from beginning.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// No program.
    #[error("no application was given")]
    Empty,
    /// The option for the server's socket, and no path behind it.
    #[error("nothing follows {PIPE_OPTION}")]
    NoPipe,
    /// No socket of ours.
    #[error("can't listen for the application: {0}")]
    Listen(#[source] io::Error),
    /// The program can't be started.
    #[error("can't start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The program can't be waited for.
    #[error(transparent)]
    Wait(io::Error),
}

/// An application and its arguments.
#[derive(Debug, Clone)]
pub struct Application {
    /// Program and arguments.
    pub words: Vec<OsString>,
    /// Stdout carries a result of ours: what the application writes there goes to stderr.
    pub stdout_on_stderr: bool,
}

/// What has become of it.
#[derive(Debug)]
pub struct Outcome {
    /// How it has ended.
    pub status: ExitStatus,
    /// What was written.
    pub totals: Totals,
    /// What it has reported, if we were the server.
    pub tally: Option<Tally>,
}

impl Application {
    /// Who answers it: the server that its arguments name, else we.
    ///
    /// # Errors
    /// The option is there, and no path behind it.
    pub fn server(&self) -> Result<Server, Error> {
        match pipe_argument(&self.words) {
            Some(Given::Next(at)) => {
                self.words.get(at).map(|name| Server::At(socket_path(name))).ok_or(Error::NoPipe)
            }
            Some(Given::Here(at, length)) => {
                let word = self.words.get(at).map(OsString::as_os_str).unwrap_or_default();
                Ok(Server::At(socket_path(&behind(word, length))))
            }
            None => {
                let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
                Ok(Server::Ourselves(mode_of(words.iter().map(|word| &**word))))
            }
        }
    }

    /// The words with our socket in them.
    fn tapped(&self, socket: &Path) -> Vec<OsString> {
        let (mut words, socket) = (self.words.clone(), port_address(socket));
        match pipe_argument(&words) {
            Some(Given::Next(at)) => {
                if let Some(word) = words.get_mut(at) {
                    *word = socket.into();
                }
            }
            Some(Given::Here(at, length)) => {
                if let Some(word) = words.get_mut(at) {
                    *word = up_to(word, length);
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

/// Where the path of the server's socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    /// It is this word.
    Next(usize),
    /// It is in this word, behind so many bytes.
    Here(usize, usize),
}

/// The platform takes `--option value`, `--option=value` and `--option:value`.
fn pipe_argument(words: &[OsString]) -> Option<Given> {
    words.iter().enumerate().skip(1).find_map(|(at, word)| {
        match word.as_encoded_bytes().strip_prefix(PIPE_OPTION.as_bytes())? {
            [] => Some(Given::Next(at + 1)),
            [b'=' | b':', ..] => Some(Given::Here(at, PIPE_OPTION.len() + 1)),
            _ => None,
        }
    })
}

/// Starts the application with a tap in front of it, and stays with it to its end.
///
/// # Errors
/// There is no socket, or the application can't be started: nothing was recorded then but the header.
pub fn run(application: &Application, journal: &Arc<Journal>, signals: &Signals) -> Result<Outcome, Error> {
    let server = application.server()?;
    let are_server = matches!(server, Server::Ourselves(_));
    // Before the program: one that finds no socket tries for ever.
    let tap = Tap::listen(server, journal).map_err(Error::Listen)?;
    let words = application.tapped(tap.path());
    let [program, arguments @ ..] = &words[..] else { return Err(Error::Empty) };
    let mut command = Command::new(program);
    command.args(arguments);
    command.stdout(if application.stdout_on_stderr { io::stderr().into() } else { Stdio::inherit() });
    if are_server {
        // What the platform would send home.
        command.env("DOTNET_CLI_TELEMETRY_OPTOUT", "1").env("TESTINGPLATFORM_TELEMETRY_OPTOUT", "1");
    }
    let name = || program.to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|source| Error::Start { program: name(), source })?;
    let status = wait(&mut child, signals).map_err(Error::Wait)?;
    let code = status.code();
    let tally = tap.close(Instant::now() + LINGER, code);
    journal.end(number(status));
    Ok(Outcome { status, totals: journal.totals(), tally })
}

#[cfg(test)]
mod tests {
    use runtap_mtp_proto::server::Mode;

    use super::*;

    fn application(words: &str) -> Application {
        Application { words: words.split(' ').map(OsString::from).collect(), stdout_on_stderr: false }
    }

    fn tapped(words: &str) -> String {
        let words = application(words).tapped(Path::new("/o"));
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_servers_socket_is_found_and_replaced() {
        let server = |words: &str| application(words).server().unwrap();
        let at = |path: &str| Server::At(path.into());
        assert_eq!(server("app --server dotnettestcli --dotnet-test-pipe /p"), at("/p"));
        assert_eq!(server("app --dotnet-test-pipe=/p x"), at("/p"));
        assert_eq!(server("app --dotnet-test-pipe:/p x"), at("/p"));
        assert_eq!(tapped("app --dotnet-test-pipe /p --x y"), "app --dotnet-test-pipe /o --x y");
        assert_eq!(tapped("app --dotnet-test-pipe=/p x"), "app --dotnet-test-pipe=/o x");
        assert!(matches!(application("app --dotnet-test-pipe").server(), Err(Error::NoPipe)));
    }

    #[test]
    fn without_one_we_are_the_server() {
        let server = |words: &str| application(words).server().unwrap();
        assert_eq!(server("app --suite core"), Server::Ourselves(Mode::Run));
        assert_eq!(server("app --list-tests"), Server::Ourselves(Mode::Discover));
        assert_eq!(server("app --list-tests --help"), Server::Ourselves(Mode::Help));
        assert_eq!(tapped("app x"), "app x --server dotnettestcli --dotnet-test-pipe /o");
    }
}
