//! `runtap trace`: find the process, or start it; start a session, record the stream, stop, convert.
//!
//! ```text
//!  target: -p, -n      ──┐
//!  relatives: --children ├─► start: a session, then the runtime goes on ─► conductor: all of them at once ─► finish: files
//!  keeper: port, command ┘        (guard: for those who outlive us)           └ one ─ session ─ recorder
//! ```

mod conductor;
mod enter;
mod finish;
mod guard;
mod job;
mod keeper;
mod launch;
mod one;
mod outputs;
mod own_port;
mod raw;
mod recorder;
mod relatives;
mod session;
pub(super) mod signals;
mod start;
mod stopping;
mod summary;
mod threads;
mod user_events;

use std::process::ExitStatus;
use std::sync::Arc;

use runtap_diag::doctor;
use runtap_diag::ports::Port;
use runtap_diag::providers::{Request, RequestError, Requested, Selection};
use runtap_transport::discover::System;
use tokio::sync::mpsc;

use self::conductor::Arrival;
pub(super) use self::guard::{leave_behind, run as guard_port};
use self::job::{Job, Phase};
use self::keeper::Keeper;
pub(super) use self::keeper::described;
use self::launch::{Io, Launched};
pub(super) use self::own_port::Home;
use self::start::Subject;
use self::stopping::Condition;
pub(super) use self::summary::OutputFile;
use super::interrupt::{in_a_thread, unless};
use super::named_port::{self, Place};
use super::target::{Chosen, choose_all};
use crate::cli::{AnyFormat, FileFormat, Recording, Trace};
use crate::exit::{self, expected, usage};
use crate::files::{check_output, format_of};
use crate::output::Output;

pub(super) async fn run(options: Trace, output: Output) -> anyhow::Result<u8> {
    let formats = formats(&options);
    check_output(&formats, options.recording.output.as_deref())?;
    check(&options, &formats)?;
    let request = resolve(&options)?;
    if !options.user_events.user_events.is_empty() {
        tell(&request, output);
        return user_events::run(&options, &request, output).await;
    }
    if options.recording.content.is_given() && formats.iter().all(|format| *format == FileFormat::Nettrace) {
        output.note("--view, --evented, --merge-threads and --compat are for other formats: a nettrace file holds all that is recorded");
    }
    let stopping = Condition::new(&options.stopping)?;
    if let Some(provider) = stopping.as_ref().map(Condition::provider)
        && !request.providers.iter().any(|asked| asked.provider.name == provider)
    {
        output.warning(format_args!(
            "{provider} is not recorded, so that the event that is to stop the recording never comes: add it to --providers"
        ));
    }
    let mut job = Job::new(&options.recording, &formats, &request, output)?;
    (job.children, job.merge) = (options.several.children, options.several.merge);
    job.stopping = stopping;
    job.dial_in = options.dial_in;
    tell(&request, output);
    let launches = !options.command.is_empty();
    let job = opened(job).await.map_err(|error| match exit::code_of(&error) {
        exit::FAILED if launches => ours(error),
        _ => error,
    })?;
    if launches {
        return launch(job, &options).await;
    }
    match options.target.options.diagnostic_port.as_deref().map(named_port::place).transpose()? {
        Some(Place::Listen(path)) => Box::pin(listen(job, Port::bind(path)?)).await,
        // As dotnet-trace has it, unless somebody listens there.
        Some(Place::Either(path)) => match Port::bind(&path) {
            Ok(port) => Box::pin(listen(job, port)).await,
            Err(_in_use) => record_chosen(job, &[Chosen::port(path)]).await,
        },
        Some(Place::Connect(path)) => record_chosen(job, &[Chosen::port(path)]).await,
        None => {
            let chosen = unless(&job.stops, choose_all(&options.target, options.several.all, output)).await?;
            if chosen.len() > 1 {
                check_several(&options)?;
            }
            if job.options.resume_runtime {
                refuse_forsaken(&chosen)?;
            }
            record_chosen(job, &chosen).await
        }
    }
}

