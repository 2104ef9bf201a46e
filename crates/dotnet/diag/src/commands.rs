//! Commands that change the target or make it write files: dumps, profilers, variables, perf maps and startup hooks.
//! Each checks the target first: [`crate::preflight`].

use std::time::{Duration, SystemTime};

use runtap_diag_proto::{
    AttachProfiler, CoreDump, DumpForm, Hresult, PerfMapType, Reply, Request, StartupProfiler,
};
use tokio::time::{Instant, sleep};

use crate::Error;
use crate::client::{Client, unexpected};
use crate::exchange::{Exchange, wrong_reply};
use crate::preflight::{self, Target};

/// The time between retries while a runtime has not reached its wait at startup.
const RETRY_DELAY: Duration = Duration::from_millis(10);

/// A written core dump.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenDump {
    /// The command that the runtime supports.
    pub form: DumpForm,
    /// The size of the file in bytes. `None` if unknown: the path contains a `%`, which the runtime replaces, or the process
    /// behind the connection is not visible.
    pub bytes: Option<u64>,
}

impl Client {
    /// Makes the runtime write a core dump, and checks that the file exists: runtimes sometimes report success without
    /// writing one. Uses the newest command that the runtime supports. The process is paused meanwhile. `createdump` reports
    /// its progress on the target's standard output: **if that is a pipe without a reader, it blocks forever.** Limited by
    /// [`Timeouts::dump`](crate::Timeouts::dump).
    ///
    /// # Errors
    /// [`Error::Objection`], before anything is sent: the target could not start `createdump` and would lose its socket;
    /// the path is not absolute, or its directory does not exist for the target; or the runtime is suspended at startup and
    /// can only write full dumps. [`Error::NoDump`] if the runtime reports success but the file does not exist.
    /// [`Error::Invalid`] for flags that only a newer runtime supports.
    pub async fn dump(&self, dump: &CoreDump) -> Result<WrittenDump, Error> {
        self.dump_with_notice(dump, || {}).await
    }

