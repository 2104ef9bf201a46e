//! One process of a module, from its start until nothing of it is left: its connections, its output, its time-outs, its end.
//!
//! The caller's thread supervises; connections, output and the wait for its end have threads of their own, which say what
//! happens ([`Happening`]).

mod apart;
mod conclude;
mod control;
mod deadlines;
mod gate;
mod host;
mod made_up;
mod neighbours;
mod post;
mod rest;
mod running;
mod sent;
mod speak;
mod supervise;
mod translate;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use runtap_mtp_proto::server::Mode;

use self::conclude::Concluded;
pub(crate) use self::conclude::named;
use self::control::Control;
use self::gate::Gate;
use self::post::Posts;
use self::rest::Rest;
use self::speak::{Heard, Speaker};
use self::supervise::{Process, Supervisor};
use crate::child::Running;
use crate::command::{ApplicationOptions, Start, command};
use crate::event::{
    LaunchEnd, LaunchId, ModuleFailure, ModuleId, RunEvent, Severity, State, Stream, TestInfo, TestResult,
};
use crate::http::Http;
use crate::listen::{Listener, Transport};
use crate::module::Module;
use crate::output::read_all;
use crate::pipe::Pipe;
use crate::run::{Done, Origin, RunSpec, Timeouts};
use crate::scratch::socket_in;
use crate::stop::{Stop, StopLevel};
use crate::totals::Totals;

/// What is to be started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchSpec<'a> {
    /// What holds for single tests is asked of it.
    pub run: &'a RunSpec,
    pub module: &'a Module,
    pub id: ModuleId,
    pub launch: LaunchId,
    pub mode: Mode,
    pub uids: Option<&'a [String]>,
    /// Not all of `uids` need to be tests of the module.
    pub may_lack_uids: bool,
    /// Tests that are chosen beside `uids`: those without a result are skipped.
    pub explicit: &'a [TestInfo],
    pub attempt: u32,
    pub origin: Origin,
    /// Names by ids: tests that were running when another process ended, or that it did not come to.
    pub suspected: &'a BTreeMap<String, String>,
    pub part: (usize, usize),
    pub application: &'a ApplicationOptions,
    pub transport: Transport,
    pub timeouts: Timeouts,
    pub live_output: bool,
    pub scratch: &'a Path,
}

/// What the threads around a process say.
#[derive(Debug)]
pub(crate) enum Happening {
    /// Something has come over a connection.
    Heard(Vec<Heard>),
    /// The program has printed something.
    Printed(Stream, Vec<u8>),
    /// One of its streams is at its end.
    PrintedAll,
    /// It has ended.
    Exited,
    /// The run is to be stopped.
    Stop(StopLevel),
}

/// Starts the process and stays with it until its end.
pub(crate) fn run(spec: &LaunchSpec<'_>, stop: &Stop, emit: &mut dyn FnMut(Vec<RunEvent>)) -> Done {
    let Some(uids) = spec.uids.filter(|uids| uids.iter().any(|uid| !can_be_asked_for(uid))) else {
        return start(spec, None, stop, emit);
    };
    let (uids, others): (Vec<_>, Vec<_>) = uids.iter().cloned().partition(|uid| can_be_asked_for(uid));
    let named = others.iter().map(|uid| format!("{uid:?}")).collect::<Vec<_>>().join(", ");
    let text = format!(
        "tests can't be run by themselves, since no command line carries their ids (a NUL character, or '-' or '@' at the \
         beginning, which makes an option or a file of it): {named}"
    );
    let spec = LaunchSpec { uids: Some(&uids), ..*spec };
    if spec.attempt > 1 {
        // They have failed, and that remains.
        emit(vec![RunEvent::Message { module: spec.id, severity: Severity::Warning, text }]);
        return if uids.is_empty() { Done::default() } else { start(&spec, None, stop, emit) };
    }
    let failure = ModuleFailure::NotStarted(text);
    if uids.is_empty() { not_started(&spec, failure, emit) } else { start(&spec, Some(failure), stop, emit) }
}

/// Whether a command line can carry the id.
fn can_be_asked_for(uid: &str) -> bool {
    !uid.contains('\0') && !uid.starts_with(['-', '@'])
}

/// `failure` is known before it begins.
fn start(
    spec: &LaunchSpec<'_>,
    failure: Option<ModuleFailure>,
    stop: &Stop,
    emit: &mut dyn FnMut(Vec<RunEvent>),
) -> Done {
    match begin(spec, stop) {
        Ok(begun) => {
            let Concluded { mut done, mut end, cut_short, disturbed } = begun.supervise(spec, failure, emit);
            let mut goes_on = None;
            if let Some(seen) = cut_short
                && stop.level().is_none()
            {
                let Rest { uids, explicit, names, rows, unknown } = rest::find(spec, &seen, stop);
                done.rows = rows;
                done.names = names;
                if uids.is_some() {
                    done.explicit = explicit;
                } else {
                    emit(explicit.iter().map(|test| left_out(spec, test)).collect());
                }
                goes_on = uids.as_ref().map(|uids| {
                    let tests = if uids.len() == 1 { "1 test" } else { &format!("{} tests", uids.len()) };
                    format!("{tests} that it did not come to will be run in another process")
                });
                done.remaining = uids;
                done.failures.extend(unknown.clone());
                end.failures.extend(unknown);
            }
            if !disturbed.is_empty() {
                done.remaining.get_or_insert_default().extend(disturbed);
            }
            emit(vec![RunEvent::LaunchEnded { module: spec.id, launch: spec.launch, end }]);
            if let Some(text) = goes_on {
                emit(vec![RunEvent::Message { module: spec.id, severity: Severity::Warning, text }]);
            }
            done
        }
        Err(error) => not_started(spec, ModuleFailure::NotStarted(format!("{}: {error}", spec.module)), emit),
    }
}

