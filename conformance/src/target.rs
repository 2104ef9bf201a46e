//! The process that receives a request, started anew for each cell.

use std::ffi::OsStr;
use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use runtap_diag::ports::{Port, Runtime};
use runtap_diag::{
    Client, InfoForm, ProcessInfo, Reply, Request, Session, SessionConfig, SessionForm, Timeouts,
};
use runtap_testkit::{Launch, Program as Process, eventually};
use runtap_transport::Endpoint;

use crate::cell::{Cell, NO_PORT, NOT_KNOWN, Stop};
use crate::column::{About, Program, Subject};
use crate::ours::{self, OwnServer, Start};
use crate::recording::Recording;
use crate::room::Room;

/// Guards only against hangs: a busy machine may be slow.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// The file with the standard error of a process.
pub(crate) const STDERR: &str = "stderr";

/// A variable of the target's environment.
pub(crate) const VARIABLE: (&str, &str) = ("RUNTAP_CONFORMANCE", "a = \u{e9}");

#[derive(Debug)]
pub(crate) struct Target<'a> {
    room: &'a Room<'a>,
    body: Body,
    pub(crate) about: About,
    endpoint: Endpoint,
    client: Client,
    /// The port to which the runtime connected, and its connection.
    port: Option<(Port, Runtime)>,
}

#[derive(Debug)]
enum Body {
    Process(Process),
    OwnServer(OwnServer),
}

impl<'a> Target<'a> {
    pub(crate) fn running(room: &'a Room<'a>) -> Result<Self, Stop> {
        let mut target = Self::start(room, None, Start::Running)?;
        target.wait_until_ready();
        Ok(target)
    }

    /// Starts a process that waits until it is resumed over its own socket. (.NET Core 3.1 does not wait.)
    pub(crate) fn suspended_on_socket(room: &'a Room<'a>) -> Result<Self, Stop> {
        Self::start(room, Some(("DOTNET_DefaultDiagnosticPortSuspend", "1".as_ref())), Start::Suspended)
    }

    /// Starts a process that waits until it is resumed over a port of this program.
    pub(crate) fn suspended_on_port(room: &'a Room<'a>) -> Result<Self, Stop> {
        let path = room.file("port");
        let mut port = room.run(async { Port::bind(&path) }).context("listen on a port")?;
        let variable = ("DOTNET_DiagnosticPorts", path.as_os_str());
        let mut target = Self::start(room, Some(variable), Start::Port(path.clone()))?;
        target.must_support_ports()?;
        let runtime = room.run_limited(port.accept()).context("it does not connect to the port")?;
        target.client = runtime.client().with_timeouts(Timeouts::all(LIMIT));
        target.port = Some((port, runtime));
        Ok(target)
    }

    /// Starts a process with this variable, or runtap's server in this way. Its socket exists on return.
    fn start(room: &'a Room<'a>, variable: Option<(&str, &OsStr)>, ours: Start) -> Result<Self, Stop> {
        let (body, about, endpoint) = match &room.column.subject {
            Subject::Runtime(runtime) => {
                let Program { launch, about } = Program::on(runtime)?;
                let process = spawn(room, launch, variable)?;
                let endpoint = endpoint_of(&process);
                (Body::Process(process), about, endpoint)
            }
            Subject::OwnServer => {
                let socket = room.file("socket");
                let server = OwnServer::start(socket.clone(), ours, &[VARIABLE])?;
                (Body::OwnServer(server), ours::ABOUT, Endpoint::unix(socket))
            }
        };
        let client = Client::new(endpoint.clone()).with_timeouts(Timeouts::all(LIMIT));
        Ok(Self { room, body, about, endpoint, client, port: None })
    }

