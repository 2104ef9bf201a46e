//! The commands that change something in the target or have it write something: dumps, profilers, variables, perf maps
//! and startup hooks. Each looks at the target first: [`crate::preflight`].

use std::time::{Duration, SystemTime};

use runtap_diag_proto::{
    AttachProfiler, CoreDump, DumpForm, Hresult, PerfMapType, Reply, Request, StartupProfiler,
};
use tokio::time::{Instant, sleep};

use crate::Error;
use crate::client::{Client, unexpected};
use crate::exchange::{Exchange, wrong_reply};
use crate::preflight::{self, Target};

/// Before a runtime is asked again that has not come to its wait.
const NOT_WAITING_YET: Duration = Duration::from_millis(10);

/// A core dump that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenDump {
    /// The command that the runtime knows.
    pub form: DumpForm,
    /// Size of the file. `None` if it can't be looked at: its name has a `%`, which the runtime fills in, or the process
    /// behind the connection can't be seen from here.
    pub bytes: Option<u64>,
}

impl Client {
    /// Has the runtime write a core dump, and looks whether it is there: runtimes say OK to some that they do not write.
    /// Asks with the newest command that the runtime knows. The process stands still meanwhile. `createdump` tells its
    /// progress on the target's standard output: **where that is a pipe that nobody reads, it waits for ever.** At most
    /// [`Timeouts::dump`](crate::Timeouts::dump).
    ///
    /// # Errors
    /// [`Error::Objection`], before anything is sent: the target could not start `createdump` and would lose its socket;
    /// the path is not absolute, or its folder is not there for the target; the runtime waits at its start and can
    /// write full dumps only. [`Error::NoDump`] for a dump that was not written though the runtime says so.
    /// [`Error::Invalid`] for flags that only a newer runtime knows.
    pub async fn dump(&self, dump: &CoreDump) -> Result<WrittenDump, Error> {
        self.dump_and_tell(dump, || {}).await
    }

    /// As [`dump`](Self::dump). `asked` is called when nothing speaks against the dump and the request has gone out, once
    /// for each command that is tried: from then on the target writes it, whether we wait for it or not.
    ///
    /// # Errors
    /// As [`dump`](Self::dump) has.
    pub async fn dump_and_tell(
        &self,
        dump: &CoreDump,
        mut asked: impl FnMut(),
    ) -> Result<WrittenDump, Error> {
        for form in DumpForm::NEWEST_FIRST {
            let request = Request::GenerateCoreDump { form, dump: dump.clone() };
            let mut exchange = self.connect_checked(request.clone()).await?;
            let file = File::of(&exchange, dump);
            let before = file.as_ref().and_then(File::state);
            exchange.begin().await?;
            asked();
            match exchange.complete(self.timeouts().dump).await.map(|answer| answer.reply) {
                Ok(Reply::Done) => {
                    let Some(file) = file else { return Ok(WrittenDump { form, bytes: None }) };
                    return match file.state() {
                        // The process may have ended, and its view of the files with it.
                        _ if file.is_out_of_sight() => Ok(WrittenDump { form, bytes: None }),
                        Some(now) if Some(now) != before => Ok(WrittenDump { form, bytes: Some(now.0) }),
                        _ => Err(Error::NoDump { path: dump.path.clone() }),
                    };
                }
                Err(error) if error.is_unknown_command() && form != DumpForm::GenerateCoreDump => {}
                other => return Err(unexpected(other, &request)),
            }
        }
        let form = DumpForm::GenerateCoreDump;
        Err(wrong_reply(&Request::GenerateCoreDump { form, dump: dump.clone() }))
    }

    /// Has a running process load a profiler, and comes back when that is initialised. At most
    /// [`Timeouts::load`](crate::Timeouts::load).
    ///
    /// # Errors
    /// [`Error::Refused`] with the profiler's own code if it refuses.
    pub async fn attach_profiler(&self, profiler: &AttachProfiler) -> Result<(), Error> {
        self.done(Request::AttachProfiler(profiler.clone())).await
    }