/// The result of an explicit test that its application was to run beside others, and did not.
fn left_out(spec: &LaunchSpec<'_>, test: &TestInfo) -> RunEvent {
    let (module, launch) = (spec.id, spec.launch);
    RunEvent::TestEnded { module, launch, result: skipped(test, spec.attempt), so_far: Totals::default() }
}

fn skipped(test: &TestInfo, attempt: u32) -> TestResult {
    TestResult {
        uid: test.uid.clone(),
        name: test.name.clone(),
        state: State::Skipped,
        attempt,
        reason: Some("The test is explicit: it is run only if no other tests are chosen with it.".to_owned()),
        ..TestResult::default()
    }
}

fn not_started(spec: &LaunchSpec<'_>, failure: ModuleFailure, emit: &mut dyn FnMut(Vec<RunEvent>)) -> Done {
    let end = LaunchEnd { failures: vec![failure.clone()], ..LaunchEnd::default() };
    emit(vec![RunEvent::LaunchEnded { module: spec.id, launch: spec.launch, end }]);
    Done { failures: vec![failure], ..Done::default() }
}

/// What there is before the program runs, and after.
struct Begun {
    running: Running,
    listener: Listener,
    control: Option<Control>,
    speaker: Arc<Speaker>,
    happenings: mpsc::Receiver<Happening>,
    gate: Gate,
    _listening: crate::stop::Listening,
    started: Instant,
}

fn begin(spec: &LaunchSpec<'_>, stop: &Stop) -> io::Result<Begun> {
    let (send, happenings) = mpsc::channel();
    let gate = Gate::new(send);
    let name = |suffix: &str| format!("{}{suffix}", spec.launch.0);
    let socket = |suffix: &str| socket_in(spec.scratch, &name(suffix));
    // Before the program: one that finds no socket tries for ever.
    let control = match spec.transport {
        Transport::Pipe => Some(Control::listen(socket("c"))?),
        // The platform does not ask for it there.
        Transport::Http => None,
    };
    let speaker = Speaker::new(spec.mode, control.as_ref().map(Control::path), spec.attempt);
    // A list leaves nothing that a run has not.
    let keeper = spec.run.keeper.clone().filter(|_| spec.mode == Mode::Run);
    let speaker = Arc::new(speaker.keeping(keeper, spec.id));
    let (serving, said) = (Arc::clone(&speaker), gate.clone());
    let listener = match spec.transport {
        Transport::Pipe => {
            Listener::Pipe(Pipe::listen(socket(""), move |_, stream| serving.serve(&stream, &said))?)
        }
        Transport::Http => {
            let largest = u64::from(speaker.largest_frame()) + 4;
            let (file, budget) = (spec.scratch.join(name("t")), speaker.budget().clone());
            Listener::Http(Http::listen(file, largest, budget, Posts::new(serving, said))?)
        }
    };
    let explicit = spec.explicit.iter().map(|test| &test.uid).filter(|uid| can_be_asked_for(uid));
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
    let running = Running::start(&mut command, mark, &spec.run.process_keeper)?.attended(|running| {
        let (stdout, stderr) = running.outputs();
        if let Some(stdout) = stdout {
            listen_to(stdout, Stream::Stdout, &gate)?;
        }
        if let Some(stderr) = stderr {
            listen_to(stderr, Stream::Stderr, &gate)?;
        }
        let ended = gate.clone();
        running.on_end(move || ended.say_at_once(Happening::Exited)).map(drop)
    })?;
    let stopped = gate.clone();
    let listening = stop.listen(move |level| stopped.say_at_once(Happening::Stop(level)));
    Ok(Begun { running, listener, control, speaker, happenings, gate, _listening: listening, started })
}

fn listen_to(from: impl io::Read + Send + 'static, stream: Stream, gate: &Gate) -> io::Result<()> {
    let gate = gate.clone();
    thread::Builder::new().name("mtp-output".into()).spawn(move || {
        read_all(from, |bytes| {
            gate.say_or_leave_out(Happening::Printed(stream, bytes.to_vec()));
        });
        gate.say_at_once(Happening::PrintedAll);
    })?;
    Ok(())
}

impl Begun {
    fn supervise(
        self,
        spec: &LaunchSpec<'_>,
        failure: Option<ModuleFailure>,
        emit: &mut dyn FnMut(Vec<RunEvent>),
    ) -> Concluded {
        let Self { running, listener, control, speaker, happenings, gate, started, .. } = self;
        let process = Process { running, listener, control, speaker, gate, started };
        let mut supervisor = Supervisor::new(spec, process, emit);
        if let Some(failure) = failure {
            supervisor.fail(failure);
        }
        supervisor.run(&happenings)
    }
}
