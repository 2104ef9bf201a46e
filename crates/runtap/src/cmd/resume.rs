//! `runtap resume`: lets a runtime go on over each port that it waits for, also where the tool is gone that was to do it.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::future;
use std::io;
use std::path::Path;
use std::task::Poll;
use std::time::Duration;

use runtap_diag::ports::{self, Port, Runtime, SuspendPort};
use runtap_diag::{Client, Error};
use runtap_discover::{Process, Startup};
use runtap_record::{Home, Reporter, leave_behind};
use runtap_target::{PortSpec, Role, Subject, TargetSpec};
use runtap_transport::{BindError, Endpoint, in_a_thread, shell};
use rustix::process::geteuid;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

use super::failure::explain;
use super::named_port::tell_exposure;
use super::target::{each, meant, resolve};
use super::trace::guard;
use super::trace::of_guard;
use crate::cli::Resume;
use crate::exit::{self, expected};
use crate::output::Output;
use crate::units::Span;

/// Between two looks at how far a runtime is.
const LOOK: Duration = Duration::from_millis(20);
/// How long a runtime may take from the command to its program before it is looked for other reasons to wait.
const MOMENT: Duration = Duration::from_millis(500);
/// Processes of one user that are told of: anybody may dial in, as often as he likes.
const TOLD: usize = 1000;

pub(super) async fn run(options: &Resume, output: Output) -> anyhow::Result<u8> {
    let target = meant(&options.target)?;
    if let TargetSpec::Port(PortSpec { path, role: Role::Listen }) = &target {
        return listen(path, options.duration, output).await;
    }
    let all = resolve(&target, options.all.all, output).await?;
    let go_on = async |chosen: Subject, output: Output| {
        let_go(&chosen.client).await?;
        match &chosen.process {
            Some(process) => free(process, options.duration, output).await,
            None => Ok(exit::OK),
        }
    };
    each(all, output, go_on).await
}

/// .NET Core 3 can't be suspended, and does not know the command.
async fn let_go(client: &Client) -> anyhow::Result<()> {
    match client.resume().await {
        Err(error) if !error.is_unknown_command() => Err(explain(error)),
        _ => Ok(()),
    }
}

/// Lets everybody go on who dials in on a port of the user's.
async fn listen(path: &Path, limit: Duration, output: Output) -> anyhow::Result<u8> {
    let mut port = Port::bind_for_everybody(path)?;
    tell_exposure(&port, output);
    let (mut freed, mut told) = (false, Told::default());
    port.resume_all(sleep(limit), |runtime, outcome| freed |= told.tell(runtime, &outcome, output)).await;
    if !freed {
        return Err(expected(exit::NO_TARGET, format!("nobody has dialled in on {}", path.display()), None));
    }
    Ok(exit::OK)
}

/// Resumes a process over the ports that it still waits for, and with it all others that wait there: the tool that was
/// to do it is gone.
async fn free(process: &Process, limit: Duration, output: Output) -> anyhow::Result<u8> {
    let pid = process.pid;
    // What is looked at belongs to others, who decide how long that takes.
    let looked = timeout(limit.max(MOMENT), in_a_thread(move || ports::waited_for(pid))).await;
    let Ok(ports) = looked else {
        let hint = "give it more time with --duration".to_owned();
        return Err(expected(exit::FAILED, format!("it takes too long to look at process {pid}"), hint));
    };
    let ports = ports??;
    if !ports.is_empty() && goes_on(pid, limit.min(MOMENT)).await {
        return Ok(exit::OK);
    }
    let (mut taken, mut refused) = (Vec::new(), None);
    for awaited in ports {
        match Taken::over(&awaited) {
            Ok(port) => taken.push((awaited, port)),
            Err(error) => drop(refused.get_or_insert((awaited, error))),
        }
    }
    let (awaited, mut taken): (Vec<_>, Vec<_>) = taken.into_iter().unzip();
    if process.uid == geteuid().as_raw() {
        for taken in &taken {
            tell_exposure(&taken.port, output);
        }
    }
    let began = Instant::now();
    if !taken.is_empty() {
        let others = in_a_thread(move || ports::waiting_for(&awaited));
        listen_for(&mut taken, others, limit, output).await?;
    }
    for Taken { port, home } in taken {
        care_for_their_children(port, home.as_ref(), process.uid, output).await;
    }
    if let Some((awaited, error)) = refused {
        return Err(not_taken_over(pid, &awaited, error).await);
    }
    // Others may have kept us to the end of the time.
    if goes_on(pid, limit.saturating_sub(began.elapsed()).max(MOMENT)).await {
        return Ok(exit::OK);
    }
    let hint = format!("'runtap doctor {pid}' tells what it waits for");
    Err(expected(exit::FAILED, format!("process {pid} still waits at its start"), hint))
}

/// A port of a tool that is gone, on which we listen now.
struct Taken {
    port: Port,
    /// Its folder, where it was one of `trace -- COMMAND`.
    home: Option<Home>,
}

impl Taken {
    fn over(awaited: &SuspendPort) -> Result<Self, BindError> {
        // A tool of ours that was killed has left its socket there. The name tells what it is, the folder whose.
        let home = if awaited.is_in_folder_of_ours() { Home::of(awaited.path()) } else { None };
        let port = awaited.bind(home.is_some())?;
        Ok(Self { port, home })
    }
}

async fn not_taken_over(pid: u32, awaited: &SuspendPort, error: BindError) -> anyhow::Error {
    match error {
        BindError::InUse { .. } => held(pid, awaited.path()).await,
        BindError::Io { path, .. } if awaited.leads_astray() => astray(pid, &path),
        BindError::Io { path, source } if source.kind() == io::ErrorKind::PermissionDenied => {
            no_right(pid, &path)
        }
        error => error.into(),
    }
}

