//! Takes the place of tools that are gone: their ports, the processes that wait there, and the future of their children.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::future;
use std::io;
use std::task::Poll;
use std::time::Duration;

use runtap_diag::ports::{Port, SuspendPort};
use runtap_transport::{BindError, Endpoint};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::free::MOMENT;
use super::{ReportedProcesses, ResumeError, Resumption};
use crate::event::Reporter;
use crate::guard::leave_behind;
use crate::own_port::PortDirectory;

/// A port of a tool that is gone, on which this process listens.
#[derive(Debug)]
pub(super) struct TakenOver {
    port: Port,
    /// The directory of the port, if it was one of a launched command.
    directory: Option<PortDirectory>,
}

impl TakenOver {
    pub(super) fn over(awaited: &SuspendPort) -> Result<Self, BindError> {
        // A killed runtap leaves its socket. The name identifies its type, the directory its owner.
        let directory = if awaited.is_in_own_folder() { PortDirectory::of(awaited.path()) } else { None };
        let port = awaited.bind(directory.is_some())?;
        Ok(Self { port, directory })
    }

    pub(super) fn port(&self) -> &Port {
        &self.port
    }

    /// Handles the children of resumed processes, which will wait at the same port. No other tool will listen on a port that runtap
    /// created, so a guard is started for it; on another tool's port a guard would be in the way when that tool is started again.
    pub(super) async fn care_for_their_children(
        self,
        user: u32,
        guard: Option<&[OsString]>,
        tell: &(impl Fn(Resumption<'_>) + Clone + Send + Sync + 'static),
    ) {
        // The directory is dropped after the port in it.
        let Self { port, directory } = self;
        if directory.is_some() {
            let tell = tell.clone();
            let reporter = Reporter::new(move |event| tell(Resumption::Guard(event)));
            leave_behind(port, &BTreeSet::from([user]), guard, &reporter).await;
        } else {
            tell(Resumption::WaitsAgain(port.path()));
        }
    }
}

/// Determines why a port could not be taken over.
pub(super) async fn not_taken_over(pid: u32, awaited: &SuspendPort, error: BindError) -> ResumeError {
    match error {
        BindError::InUse { .. } => {
            let port = awaited.path().to_owned();
            let stream = Endpoint::unix(&port).connect(MOMENT).await;
            let holder = stream.ok().and_then(|stream| stream.peer().ok()?.pid);
            ResumeError::Held { pid, port, holder }
        }
        BindError::Io { path, .. } if awaited.has_foreign_link() => ResumeError::Astray { pid, port: path },
        BindError::Io { path, source } if source.kind() == io::ErrorKind::PermissionDenied => {
            ResumeError::NoRight { pid, port: path }
        }
        error => error.into(),
    }
}

/// Listens on all ports at the same time until all runtimes that wait there have been resumed. `others` finds those; runtimes that
/// connect meanwhile are resumed.
pub(super) async fn listen_for(
    taken_over: &mut [TakenOver],
    others: impl Future<Output = io::Result<BTreeSet<(u32, usize)>>>,
    limit: Duration,
    tell: &impl Fn(Resumption<'_>),
) -> io::Result<()> {
    let (tell_freed, mut freed) = mpsc::unbounded_channel();
    let is_over = watch::Sender::new(false);
    let listening = taken_over.iter_mut().enumerate().map(|(index, TakenOver { port, .. })| {
        let (tell_freed, mut is_over) = (tell_freed.clone(), is_over.subscribe());
        async move {
            let mut reported = ReportedProcesses::default();
            let until = async move { drop(is_over.wait_for(|is_over| *is_over).await) };
            port.resume_all(until, |runtime, outcome| {
                if reported.add(runtime, &outcome, tell)
                    && let Some(pid) = runtime.peer().pid
                {
                    // The receiver outlives this.
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
        // Those that have not connected by then have exited, or can't be identified.
        let outcome = timeout(limit, all_freed).await;
        is_over.send_replace(true);
        if !is_known.get() && outcome.is_err() {
            tell(Resumption::OthersUnknown(limit));
        }
        outcome.unwrap_or(Ok(()))
    };
    let (outcome, ()) = tokio::join!(ending, all(listening));
    outcome
}

/// Waits for all futures.
async fn all<F: Future<Output = ()>>(futures: impl Iterator<Item = F>) {
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    future::poll_fn(|context| {
        futures.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if futures.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
