//! What a program does itself when a client asks for more than events: dumps, profilers, perf maps, startup hooks and
//! variables. Owns the trait and the way from a request to it.
//!
//! Nothing of this has a default that does something to the process: a program that implements nothing answers as a NativeAOT runtime.

use std::fmt;
use std::sync::Arc;

use runtap_diag_proto::{
    AttachProfiler, CoreDump, DumpForm, DumpType, ErrorReply, Hresult, PerfMapType, Request, StartupProfiler,
};

/// The commands that a program can carry out. Each refuses unless it is overridden, but for variables, which the server
/// remembers by itself.
///
/// They are called on threads of their own, so they may take their time: other clients are served meanwhile, and
/// commands of other clients may come at the same time, as many as [`Limits::connections`](crate::Limits::connections)
/// allows. One that panics has failed (E_FAIL).
///
/// A client chooses the type of a dump out of four, its flags, the class id and the data of a profiler, and every string,
/// which comes as it is: paths may be relative, be empty, or lead anywhere, and names may hold anything but a NUL. All of
/// them together have less than 64 KiB. It is a process of our own user or of root, who could do the same with a debugger;
/// a program that has more rights than its user must not take paths from it.
///
/// ```
/// use runtap_diag_server::{Commands, Hresult};
///
/// #[derive(Debug)]
/// struct Demo;
///
/// impl Commands for Demo {
///     fn set_environment_variable(&self, name: &str, value: Option<&str>) -> Result<(), Hresult> {
///         println!("{name} = {value:?}");
///         Ok(())
///     }
/// }
/// ```
pub trait Commands: fmt::Debug + Send + Sync + 'static {
    /// Write a core dump, of a type from 1 to 4. The text of an error goes to clients that can read one.
    ///
    /// # Errors
    /// Why there is none. Default: E_FAIL.
    fn dump(&self, dump: &CoreDump) -> Result<(), ErrorReply> {
        let _ = dump;
        Err(Hresult::E_FAIL.into())
    }

    /// Load a profiler, and come back when it is ready.
    ///
    /// # Errors
    /// Why it is not loaded. Default: NOTSUPPORTED.
    fn attach_profiler(&self, profiler: &AttachProfiler) -> Result<(), Hresult> {
        let _ = profiler;
        Err(Hresult::NOTSUPPORTED)
    }

    /// Load a profiler at the start of the program, which waits.
    ///
    /// # Errors
    /// Why it will not be loaded. Default: NOTSUPPORTED.
    fn startup_profiler(&self, profiler: &StartupProfiler) -> Result<(), Hresult> {
        let _ = profiler;
        Err(Hresult::NOTSUPPORTED)
    }

    /// Set an environment variable, or remove it (`None`). The name may be empty or hold an equals sign. Whatever is
    /// accepted here the server remembers: [`ServerThread::variable`](crate::ServerThread::variable).
    ///
    /// # Errors
    /// Why it is not changed. Default: it is.
    fn set_environment_variable(&self, name: &str, value: Option<&str>) -> Result<(), Hresult> {
        let _ = (name, value);
        Ok(())
    }

    /// Write the addresses of compiled methods to files.
    ///
    /// # Errors
    /// Why they are not written. Default: NOTSUPPORTED.
    fn enable_perf_map(&self, kind: PerfMapType) -> Result<(), Hresult> {
        let _ = kind;
        Err(Hresult::NOTSUPPORTED)
    }

    /// Write them no more.
    ///
    /// # Errors
    /// Why they are still written. Default: NOTSUPPORTED.
    fn disable_perf_map(&self) -> Result<(), Hresult> {
        Err(Hresult::NOTSUPPORTED)
    }

    /// Load an assembly and call its startup hook. The path may be empty, which means nothing to do.
    ///
    /// # Errors
    /// Why it was not called. Default: NOTSUPPORTED.
    fn apply_startup_hook(&self, path: &str) -> Result<(), Hresult> {
        let _ = path;
        Err(Hresult::NOTSUPPORTED)
    }
}

/// Carries out nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Refuse;

impl Commands for Refuse {}

/// Whether [`carry_out`] knows the request.
pub(crate) fn is_command(request: &Request) -> bool {
    matches!(
        request,
        Request::GenerateCoreDump { .. }
            | Request::AttachProfiler(_)
            | Request::StartupProfiler(_)
            | Request::SetEnvironmentVariable { .. }
            | Request::EnablePerfMap(_)
            | Request::DisablePerfMap
            | Request::ApplyStartupHook { .. }
    )
}

/// Has the program carry out a request, on a thread of its own.
pub(crate) async fn carry_out(commands: Arc<dyn Commands>, request: Request) -> Result<(), ErrorReply> {
    // An error is a panic, or a runtime that is shutting down.
    tokio::task::spawn_blocking(move || call(&*commands, &request))
        .await
        .unwrap_or_else(|_failed| Err(Hresult::E_FAIL.into()))
}

fn call(commands: &dyn Commands, request: &Request) -> Result<(), ErrorReply> {
    let outcome = match request {
        Request::GenerateCoreDump { form, dump } => return call_dump(commands, *form, dump),
        Request::AttachProfiler(profiler) => commands.attach_profiler(profiler),
        Request::StartupProfiler(profiler) => commands.startup_profiler(profiler),
        Request::SetEnvironmentVariable { name, value } => {
            commands.set_environment_variable(name, value.as_deref())
        }
        Request::EnablePerfMap(kind) => commands.enable_perf_map(*kind),
        Request::DisablePerfMap => commands.disable_perf_map(),
        Request::ApplyStartupHook { path } => commands.apply_startup_hook(path),
        _ => Err(Hresult::UNKNOWN_COMMAND),
    };
    outcome.map_err(ErrorReply::from)
}

/// The newest form has a text in every error, the others in none.
fn call_dump(commands: &dyn Commands, form: DumpForm, dump: &CoreDump) -> Result<(), ErrorReply> {
    let outcome =
        if DumpType::ALL.contains(&dump.kind) { commands.dump(dump) } else { Err(Hresult::E_FAIL.into()) };
    outcome.map_err(|ErrorReply { hresult, message }| ErrorReply {
        hresult,
        message: (form == DumpForm::GenerateCoreDump3).then(|| message.unwrap_or_default()),
    })
}