    /// Like [`dump`](Self::dump), but calls `asked` after the checks have passed and the request was sent, once for each
    /// command that is tried: from then on the target writes the dump, even if this future is dropped.
    ///
    /// # Errors
    /// The errors of [`dump`](Self::dump).
    pub async fn dump_with_notice(
        &self,
        dump: &CoreDump,
        mut asked: impl FnMut(),
    ) -> Result<WrittenDump, Error> {
        for form in DumpForm::NEWEST_FIRST {
            let request = Request::GenerateCoreDump { form, dump: dump.clone() };
            let mut exchange = self.connect_checked(request.clone()).await?;
            let file = DumpFile::of(&exchange, dump);
            let before = file.as_ref().and_then(DumpFile::state);
            exchange.begin().await?;
            asked();
            match exchange.complete(self.timeouts().dump).await.map(|answer| answer.reply) {
                Ok(Reply::Done) => {
                    let Some(file) = file else { return Ok(WrittenDump { form, bytes: None }) };
                    return match file.state() {
                        // The process may have exited, and its view of the files with it.
                        _ if file.is_unreadable() => Ok(WrittenDump { form, bytes: None }),
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

    /// Makes a running process load a profiler, and returns when the profiler is initialized. Limited by
    /// [`Timeouts::load`](crate::Timeouts::load).
    ///
    /// # Errors
    /// [`Error::Refused`] with the profiler's own code if it fails.
    pub async fn attach_profiler(&self, profiler: &AttachProfiler) -> Result<(), Error> {
        self.done(Request::AttachProfiler(profiler.clone())).await
    }

    /// Makes a suspended runtime load a profiler when it is resumed. A running process answers OK and does nothing.
    ///
    /// In its first milliseconds a runtime answers before it reaches its wait at startup. .NET 9 and 10 sometimes reject
    /// this command then; it is sent again, for at most [`Timeouts::reply`](crate::Timeouts::reply).
    ///
    /// # Errors
    /// [`Error::Objection`] if the library does not exist for the target: the program would start without it.
    pub async fn startup_profiler(&self, profiler: &StartupProfiler) -> Result<(), Error> {
        let until = Instant::now() + self.timeouts().reply;
        loop {
            match self.done(Request::StartupProfiler(profiler.clone())).await {
                Err(Error::Refused { reply, .. })
                    if reply.hresult == Hresult::E_INVALIDARG && Instant::now() < until =>
                {
                    sleep(RETRY_DELAY).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Sets a variable in the runtime's copy of the environment, or removes it (`None`). Programs started by the target
    /// inherit it; managed code sees it unless it has read the variable before, and native code does not.
    pub async fn set_environment_variable(&self, name: &str, value: Option<&str>) -> Result<(), Error> {
        let value = value.map(ToOwned::to_owned);
        self.done(Request::SetEnvironmentVariable { name: name.to_owned(), value }).await
    }

    /// Makes the runtime write the addresses of all compiled methods, including earlier ones, to files in the target's
    /// `/tmp`.
    ///
    /// # Errors
    /// [`Error::Objection`] for .NET 8 and 9 while they are suspended at startup: they would crash.
    pub async fn enable_perf_map(&self, kind: PerfMapType) -> Result<(), Error> {
        self.done(Request::EnablePerfMap(kind)).await
    }

    /// Makes the runtime stop writing the addresses.
    pub async fn disable_perf_map(&self) -> Result<(), Error> {
        self.done(Request::DisablePerfMap).await
    }

    /// Makes the runtime load an assembly and call its startup hook: now, which blocks all other diagnostic clients until
    /// it returns, or after the resume. Limited by [`Timeouts::load`](crate::Timeouts::load).
    ///
    /// # Errors
    /// [`Error::Objection`] for a file that the target cannot use as a hook: .NET 9 and later would crash. **A hook that
    /// throws, or whose dependencies are missing, still crashes them.**
    pub async fn apply_startup_hook(&self, path: &str) -> Result<(), Error> {
        self.done(Request::ApplyStartupHook { path: path.to_owned() }).await
    }

    async fn done(&self, request: Request) -> Result<(), Error> {
        match self.request(request.clone()).await {
            Ok(Reply::Done) => Ok(()),
            other => Err(unexpected(other, &request)),
        }
    }

    /// Opens a connection for a request after checking that it would not harm the target. Sends nothing.
    ///
    /// # Errors
    /// [`Error::Objection`] if the request would harm the target.
    pub(crate) async fn connect_checked(&self, request: Request) -> Result<Exchange, Error> {
        if !preflight::concerns(&request) {
            return self.connect(request).await;
        }
        let info = if preflight::depends_on_version(&request) {
            match self.process_info().await {
                Ok(info) => Some(info),
                // .NET Core 3, which supports none of these commands.
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
            preflight::check(target.as_ref().map_err(copy_error), &request, info.as_ref())
        })
        .await;
        match checked {
            Ok(Ok(())) => Ok(exchange),
            Ok(Err(objection)) => Err(Error::Objection { command, objection }),
            Err(failed) => Err(exchange.io(std::io::Error::other(failed))),
        }
    }
}

/// The file of a dump, as the target sees it.
struct DumpFile {
    target: Target,
    path: std::path::PathBuf,
}

impl DumpFile {
    fn of(exchange: &Exchange, dump: &CoreDump) -> Option<Self> {
        if dump.path.contains('%') {
            return None;
        }
        let target = exchange.process().and_then(Target::of).ok()?;
        Some(Self { target, path: (&dump.path).into() })
    }

    /// Returns the file's size and modification time, if it exists.
    fn state(&self) -> Option<(u64, SystemTime)> {
        let metadata = self.target.metadata(&self.path).ok()?;
        metadata.is_file().then(|| Some((metadata.len(), metadata.modified().ok()?))).flatten()
    }

    /// Returns whether the file cannot be inspected, for another reason than that it does not exist.
    fn is_unreadable(&self) -> bool {
        match self.target.metadata(&self.path) {
            Ok(_) => false,
            // After the process has exited, its mount namespace is not reachable.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.target.is_gone(),
            Err(_) => true,
        }
    }
}

fn copy_error(error: &std::io::Error) -> std::io::Error {
    match error.raw_os_error() {
        Some(code) => std::io::Error::from_raw_os_error(code),
        None => error.kind().into(),
    }
}