    /// Has a suspended runtime load a profiler when it is resumed. A process that runs says OK and does nothing.
    ///
    /// In its first milliseconds a runtime answers already and has not come to the point where it waits. .NET 9 and 10
    /// were seen to refuse this command then; it is sent again, for at most
    /// [`Timeouts::reply`](crate::Timeouts::reply).
    ///
    /// # Errors
    /// [`Error::Objection`] if the library is not there for the target: the program would start without it.
    pub async fn startup_profiler(&self, profiler: &StartupProfiler) -> Result<(), Error> {
        let until = Instant::now() + self.timeouts().reply;
        loop {
            match self.done(Request::StartupProfiler(profiler.clone())).await {
                Err(Error::Refused { reply, .. })
                    if reply.hresult == Hresult::E_INVALIDARG && Instant::now() < until =>
                {
                    sleep(NOT_WAITING_YET).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Sets a variable in the runtime's copy of the environment, or removes it (`None`). Programs started by the target
    /// get it; code in the target sees it unless it is native or has asked before.
    pub async fn set_environment_variable(&self, name: &str, value: Option<&str>) -> Result<(), Error> {
        let value = value.map(ToOwned::to_owned);
        self.done(Request::SetEnvironmentVariable { name: name.to_owned(), value }).await
    }

    /// Has the runtime write the addresses of compiled methods to files in the target's `/tmp`, those of earlier methods
    /// too.
    ///
    /// # Errors
    /// [`Error::Objection`] for .NET 8 and 9 while they wait at startup: they would die.
    pub async fn enable_perf_map(&self, kind: PerfMapType) -> Result<(), Error> {
        self.done(Request::EnablePerfMap(kind)).await
    }

    /// Has it write them no more.
    pub async fn disable_perf_map(&self) -> Result<(), Error> {
        self.done(Request::DisablePerfMap).await
    }

    /// Has the runtime load an assembly and call its startup hook: now, which blocks all other diagnostic clients until
    /// it returns, or after the resume. At most [`Timeouts::load`](crate::Timeouts::load).
    ///
    /// # Errors
    /// [`Error::Objection`] for a file that the target can't use as a hook: .NET 9 and later would die. **A hook that
    /// throws, or misses a library of its own, ends them all the same.**
    pub async fn apply_startup_hook(&self, path: &str) -> Result<(), Error> {
        self.done(Request::ApplyStartupHook { path: path.to_owned() }).await
    }

    async fn done(&self, request: Request) -> Result<(), Error> {
        match self.request(request.clone()).await {
            Ok(Reply::Done) => Ok(()),
            other => Err(unexpected(other, &request)),
        }
    }

    /// A connection for a request that would not harm the target. Nothing was sent on it.
    ///
    /// # Errors
    /// [`Error::Objection`].
    pub(crate) async fn connect_checked(&self, request: Request) -> Result<Exchange, Error> {
        if !preflight::concerns(&request) {
            return self.connect(request).await;
        }
        let info = if preflight::depends_on_version(&request) {
            match self.process_info().await {
                Ok(info) => Some(info),
                // .NET Core 3, which knows none of these commands.
                Err(error) if error.is_unknown_command() => None,
                Err(error) => return Err(error),
            }
        } else {
            None
        };
        let exchange = self.connect(request.clone()).await?;
        let command = request.command();
        let process = exchange.process();
        let checked = tokio::task::spawn_blocking(move || {
            let target = process.and_then(Target::of);
            preflight::check(target.as_ref().map_err(copy), &request, info.as_ref())
        })
        .await;
        match checked {
            Ok(Ok(())) => Ok(exchange),
            Ok(Err(objection)) => Err(Error::Objection { command, objection }),
            Err(failed) => Err(exchange.io(std::io::Error::other(failed))),
        }
    }
}

/// The file that a dump goes into, as the target sees it.
struct File {
    target: Target,
    path: std::path::PathBuf,
}

impl File {
    fn of(exchange: &Exchange, dump: &CoreDump) -> Option<Self> {
        if dump.path.contains('%') {
            return None;
        }
        let target = exchange.process().and_then(Target::of).ok()?;
        Some(Self { target, path: (&dump.path).into() })
    }

    /// Its size and when it was written, if it is there.
    fn state(&self) -> Option<(u64, SystemTime)> {
        let metadata = self.target.metadata(&self.path).ok()?;
        metadata.is_file().then(|| Some((metadata.len(), metadata.modified().ok()?))).flatten()
    }

    /// Whether nothing can be seen there, for another reason than that the file is missing.
    fn is_out_of_sight(&self) -> bool {
        match self.target.metadata(&self.path) {
            Ok(_) => false,
            // Without the process there is no way into its namespace.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.target.is_gone(),
            Err(_) => true,
        }
    }
}

fn copy(error: &std::io::Error) -> std::io::Error {
    match error.raw_os_error() {
        Some(code) => std::io::Error::from_raw_os_error(code),
        None => error.kind().into(),
    }
}
