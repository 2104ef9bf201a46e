//! One process that is asked, fresh for each cell.

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
use crate::ours::{self, Ours, Start};
use crate::recording::Recording;
use crate::room::Room;

/// Against hangs only: a busy machine may take its time.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// The file with what a process of a room said on its standard error.
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
    /// Where it has dialled in.
    port: Option<(Port, Runtime)>,
}

#[derive(Debug)]
enum Body {
    Process(Process),
    Ours(Ours),
}

impl<'a> Target<'a> {
    pub(crate) fn running(room: &'a Room<'a>) -> Result<Self, Stop> {
        let mut target = Self::start(room, None, Start::Running)?;
        target.wait_until_ready();
        Ok(target)
    }

    /// One that waits until it is resumed over its own socket. (.NET Core 3.1 does not wait.)
    pub(crate) fn on_own_socket(room: &'a Room<'a>) -> Result<Self, Stop> {
        Self::start(room, Some(("DOTNET_DefaultDiagnosticPortSuspend", "1".as_ref())), Start::Suspended)
    }

    /// One that waits until it is resumed over our port.
    pub(crate) fn on_port(room: &'a Room<'a>) -> Result<Self, Stop> {
        let path = room.file("port");
        let mut port = room.run(async { Port::bind(&path) }).context("listen on a port")?;
        let variable = ("DOTNET_DiagnosticPorts", path.as_os_str());
        let mut target = Self::start(room, Some(variable), Start::Port(path.clone()))?;
        target.must_know_ports()?;
        let runtime = room.run_limited(port.accept()).context("it does not dial in")?;
        target.client = runtime.client().with_timeouts(Timeouts::all(LIMIT));
        target.port = Some((port, runtime));
        Ok(target)
    }

    /// A process with this variable, or our own server in this way. Its socket is there.
    fn start(room: &'a Room<'a>, variable: Option<(&str, &OsStr)>, ours: Start) -> Result<Self, Stop> {
        let (body, about, endpoint) = match &room.column.subject {
            Subject::Runtime(runtime) => {
                let Program { launch, about } = Program::on(runtime)?;
                let process = spawn(room, launch, variable)?;
                let endpoint = endpoint_of(&process);
                (Body::Process(process), about, endpoint)
            }
            Subject::Ours => {
                let socket = room.file("socket");
                let server = Ours::start(socket.clone(), ours, &[VARIABLE])?;
                (Body::Ours(server), ours::ABOUT, Endpoint::unix(socket))
            }
        };
        let client = Client::new(endpoint.clone()).with_timeouts(Timeouts::all(LIMIT));
        Ok(Self { room, body, about, endpoint, client, port: None })
    }

    /// A runtime without the command to resume it has no ports: its program starts at once.
    fn must_know_ports(&mut self) -> Result<(), Stop> {
        // Resumes nothing: it does not come over the port.
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
            Body::Ours(_) => std::process::id(),
        }
    }

    /// Its own socket.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Over our port if it has dialled in, else over its own socket.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// What it said when it dialled in.
    pub(crate) fn dialled_in(&self) -> Option<&Runtime> {
        self.port.as_ref().map(|(_, runtime)| runtime)
    }

    /// One request, as it is.
    pub(crate) fn ask(&self, request: Request) -> Result<Reply, Stop> {
        Ok(self.room.run(self.client.request(request))?)
    }

    pub(crate) fn info(&self, form: InfoForm) -> Result<ProcessInfo, Stop> {
        match self.ask(Request::ProcessInfo(form))? {
            Reply::ProcessInfo(info) => Ok(info),
            other => Err(anyhow!("another reply: {other:?}").into()),
        }
    }

    /// Lets it go on, and waits until its program runs.
    pub(crate) fn resume(&mut self) -> Result<(), Stop> {
        self.ask(Request::ResumeRuntime)?;
        self.wait_until_ready();
        Ok(())
    }

    pub(crate) fn wait_until_ready(&mut self) {
        match &mut self.body {
            Body::Process(process) => drop(process.wait_for("ready")),
            Body::Ours(ours) => ours.server.wait_until_resumed(),
        }
    }

    fn wait_for(&mut self, line: &str) {
        if let Body::Process(process) = &mut self.body {
            process.wait_for(line);
        }
    }

    /// Has it write its events, each at least once.
    pub(crate) fn round(&mut self) {
        match &mut self.body {
            Body::Process(process) => {
                process.begin();
                process.wait_for("done");
            }
            Body::Ours(ours) => ours.round(),
        }
    }

    /// A session over one round.
    pub(crate) fn record(&mut self, form: SessionForm, config: &SessionConfig) -> Result<Recording, Stop> {
        let session = self.room.run(self.client.start_session_as(form, config))?;
        if self.about.says_enabled {
            self.wait_for("enabled");
        }
        self.round();
        self.stop(session)
    }

    /// The same of one that is suspended, over its start.
    pub(crate) fn record_start(
        &mut self,
        form: SessionForm,
        config: &SessionConfig,
    ) -> Result<Recording, Stop> {
        // Not a byte comes before the resume.
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

    /// Whether it still answers, if only that it does not know the command.
    pub(crate) fn is_well(&self) -> Result<(), Stop> {
        match self.info(InfoForm::ProcessInfo) {
            Err(Stop::Cell(cell)) if cell.is(NOT_KNOWN) => Ok(()),
            other => other.map(drop),
        }
    }

    /// What our own program was asked for; `None` of a real runtime, whose deeds can be looked at.
    pub(crate) fn asked(&self) -> Option<Vec<String>> {
        match &self.body {
            Body::Process(_) => None,
            Body::Ours(ours) => Some(ours.asked()),
        }
    }
}

/// The socket of a process. It is there a moment before it can be dialled.
fn endpoint_of(process: &Process) -> Endpoint {
    eventually("the program's socket", || {
        let endpoint = runtap_discover::process(process.id()).ok()?.endpoint()?;
        endpoint.connect_blocking(LIMIT).is_ok().then_some(endpoint)
    })
}

/// With everything that it writes in the room's folder. What it complains of is kept apart: createdump is loud, and
/// rarely about anything unexpected.
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