/// What those who go on start waits at the same port. At a port that we had made nobody else is going to listen, so
/// somebody of ours stays; at one of another tool that would be in the way when it comes back.
async fn care_for_their_children(port: Port, home: Option<&Home>, user: u32, output: Output) {
    if home.is_some() {
        let reporter = Reporter::new(move |event| of_guard(event, output));
        leave_behind(port, &BTreeSet::from([user]), Some(&guard()), &reporter).await;
    } else {
        let port = port.path();
        output.note(format_args!(
            ".NET programs that they start wait at {} again; this lets them go on: {}",
            port.display(),
            listen_at(port)
        ));
    }
}

/// Listens in the place of tools that are gone, at all their ports at the same time, until everybody who waits there has
/// been let go on. `others` says who does, in its own time: whoever dials in meanwhile goes on.
async fn listen_for(
    taken: &mut [Taken],
    others: impl Future<Output = io::Result<BTreeSet<(u32, usize)>>>,
    limit: Duration,
    output: Output,
) -> anyhow::Result<()> {
    let (tell_freed, mut freed) = mpsc::unbounded_channel();
    let is_over = watch::Sender::new(false);
    let listening = taken.iter_mut().enumerate().map(|(index, Taken { port, .. })| {
        let (tell_freed, mut is_over) = (tell_freed.clone(), is_over.subscribe());
        async move {
            let mut told = Told::default();
            let until = async move { drop(is_over.wait_for(|is_over| *is_over).await) };
            port.resume_all(until, |runtime, outcome| {
                if told.tell(runtime, &outcome, output)
                    && let Some(pid) = runtime.peer().pid
                {
                    // The receiver lives as long as this.
                    let _ = tell_freed.send((pid, index));
                }
            })
            .await;
        }
    });
    let is_known = Cell::new(false);
    let all_freed = async {
        let mut waiting = others.await?;
        is_known.set(true);
        while !waiting.is_empty() {
            let Some(one) = freed.recv().await else { break };
            waiting.remove(&one);
        }
        Ok(())
    };
    let ending = async {
        // Those who have not come by then have ended, or come from where we can't tell who they are.
        let outcome = timeout(limit, all_freed).await;
        is_over.send_replace(true);
        if !is_known.get() && outcome.is_err() {
            output.note(format_args!(
                "who else waits there is not known: to look at all processes took longer than {} (--duration)",
                Span(limit)
            ));
        }
        outcome.unwrap_or(Ok(()))
    };
    let (outcome, ()) = tokio::join!(ending, all(listening));
    outcome
}

/// Waits for all of them.
async fn all<F: Future<Output = ()>>(futures: impl Iterator<Item = F>) {
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    future::poll_fn(|context| {
        futures.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if futures.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Who was told of: each process once, and of one user only so many.
#[derive(Debug, Default)]
struct Told(BTreeMap<u32, BTreeSet<u64>>);

impl Told {
    /// Says what became of a runtime; whether it goes on.
    fn tell(&mut self, runtime: &Runtime, outcome: &Result<(), Error>, output: Output) -> bool {
        let peer = runtime.peer();
        let pid = peer.pid.map_or_else(|| runtime.process_id(), u64::from);
        let told = self.0.entry(peer.uid).or_default();
        if told.len() < TOLD && told.insert(pid) {
            match outcome {
                Ok(()) => output.note(format_args!("process {pid} goes on")),
                Err(error) => output.warning(format_args!("process {pid} could not be resumed: {error}")),
            }
            if told.len() == TOLD {
                output
                    .note(format_args!("what becomes of further processes of user {} is not told", peer.uid));
            }
        }
        outcome.is_ok()
    }
}

/// Whether the runtime begins with its program within this time.
async fn goes_on(pid: u32, limit: Duration) -> bool {
    let looking = async {
        while runtap_discover::startup(pid) == Startup::Waiting {
            sleep(LOOK).await;
        }
    };
    timeout(limit, looking).await.is_ok()
}

/// The process names a port in a folder, or with a socket, that is not its user's.
fn no_right(pid: u32, path: &Path) -> anyhow::Error {
    expected(
        exit::REFUSED,
        format!(
            "process {pid} waits for the port {}, where its user could make none: whoever started it so has to resume it",
            path.display()
        ),
        format!("if you know that nobody else needs that socket: {}", listen_at(path)),
    )
}

/// The command that listens at a port whose path somebody else has chosen.
fn listen_at(port: &Path) -> String {
    let mut port = port.as_os_str().to_owned();
    port.push(",listen");
    format!("runtap resume --diagnostic-port {}", shell::word(port))
}

/// Another user has a hand in what the port is.
fn astray(pid: u32, path: &Path) -> anyhow::Error {
    expected(
        exit::REFUSED,
        format!(
            "process {pid} waits for the port {}, and a link on the way there belongs to another user, who can lay it elsewhere",
            path.display()
        ),
        "end it, and start it with a port in a folder that only you can write to".to_owned(),
    )
}

/// Somebody listens on the port: it is theirs to resume the process.
async fn held(pid: u32, path: &Path) -> anyhow::Error {
    let stream = Endpoint::unix(path).connect(MOMENT).await;
    let holder = stream.ok().and_then(|stream| stream.peer().ok()?.pid);
    let who = holder.map_or_else(|| "a tool".to_owned(), |holder| format!("process {holder}"));
    expected(
        exit::FAILED,
        format!("process {pid} waits for {who}, which listens on {}", path.display()),
        "let that tool resume it, or end the tool and try again".to_owned(),
    )
}