    /// Returns an error for a runtime without ResumeRuntime: it has no ports, and its program starts at once.
    fn must_support_ports(&mut self) -> Result<(), Stop> {
        // Resumes nothing, since the request does not use the port.
        match self.ask(Request::ResumeRuntime) {
            Err(Stop::Cell(cell)) if cell.is(NOT_KNOWN) => {
                self.wait_until_ready();
                Err(Stop::Cell(Cell::new(NO_PORT)))
            }
            other => other.map(drop),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        match &self.body {
            Body::Process(process) => process.id(),
            Body::OwnServer(_) => std::process::id(),
        }
    }

    /// Returns the process's own socket.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns a client of the port if the process has connected to one, otherwise of its own socket.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the Advertise message of a runtime that has connected to the port.
    pub(crate) fn advertised(&self) -> Option<&Runtime> {
        self.port.as_ref().map(|(_, runtime)| runtime)
    }

    /// Sends one request.
    pub(crate) fn ask(&self, request: Request) -> Result<Reply, Stop> {
        Ok(self.room.run(self.client.request(request))?)
    }

    pub(crate) fn info(&self, form: InfoForm) -> Result<ProcessInfo, Stop> {
        match self.ask(Request::ProcessInfo(form))? {
            Reply::ProcessInfo(info) => Ok(info),
            other => Err(anyhow!("another reply: {other:?}").into()),
        }
    }

    /// Resumes the process, and waits until its program runs.
    pub(crate) fn resume(&mut self) -> Result<(), Stop> {
        self.ask(Request::ResumeRuntime)?;
        self.wait_until_ready();
        Ok(())
    }

    pub(crate) fn wait_until_ready(&mut self) {
        match &mut self.body {
            Body::Process(process) => drop(process.wait_for("ready")),
            Body::OwnServer(ours) => ours.server.wait_until_resumed(),
        }
    }

    fn wait_for(&mut self, line: &str) {
        if let Body::Process(process) = &mut self.body {
            process.wait_for(line);
        }
    }

    /// Makes the program write each of its events at least once.
    pub(crate) fn round(&mut self) {
        match &mut self.body {
            Body::Process(process) => {
                process.begin();
                process.wait_for("done");
            }
            Body::OwnServer(ours) => ours.round(),
        }
    }

    /// Records a session over one round.
    pub(crate) fn record(&mut self, form: SessionForm, config: &SessionConfig) -> Result<Recording, Stop> {
        let session = self.room.run(self.client.start_session_as(form, config))?;
        if self.about.prints_enabled {
            self.wait_for("enabled");
        }
        self.round();
        self.stop(session)
    }

    /// Records a session over the startup of a suspended process and one round.
    pub(crate) fn record_start(
        &mut self,
        form: SessionForm,
        config: &SessionConfig,
    ) -> Result<Recording, Stop> {
        // No byte arrives before the resume.
        let session = self.room.run(self.client.start_session_as(form, config))?;
        self.resume()?;
        self.round();
        self.stop(session)
    }

    fn stop(&self, mut session: Session) -> Result<Recording, Stop> {
        let bytes = self.room.run(async {
            let stopping = session.stop();
            let mut bytes = Vec::new();
            while let Some(chunk) = session.next_chunk().await? {
                bytes.extend_from_slice(&chunk);
            }
            stopping.await.map(|()| bytes)
        });
        Ok(Recording { bytes: bytes? })
    }

    /// Returns an error unless the process still answers, if only with UNKNOWN_COMMAND.
    pub(crate) fn must_answer(&self) -> Result<(), Stop> {
        match self.info(InfoForm::ProcessInfo) {
            Err(Stop::Cell(cell)) if cell.is(NOT_KNOWN) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Returns the requests that runtap's server received; `None` for a real runtime, whose effects can be checked
    /// directly.
    pub(crate) fn requests(&self) -> Option<Vec<String>> {
        match &self.body {
            Body::Process(_) => None,
            Body::OwnServer(ours) => Some(ours.requests()),
        }
    }
}

/// Returns the socket of a process once it accepts connections, shortly after the socket appears.
fn endpoint_of(process: &Process) -> Endpoint {
    eventually("the program's socket", || {
        let endpoint = runtap_discover::process(process.id()).ok()?.endpoint()?;
        endpoint.connect_blocking(LIMIT).is_ok().then_some(endpoint)
    })
}

/// Starts a process whose output files are all in the room's directory. Its standard error is kept separately:
/// createdump prints a lot, mostly irrelevant messages.
fn spawn(room: &Room<'_>, launch: Launch, variable: Option<(&str, &OsStr)>) -> Result<Process, Stop> {
    let launch = launch
        .env("TMPDIR", room.folder())
        .env("DOTNET_PerfMapJitDumpPath", room.folder())
        .env("DEMO_HOOK_OUT", room.file("hook"))
        .env("DEMO_PROFILER_OUT", room.file("profiler"))
        .env(VARIABLE.0, VARIABLE.1);
    let launch = match variable {
        Some((name, value)) => launch.env(name, value),
        None => launch,
    };
    let mut command = launch.command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(room.file(STDERR))?);
    Ok(Process::start(command))
}
