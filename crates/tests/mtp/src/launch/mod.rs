//! One process of a module, from its start to its end: its connections, its output, its time-outs, and its exit.
//!
//! The caller's thread supervises the process. Connections, output and the wait for the exit have their own threads,
//! which send [`Signal`]s.

mod added_results;
mod app_server;
mod backpressure;
mod conclude;
mod concurrent_tests;
mod control;
mod deadlines;
mod dotnet_host;
mod http_requests;
mod isolation;
mod recent_bytes;
mod remaining;
mod running;
mod supervise;
pub(crate) mod translate;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use runtap_mtp_proto::server::Mode;

use self::app_server::{AppEvent, AppServer};
use self::backpressure::BackpressureQueue;
use self::conclude::LaunchResult;
pub(crate) use self::conclude::named;
use self::control::Control;
use self::http_requests::HttpRequests;
use self::remaining::RemainingTests;
use self::supervise::{Process, Supervisor};
use crate::child::Running;
use crate::command::{ApplicationOptions, Start, command};
use crate::event::Totals;
use crate::event::{
    Attempt, LaunchEnd, LaunchId, Level, ModuleFailure, ModuleId, RunEvent, Stream, TestInfo, TestOutcome,
    TestResult,
};
use crate::http::Http;
use crate::listen::{Listener, Transport};
use crate::module::Module;
use crate::output::read_all;
use crate::pipe::Pipe;
use crate::run::{Done, Origin, RunSpec, Timeouts};
use crate::scratch::socket_in;
use crate::stop::{Stop, StopLevel};

/// The parameters of a process to start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchSpec<'a> {
    /// The source of the rules for single tests.
    pub run: &'a RunSpec,
    pub module: &'a Module,
    pub id: ModuleId,
    pub launch: LaunchId,
    pub mode: Mode,
    pub uids: Option<&'a [String]>,
    /// Whether the module may lack some of `uids`.
    pub may_lack_uids: bool,
    /// Explicit tests that are selected beside `uids`. Tests without a result are reported as skipped.
    pub explicit: &'a [TestInfo],
    pub attempt: u32,
    pub origin: Origin,
    /// The names by id of tests that were running when another process exited, or that it did not run.
    pub suspected: &'a BTreeMap<String, String>,
    pub part: (usize, usize),
    pub application: &'a ApplicationOptions,
    pub transport: Transport,
    pub timeouts: Timeouts,
    pub live_output: bool,
    pub scratch: &'a Path,
}

/// A signal of the threads around a process.
#[derive(Debug)]
pub(crate) enum Signal {
    /// Messages were received over a connection.
    Messages(Vec<AppEvent>),
    /// The program wrote output.
    Output(Stream, Vec<u8>),
    /// An output stream ended.
    OutputEnded,
    /// The program exited.
    Exited,
    /// The run is being stopped.
    Stop(StopLevel),
}

/// Starts the process and supervises it until its end.
pub(crate) fn run(spec: &LaunchSpec<'_>, stop: &Stop, emit: &mut dyn FnMut(Vec<RunEvent>)) -> Done {
    let Some(uids) = spec.uids.filter(|uids| uids.iter().any(|uid| !can_be_requested(uid))) else {
        return start(spec, None, stop, emit);
    };
    let (uids, others): (Vec<_>, Vec<_>) = uids.iter().cloned().partition(|uid| can_be_requested(uid));
    let named = others.iter().map(|uid| format!("{uid:?}")).collect::<Vec<_>>().join(", ");
    let text = format!(
        "tests cannot be run individually because their ids are not valid on a command line (they contain a NUL \
         character, or start with '-' or '@'): {named}"
    );
    let spec = LaunchSpec { uids: Some(&uids), ..*spec };
    if spec.attempt > 1 {
        // These tests have failed, and stay failed.
        emit(vec![RunEvent::Message { module: spec.id, level: Level::Warning, text }]);
        return if uids.is_empty() { Done::default() } else { start(&spec, None, stop, emit) };
    }
    let failure = ModuleFailure::NotStarted(text);
    if uids.is_empty() { not_started(&spec, failure, emit) } else { start(&spec, Some(failure), stop, emit) }
}

/// Returns whether the id can be passed on a command line.
fn can_be_requested(uid: &str) -> bool {
    !uid.contains('\0') && !uid.starts_with(['-', '@'])
}

/// Starts the process. `failure` is a failure that is known before the start.
fn start(
    spec: &LaunchSpec<'_>,
    failure: Option<ModuleFailure>,
    stop: &Stop,
    emit: &mut dyn FnMut(Vec<RunEvent>),
) -> Done {
    match start_process(spec, stop) {
        Ok(begun) => {
            let LaunchResult { mut done, mut end, completed, disturbed } =
                begun.supervise(spec, failure, emit);
            let mut continuation = None;
            if let Some(seen) = completed
                && stop.level().is_none()
            {
                let RemainingTests { uids, explicit, names, rows, unknown } =
                    remaining::find(spec, &seen, stop);
                done.rows = rows;
                done.names = names;
                if uids.is_some() {
                    done.explicit = explicit;
                } else {
                    emit(explicit.iter().map(|test| left_out(spec, test)).collect());
                }
                continuation = uids.as_ref().map(|uids| {
                    let tests = if uids.len() == 1 { "1 test" } else { &format!("{} tests", uids.len()) };
                    format!("{tests} that the process did not run will be run in another process")
                });
                done.remaining = uids;
                done.failures.extend(unknown.clone());
                end.failures.extend(unknown);
            }
            if !disturbed.is_empty() {
                done.remaining.get_or_insert_default().extend(disturbed);
            }
            emit(vec![RunEvent::LaunchEnded { module: spec.id, launch: spec.launch, end }]);
            if let Some(text) = continuation {
                emit(vec![RunEvent::Message { module: spec.id, level: Level::Warning, text }]);
            }
            done
        }
        Err(error) => not_started(spec, ModuleFailure::NotStarted(format!("{}: {error}", spec.module)), emit),
    }
}

