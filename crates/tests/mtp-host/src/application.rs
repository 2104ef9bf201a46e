//! A whole test application in one call: command line, connection, session, exit code.

use std::env;
use std::fmt::Display;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::diagnostic::{self, CreateLog};
use crate::host::HelpError;
use crate::{Batching, CommandOption, Exit, Host, HostError, Identity, Launch, Mode, Role, Session};

/// What an application is, beside its tests.
#[derive(Debug, Clone)]
pub struct Application {
    identity: Identity,
    options: Vec<CommandOption>,
    batching: Batching,
    create_log: CreateLog,
}

impl Default for Application {
    fn default() -> Self {
        Self::new()
    }
}

impl Application {
    /// This program, without options of its own.
    pub fn new() -> Self {
        Self {
            identity: Identity::this_program(),
            options: Vec::new(),
            batching: Batching::default(),
            create_log: diagnostic::create,
        }
    }

    /// What runs the tests, as servers show it beside the architecture; `native` otherwise.
    #[must_use]
    pub fn framework(mut self, name: impl Into<String>) -> Self {
        self.identity.framework = name.into();
        self
    }

    /// The file that servers show; this program's otherwise.
    #[must_use]
    pub fn module(mut self, path: impl Into<PathBuf>) -> Self {
        self.identity.module = path.into();
        self
    }

    /// One more option. Its values: [`Launch::values`].
    #[must_use]
    pub fn option(mut self, option: CommandOption) -> Self {
        self.options.push(option);
        self
    }

    /// When results are sent.
    #[must_use]
    pub fn batching(mut self, batching: Batching) -> Self {
        self.batching = batching;
        self
    }

    /// How the file of the log (`--diagnostic`) is made; by its path and with the rights of any new file otherwise.
    #[must_use]
    pub fn create_log(mut self, create: CreateLog) -> Self {
        self.create_log = create;
        self
    }

    /// Its own options.
    pub fn options(&self) -> &[CommandOption] {
        &self.options
    }

    /// The `main` of a program that is nothing but a test application: does what the server has asked for on the command line,
    /// and ends with the exit code that the results have earned.
    ///
    /// ```no_run
    /// # use std::process::ExitCode;
    /// fn main() -> ExitCode {
    ///     runtap_mtp_host::Application::new().main(|tests, _| {
    ///         tests.test("math::adds", || assert_eq!(1 + 1, 2))?;
    ///         tests.test("math::parses", || "7".parse::<u8>().map(drop))?;
    ///         tests.skip("math::divides", "not yet")
    ///     })
    /// }
    /// ```
    pub fn main<E: From<HostError> + Display>(
        self,
        body: impl FnOnce(&Session<'_>, &Launch) -> Result<(), E>,
    ) -> ExitCode {
        match Launch::parse(env::args_os().skip(1), &self.options) {
            Ok(Some(launch)) => self.run(&launch, body),
            Ok(None) => {
                let name = self.identity.module.display().to_string();
                say(&format!(
                    "{name} is a test application of Microsoft.Testing.Platform.\n\
                     Run its tests with: runtap test {name}, or dotnet test --test-modules {name}"
                ));
                Exit::USAGE
            }
            Err(error) => {
                say(&error);
                Exit::USAGE
            }
        }
        .into()
    }

    /// Does what a server has asked for. An error is said on standard error.
    pub fn run<E: From<HostError> + Display>(
        &self,
        launch: &Launch,
        body: impl FnOnce(&Session<'_>, &Launch) -> Result<(), E>,
    ) -> Exit {
        match launch.mode {
            Mode::Info => {
                self.info();
                Exit::OK
            }
            Mode::Help => match Host::help(launch, &self.identity, &self.options) {
                Ok(()) => Exit::OK,
                Err(error) => {
                    say(&error);
                    match error {
                        HelpError::Host(error) => error.exit(),
                        HelpError::Launch(_) => Exit::USAGE,
                    }
                }
            },
            Mode::Discover | Mode::Run => match self.connect(launch) {
                Ok(host) => match host.session(|session| body(session, launch)) {
                    Ok(()) => {
                        let exit = host.exit();
                        host.log.information(format_args!("exit code {exit}"));
                        exit
                    }
                    Err(error) => {
                        host.log.problem(&error);
                        say(&error);
                        Exit::ERROR
                    }
                },
                Err(error) => {
                    say(&error);
                    error.exit()
                }
            },
        }
    }

    /// Connects as the test host that the environment says, for those who need the connection beyond one session.
    ///
    /// # Errors
    /// As [`Host::connect`].
    pub fn connect(&self, launch: &Launch) -> Result<Host, HostError> {
        let (identity, role) = (self.identity.clone(), Role::test_host()?);
        Host::connect_with(launch, identity, &role, self.batching, self.create_log)
    }

    /// `--info`: no server is told anything.
    fn info(&self) {
        let Identity { framework, architecture, os, module, .. } = &self.identity;
        let versions = runtap_mtp_proto::Versions::all();
        let mut out = std::io::stdout().lock();
        // Whoever has asked may have stopped reading.
        let _ = writeln!(
            out,
            "Module: {}\nFramework: {framework}\nArchitecture: {architecture}\nOS: {os}\nProtocol: {versions}\n\
             runtap-mtp-host: {}",
            module.display(),
            env!("CARGO_PKG_VERSION"),
        );
    }
}

/// On standard error, which servers show if the application fails.
fn say(what: &impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{what}");
}