fn formats(options: &Trace) -> Vec<FileFormat> {
    let mut formats = options.to.clone();
    if let Some(AnyFormat::File(format)) = options.format {
        formats.push(format);
    }
    if formats.is_empty() {
        formats.push(format_of(options.recording.output.as_deref()).unwrap_or(FileFormat::Nettrace));
    }
    formats
}

/// Options that do not go together, and that clap can't tell.
fn check(options: &Trace, formats: &[FileFormat]) -> anyhow::Result<()> {
    options.recording.content.check(formats).map_err(usage)?;
    if options.several.children {
        check_several(options)?;
    }
    if let Some(format) =
        formats.iter().find(|format| options.several.merge && !format.holds_several_processes())
    {
        return Err(usage(format!(
            "one {} file can't hold several processes: --merge takes every other format, for example --to speedscope",
            format.name()
        )));
    }
    for (given, option) in
        [(options.show_child_io, "--show-child-io"), (options.recording.kill_command, "--kill-command")]
    {
        if given && options.command.is_empty() {
            return Err(usage(format!("{option} is for a command that is started: put it behind '--'")));
        }
    }
    if !options.command.is_empty() && !options.recording.resume_runtime {
        return Err(usage(
            "a launched command waits for us alone: with --resume-runtime false it would wait for ever",
        ));
    }
    Ok(())
}

fn check_several(options: &Trace) -> anyhow::Result<()> {
    let to_stdout = options.recording.output.as_deref().is_some_and(|path| path == "-");
    if to_stdout && !options.several.merge {
        return Err(usage("several recordings can't go to stdout: give -o FILE, or --merge"));
    }
    Ok(())
}

fn resolve(options: &Trace) -> anyhow::Result<Request> {
    let selection = Selection { event_filters: &options.event_filter, ..options.asked.selection() };
    let mut request = Request::resolve(&selection).map_err(|error: RequestError| usage(error.to_string()))?;
    if options.method_names {
        request.add_method_names();
    }
    Ok(request)
}

fn tell(request: &Request, output: Output) {
    for note in &request.notes {
        output.note(note);
    }
    for Requested { provider, by } in &request.providers {
        let (name, level) = (&provider.name, provider.level);
        output.detail(format_args!(
            "{name}  {:#018x}  {level:?}({})  {by}",
            provider.keywords,
            level.number()
        ));
    }
}

/// Records a chosen process; for `demo`.
pub(super) async fn record(
    chosen: &Chosen,
    options: &Recording,
    formats: &[FileFormat],
    request: &Request,
    output: Output,
) -> anyhow::Result<u8> {
    let job = opened(Job::new(options, formats, request, output)?).await?;
    record_chosen(job, std::slice::from_ref(chosen)).await
}

/// Opens the outputs, which for a pipe takes until somebody reads it.
async fn opened(job: Job) -> anyhow::Result<Job> {
    let stops = job.stops.clone();
    let open = in_a_thread(move || job.open_outputs().map(|()| job));
    unless(&stops, open).await?
}

/// A process that waits for a port on which nobody listens goes on over that port alone: until then a recording would be
/// empty, and could not even be stopped.
fn refuse_forsaken(chosen: &[Chosen]) -> anyhow::Result<()> {
    let system = System::current();
    let mut processes = chosen.iter().filter_map(|chosen| chosen.process.as_ref());
    match processes.find_map(|process| Some((process.pid, doctor::forsaken(&system, process.pid)?))) {
        Some((pid, finding)) => {
            Err(expected(exit::REFUSED, format!("process {pid} {}", finding.detail), finding.fix))
        }
        None => Ok(()),
    }
}

