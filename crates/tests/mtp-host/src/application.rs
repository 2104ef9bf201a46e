//! A complete test application in one call: command line, connection, session, exit code.

use std::env;
use std::fmt::Display;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::diagnostic::{self, CreateLog};
use crate::host::HelpError;
use crate::{Batching, CommandOption, Exit, Host, HostError, Identity, Launch, Mode, Role, Session};

/// The settings of a test application.
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
    /// Creates an application for this program, without additional options.
    pub fn new() -> Self {
        Self {
            identity: Identity::this_program(),
            options: Vec::new(),
            batching: Batching::default(),
            create_log: diagnostic::create,
        }
    }

    /// Sets the name of the test framework, which servers show beside the architecture. Defaults to `native`.
    #[must_use]
    pub fn framework(mut self, name: impl Into<String>) -> Self {
        self.identity.framework = name.into();
        self
    }

    /// Sets the file that servers show. Defaults to the file of this program.
    #[must_use]
    pub fn module(mut self, path: impl Into<PathBuf>) -> Self {
        self.identity.module = path.into();
        self
    }

    /// Adds a command-line option; [`Launch::values`] returns its values.
    #[must_use]
    pub fn option(mut self, option: CommandOption) -> Self {
        self.options.push(option);
        self
    }

    /// Sets when results are sent.
    #[must_use]
    pub fn batching(mut self, batching: Batching) -> Self {
        self.batching = batching;
        self
    }

    /// Sets the function that creates the log file (`--diagnostic`). The default creates a file with the default
    /// permissions.
    #[must_use]
    pub fn create_log(mut self, create: CreateLog) -> Self {
        self.create_log = create;
        self
    }

    /// Returns the additional options.
    pub fn options(&self) -> &[CommandOption] {
        &self.options
    }

    /// Implements `main` for a program that is only a test application: handles the server's request on the command
    /// line, and returns the exit code for the results.
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
                print_error(&format!(
                    "{name} is a test application of Microsoft.Testing.Platform.\n\
                     Run its tests with: runtap test {name}, or dotnet test --test-modules {name}"
                ));
                Exit::USAGE
            }
            Err(error) => {
                print_error(&error);
                Exit::USAGE
            }
        }
        .into()
    }

    /// Handles the server's request. Errors are printed to standard error.
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
                    print_error(&error);
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
                        print_error(&error);
                        Exit::ERROR
                    }
                },
                Err(error) => {
                    print_error(&error);
                    error.exit()
                }
            },
        }
    }

    /// Connects as the test host that the environment specifies, for programs that need the connection beyond one
    /// session.
    ///
    /// # Errors
    /// Fails like [`Host::connect`].
    pub fn connect(&self, launch: &Launch) -> Result<Host, HostError> {
        let (identity, role) = (self.identity.clone(), Role::test_host()?);
        Host::connect_with(launch, identity, &role, self.batching, self.create_log)
    }

    /// Handles `--info` without a server.
    fn info(&self) {
        let Identity { framework, architecture, os, module, .. } = &self.identity;
        let versions = runtap_mtp_proto::Versions::all();
        let mut out = std::io::stdout().lock();
        // The reader may have closed the stream.
        let _ = writeln!(
            out,
            "Module: {}\nFramework: {framework}\nArchitecture: {architecture}\nOS: {os}\nProtocol: {versions}\n\
             runtap-mtp-host: {}",
            module.display(),
            env!("CARGO_PKG_VERSION"),
        );
    }
}

/// Prints to standard error, which servers show if the application fails.
fn print_error(text: &impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
