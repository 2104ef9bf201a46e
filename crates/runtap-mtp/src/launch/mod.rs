//! One process of a module, from its start until nothing of it is left: its connections, its output, its time-outs, its end.
//!
//! The caller's thread supervises; connections, output and the wait for its end have threads of their own, which say what
//! happens ([`Happening`]).

mod control;
mod running;
mod speak;
mod supervise;
mod translate;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Instant;

use self::control::Control;
use self::speak::{Heard, Speaker};
use self::supervise::{Process, Supervisor};
use crate::child::Running;
use crate::command::{ApplicationOptions, Mode, Start, command};
use crate::event::{LaunchEnd, LaunchId, ModuleFailure, ModuleId, RunEvent, Stream};
use crate::module::Module;
use crate::output::read_all;
use crate::pipe::Pipe;
use crate::run::{Done, Timeouts};
use crate::stop::{Stop, StopLevel};

/// What is to be started.
#[derive(Debug)]
pub(crate) struct LaunchSpec<'a> {
    pub module: &'a Module,
    pub id: ModuleId,
    pub launch: LaunchId,
    pub mode: Mode,
    pub uids: Option<&'a [String]>,
    pub attempt: u32,
    pub part: (usize, usize),
    pub application: &'a ApplicationOptions,
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
pub(crate) fn run(spec: &LaunchSpec<'_>, stop: &Stop, emit: &mut dyn FnMut(RunEvent)) -> Done {
    match begin(spec, stop) {
        Ok(begun) => begun.supervise(spec, emit),
        Err(error) => {
            let failure = ModuleFailure::NotStarted(format!("{}: {error}", spec.module));
            let end = LaunchEnd { failures: vec![failure.clone()], ..LaunchEnd::default() };
            emit(RunEvent::LaunchEnded { module: spec.id, launch: spec.launch, end });
            Done { failures: vec![failure], ..Done::default() }
        }
    }
}

/// What there is before the program runs, and after.
struct Begun {
    running: Running,
    pipe: Pipe,
    control: Control,
    speaker: Arc<Speaker>,
    happenings: mpsc::Receiver<Happening>,
    _listening: crate::stop::Listening,
    started: Instant,
}

fn begin(spec: &LaunchSpec<'_>, stop: &Stop) -> io::Result<Begun> {
    let (send, happenings) = mpsc::channel();
    let socket = |suffix: &str| spec.scratch.join(format!("{}{suffix}", spec.launch.0));
    // Before the program: one that finds no socket tries for ever.
    let control = Control::listen(socket("c"))?;
    let speaker = Arc::new(Speaker::new(spec.mode, control.path()));
    let (serving, said) = (Arc::clone(&speaker), send.clone());
    let pipe = Pipe::listen(socket(""), move |_, stream| serving.serve(&stream, &said))?;
    let start = Start {
        module: spec.module,
        mode: spec.mode,
        uids: spec.uids,
        attempt: spec.attempt,
        pipe: pipe.path(),
        scratch: spec.scratch,
    };
    let (mut command, mark) = command(spec.application, &start)?;
    let started = Instant::now();
    let mut running = Running::start(&mut command, mark)?;
    let (stdout, stderr) = running.outputs();
    if let Some(stdout) = stdout {
        listen_to(stdout, Stream::Stdout, &send)?;
    }
    if let Some(stderr) = stderr {
        listen_to(stderr, Stream::Stderr, &send)?;
    }
    let ended = send.clone();
    running.on_end(move || drop(ended.send(Happening::Exited)))?;
    let listening = stop.listen(move |level| drop(send.send(Happening::Stop(level))));
    Ok(Begun { running, pipe, control, speaker, happenings, _listening: listening, started })
}

fn listen_to(
    from: impl io::Read + Send + 'static,
    stream: Stream,
    send: &Sender<Happening>,
) -> io::Result<()> {
    let send = send.clone();
    thread::Builder::new().name("mtp-output".into()).spawn(move || {
        read_all(from, |bytes| drop(send.send(Happening::Printed(stream, bytes.to_vec()))));
        drop(send.send(Happening::PrintedAll));
    })?;
    Ok(())
}

impl Begun {
    fn supervise(self, spec: &LaunchSpec<'_>, emit: &mut dyn FnMut(RunEvent)) -> Done {
        let Self { running, pipe, control, speaker, happenings, started, .. } = self;
        Supervisor::new(spec, Process { running, pipe, control, speaker, started }, emit).run(&happenings)
    }
}