/// Records processes that run, and with `--children` all below them.
async fn record_chosen(job: Job, chosen: &[Chosen]) -> anyhow::Result<u8> {
    let job = Arc::new(job);
    enter::listen(&job)?;
    let (tell, arrivals) = mpsc::unbounded_channel();
    if job.children {
        for chosen in chosen {
            let Some(process) = &chosen.process else {
                return Err(usage(
                    "whose children? Give a process, a command, or a port that is listened on",
                ));
            };
            tokio::spawn(relatives::follow(Arc::clone(&job), process.clone(), tell.clone()));
        }
    } else {
        for arrival in begin_all(&job, chosen).await {
            // The receiver is right here.
            let _ = tell.send(arrival);
        }
    }
    drop(tell);
    finish::finish(&job, conductor::record_all(&job, arrivals).await).await
}

/// Starts a session in each, all at the same time. The recording begins when all have: its end is the same for all.
async fn begin_all(job: &Arc<Job>, chosen: &[Chosen]) -> Vec<Arrival> {
    let begin = |chosen: &Chosen| {
        job.begin_one();
        let (job, subject) = (Arc::clone(job), Subject::chosen(chosen));
        tokio::spawn(async move {
            let label = subject.label();
            Arrival { label, started: start::begin(&job, subject).await }
        })
    };
    let beginning: Vec<_> = chosen.iter().map(begin).collect();
    let mut arrivals = Vec::with_capacity(beginning.len());
    for task in beginning {
        // A task of ours is not cancelled, and a panic ends the program.
        arrivals.extend(task.await);
    }
    arrivals
}

/// Waits for runtimes that dial in on a port of the user's.
async fn listen(job: Job, port: Port) -> anyhow::Result<u8> {
    job.output
        .note(format_args!("waiting for a program that is started with {}", keeper::variable(port.path())));
    named_port::tell_exposure(&port, job.output);
    keeper::allow_many_files();
    let job = Arc::new(job);
    enter::listen(&job)?;
    let (code, _no_command) = keep(job, port, None).await;
    code
}

/// Starts a command and records it from its first event on.
async fn launch(mut job: Job, options: &Trace) -> anyhow::Result<u8> {
    let output = job.output;
    job.restore = launch::restore();
    let io = match (options.show_child_io, job.to_stdout() || output.json()) {
        (false, _) => Io::Hidden,
        (true, false) => Io::Shown,
        (true, true) => Io::ShownOnStderr,
    };
    // Dropped after the port, and removed unless a guard has that.
    let (_home, port) = own_port::make().map_err(ours)?;
    let command = Launched::start(&options.command, port.path(), io).map_err(ours)?;
    keeper::allow_many_files();
    let interrupted = job.stops.clone();
    let (code, status) = keep(Arc::new(job), port, Some(command)).await;
    let status = status.ok_or_else(|| anyhow::anyhow!("the command was not waited for")).map_err(ours)?;
    let theirs = launch::exit_code(status);
    match code {
        Err(error) => Err(ours(error)),
        Ok(code) if theirs == 0 && (code == exit::PARTIAL || Some(code) == interrupted.exit_code()) => {
            Ok(code)
        }
        Ok(_) => {
            if theirs != 0 && io == Io::Hidden && !options.recording.kill_command {
                output.note(format_args!(
                    "the command ended with {theirs}; --show-child-io shows what it says"
                ));
            }
            Ok(theirs)
        }
    }
}

/// A failure of ours where the exit code is otherwise the command's. What it says stays.
#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
fn ours(error: anyhow::Error) -> anyhow::Error {
    let hint = exit::hint_of(&error);
    expected(exit::OURS, format!("{error:#}"), hint)
}

/// Records who dials in, makes the files, and keeps port and command until all is over: our exit code and the end of
/// the command.
async fn keep(
    job: Arc<Job>,
    port: Port,
    command: Option<Launched>,
) -> (anyhow::Result<u8>, Option<ExitStatus>) {
    let (tell, arrivals) = mpsc::unbounded_channel();
    let keeper = Keeper::new(&job, port, command, tell);
    let work = async {
        let gathered = conductor::record_all(&job, arrivals).await;
        let code = finish::finish(&job, gathered).await;
        job.enter(Phase::Finished);
        code
    };
    let (status, code) = tokio::join!(keeper.run(), work);
    (code, status.and_then(Result::ok))
}