/// Returns the result of an explicit test that was selected with other tests and therefore not run.
fn left_out(spec: &LaunchSpec<'_>, test: &TestInfo) -> RunEvent {
    let (module, launch) = (spec.id, spec.launch);
    RunEvent::TestEnded { module, launch, result: skipped(test, spec.attempt), so_far: Totals::default() }
}

fn skipped(test: &TestInfo, attempt: u32) -> TestResult {
    TestResult {
        uid: test.uid.clone(),
        name: test.name.clone(),
        attempt,
        execution: Attempt {
            state: TestOutcome::Skipped,
            reason: Some(
                "The test is explicit: it is run only if no other tests are chosen with it.".to_owned(),
            ),
            ..Attempt::default()
        },
        ..TestResult::default()
    }
}

fn not_started(spec: &LaunchSpec<'_>, failure: ModuleFailure, emit: &mut dyn FnMut(Vec<RunEvent>)) -> Done {
    let end = LaunchEnd { failures: vec![failure.clone()], ..LaunchEnd::default() };
    emit(vec![RunEvent::LaunchEnded { module: spec.id, launch: spec.launch, end }]);
    Done { failures: vec![failure], ..Done::default() }
}

/// A started process with its listeners.
struct StartedProcess {
    running: Running,
    listener: Listener,
    control: Option<Control>,
    server: Arc<AppServer>,
    signals: mpsc::Receiver<Signal>,
    queue: BackpressureQueue,
    _stop_listener: crate::stop::ListenerGuard,
    started: Instant,
}

fn start_process(spec: &LaunchSpec<'_>, stop: &Stop) -> io::Result<StartedProcess> {
    let (send, signals) = mpsc::channel();
    let queue = BackpressureQueue::new(send);
    let name = |suffix: &str| format!("{}{suffix}", spec.launch.0);
    let socket = |suffix: &str| socket_in(spec.scratch, &name(suffix));
    // Before the program starts: a program that finds no socket retries forever.
    let control = match spec.transport {
        Transport::Pipe => Some(Control::listen(socket("c"))?),
        // The platform does not use a control pipe with HTTP.
        Transport::Http => None,
    };
    let server = AppServer::new(spec.mode, control.as_ref().map(Control::path), spec.attempt);
    // A listing produces no files that a run does not.
    let keeper = spec.run.keeper.clone().filter(|_| spec.mode == Mode::Run);
    let server = Arc::new(server.with_keeper(keeper, spec.id));
    let (serving, server_queue) = (Arc::clone(&server), queue.clone());
    let listener = match spec.transport {
        Transport::Pipe => {
            Listener::Pipe(Pipe::listen(socket(""), move |_, stream| serving.serve(&stream, &server_queue))?)
        }
        Transport::Http => {
            let largest = u64::from(server.largest_frame()) + 4;
            let (file, budget) = (spec.scratch.join(name("t")), server.budget().clone());
            Listener::Http(Http::listen(file, largest, budget, HttpRequests::new(serving, server_queue))?)
        }
    };
    let explicit = spec.explicit.iter().map(|test| &test.uid).filter(|uid| can_be_requested(uid));
    let uids: Option<Vec<_>> = spec.uids.map(|uids| uids.iter().chain(explicit).cloned().collect());
    let start = Start {
        module: spec.module,
        mode: spec.mode,
        uids: uids.as_deref(),
        attempt: spec.attempt,
        listener: &listener.arguments(),
        scratch: spec.scratch,
    };
    let (mut command, mark) = command(spec.application, &start)?;
    let started = Instant::now();
    let running = Running::start(&mut command, mark, &spec.run.process_keeper)?.supervised_by(|running| {
        let (stdout, stderr) = running.outputs();
        if let Some(stdout) = stdout {
            listen_to(stdout, Stream::Stdout, &queue)?;
        }
        if let Some(stderr) = stderr {
            listen_to(stderr, Stream::Stderr, &queue)?;
        }
        let ended = queue.clone();
        running.on_end(move || ended.send_now(Signal::Exited)).map(drop)
    })?;
    let stopped = queue.clone();
    let stop_listener = stop.listen(move |level| stopped.send_now(Signal::Stop(level)));
    Ok(StartedProcess {
        running,
        listener,
        control,
        server,
        signals,
        queue,
        _stop_listener: stop_listener,
        started,
    })
}

fn listen_to(
    from: impl io::Read + Send + 'static,
    stream: Stream,
    queue: &BackpressureQueue,
) -> io::Result<()> {
    let queue = queue.clone();
    thread::Builder::new().name("mtp-output".into()).spawn(move || {
        read_all(from, |bytes| {
            queue.send_or_drop(Signal::Output(stream, bytes.to_vec()));
        });
        queue.send_now(Signal::OutputEnded);
    })?;
    Ok(())
}

impl StartedProcess {
    fn supervise(
        self,
        spec: &LaunchSpec<'_>,
        failure: Option<ModuleFailure>,
        emit: &mut dyn FnMut(Vec<RunEvent>),
    ) -> LaunchResult {
        let Self { running, listener, control, server, signals, queue, started, .. } = self;
        let process = Process { running, listener, control, server, queue, started };
        let mut supervisor = Supervisor::new(spec, process, emit);
        if let Some(failure) = failure {
            supervisor.fail(failure);
        }
        supervisor.run(&signals)
    }
}
