//! Commands that the program carries out itself: dumps, profilers, perf maps, startup hooks and
//! variables.
//!
//! No default implementation affects the process: by default a program answers as a NativeAOT runtime.

use std::fmt;
use std::sync::Arc;

use runtap_diag_proto::{
    AttachProfiler, CoreDump, DumpForm, DumpType, ErrorReply, Hresult, PerfMapType, Request, StartupProfiler,
};

/// The commands that a program can carry out. Each default implementation rejects the command, except for variables,
/// which the server stores.
///
/// The methods are called on separate threads and may block: other clients are served meanwhile. Commands of several
/// clients may run concurrently, up to [`Limits::connections`](crate::Limits::connections). A method that panics has
/// failed (E_FAIL).
///
/// A client chooses the type of a dump (one of four), its flags, the class id and the data of a profiler, and all
/// strings, which are not validated: paths may be relative or empty, or lead anywhere, and names may contain anything
/// except NUL. Together they have less than 64 KiB. The client is a process of the program's own user or of root, who
/// could do the same with a debugger; a program with more rights than its user must not use paths from a client.
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
    /// Writes a core dump of a type from 1 to 4. The error text is sent to clients that support it.
    ///
    /// # Errors
    /// If no dump was written. Default: E_FAIL.
    fn dump(&self, dump: &CoreDump) -> Result<(), ErrorReply> {
        let _ = dump;
        Err(Hresult::E_FAIL.into())
    }

    /// Loads a profiler, and returns when it is ready.
    ///
    /// # Errors
    /// If the profiler was not loaded. Default: NOTSUPPORTED.
    fn attach_profiler(&self, profiler: &AttachProfiler) -> Result<(), Hresult> {
        let _ = profiler;
        Err(Hresult::NOTSUPPORTED)
    }

    /// Loads a profiler at the start of the program, which is suspended.
    ///
    /// # Errors
    /// If the profiler will not be loaded. Default: NOTSUPPORTED.
    fn startup_profiler(&self, profiler: &StartupProfiler) -> Result<(), Hresult> {
        let _ = profiler;
        Err(Hresult::NOTSUPPORTED)
    }

    /// Sets an environment variable, or removes it (`None`). The name may be empty or contain an equals sign. The server
    /// stores accepted changes: [`ServerThread::variable`](crate::ServerThread::variable).
    ///
    /// # Errors
    /// If the variable was not changed. The default accepts all changes.
    fn set_environment_variable(&self, name: &str, value: Option<&str>) -> Result<(), Hresult> {
        let _ = (name, value);
        Ok(())
    }

    /// Starts writing the addresses of compiled methods to files.
    ///
    /// # Errors
    /// If nothing is written. Default: NOTSUPPORTED.
    fn enable_perf_map(&self, kind: PerfMapType) -> Result<(), Hresult> {
        let _ = kind;
        Err(Hresult::NOTSUPPORTED)
    }

    /// Stops writing the addresses.
    ///
    /// # Errors
    /// If writing was not stopped. Default: NOTSUPPORTED.
    fn disable_perf_map(&self) -> Result<(), Hresult> {
        Err(Hresult::NOTSUPPORTED)
    }

    /// Loads an assembly and calls its startup hook. An empty path means that there is nothing to do.
    ///
    /// # Errors
    /// If the hook was not called. Default: NOTSUPPORTED.
    fn apply_startup_hook(&self, path: &str) -> Result<(), Hresult> {
        let _ = path;
        Err(Hresult::NOTSUPPORTED)
    }
}

/// An implementation that rejects all commands.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RejectAll;

impl Commands for RejectAll {}

/// Returns whether [`carry_out`] handles the request.
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

/// Calls the program's implementation of a request on a separate thread.
pub(crate) async fn carry_out(commands: Arc<dyn Commands>, request: Request) -> Result<(), ErrorReply> {
    // An error means a panic, or a runtime that is shutting down.
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

/// Carries out a dump. Error replies to the newest form have a text, those to older forms have none.
fn call_dump(commands: &dyn Commands, form: DumpForm, dump: &CoreDump) -> Result<(), ErrorReply> {
    let outcome =
        if DumpType::ALL.contains(&dump.kind) { commands.dump(dump) } else { Err(Hresult::E_FAIL.into()) };
    outcome.map_err(|ErrorReply { hresult, message }| ErrorReply {
        hresult,
        message: (form == DumpForm::GenerateCoreDump3).then(|| message.unwrap_or_default()),
    })
}
