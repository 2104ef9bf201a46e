//! Building, running and stopping a server: in the caller's event loop, or on a separate thread.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use runtap_diag_proto::diagnostic_ports;
use runtap_transport::{BindOptions, Listener};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::accept::accept;
use crate::commands::{Commands, RejectAll};
use crate::connect_port::{self, ConnectPort};
use crate::connection::Dispatcher;
use crate::description::ProcessDescription;
use crate::error::StartError;
use crate::limits::Limits;
use crate::notice::{Notice, Notifier};
use crate::pipe::EventPipe;
use crate::startup::Startup;

#[cfg_attr(unix, path = "run/unix.rs")]
#[cfg_attr(windows, path = "run/windows.rs")]
mod native;

/// Builds a server.
#[derive(Debug)]
pub struct Builder {
    description: ProcessDescription,
    pipe: EventPipe,
    commands: Arc<dyn Commands>,
    limits: Limits,
    path: Option<PathBuf>,
    suspend: bool,
    ports: Vec<ConnectPort>,
    notifier: Notifier,
}

impl Builder {
    /// Creates a builder for a process with this description, on the default socket, without events.
    pub fn new(description: ProcessDescription) -> Self {
        Self {
            description,
            pipe: EventPipe::new(),
            commands: Arc::new(RejectAll),
            limits: Limits::default(),
            path: None,
            suspend: false,
            ports: Vec::new(),
            notifier: Notifier::default(),
        }
    }

    /// Sets the source of events.
    #[must_use]
    pub fn pipe(mut self, pipe: EventPipe) -> Self {
        self.pipe = pipe;
        self
    }

    /// Sets the implementation of commands. By default commands are rejected.
    #[must_use]
    pub fn commands(mut self, commands: Arc<dyn Commands>) -> Self {
        self.commands = commands;
        self
    }

    /// Sets a function that receives notices about clients, and about tools to which the server connects. It is called on
    /// the server's thread and must not block.
    #[must_use]
    pub fn on_notice(mut self, handler: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        self.notifier = Notifier::new(handler);
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the path of the socket. The default is `dotnet-diagnostic-{pid}-{start time}-socket` in TMPDIR or
    /// `/tmp`, where tools find it.
    #[must_use]
    pub fn path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Adds a tool's port to connect to. The server connects to all ports concurrently; the program starts when all ports
    /// that suspend it have resumed it.
    #[must_use]
    pub fn connect_port(mut self, port: ConnectPort) -> Self {
        self.ports.push(port);
        self
    }

    /// Adds the ports of a value of `DOTNET_DiagnosticPorts`, parsed as runtimes do: `listen` ports are ignored.
    #[must_use]
    pub fn diagnostic_ports(mut self, value: &OsStr) -> Self {
        let ports = diagnostic_ports::parse(value.as_encoded_bytes()).filter(|port| !port.listen);
        self.ports.extend(
            ports.map(|port| ConnectPort::new(native::path(port.address)).suspend(port.is_waited_for())),
        );
        self
    }

    /// Applies the environment variables of .NET runtimes: connects to the ports of `DOTNET_DiagnosticPorts`, suspends with
    /// `DOTNET_DefaultDiagnosticPortSuspend=1`, and returns `None` with `DOTNET_EnableDiagnostics=0` or
    /// `DOTNET_EnableDiagnostics_IPC=0`, which disable the server. The prefix `COMPlus_` is equivalent to `DOTNET_`.
    pub fn with_environment(self) -> Option<Self> {
        self.with_variables(|name| {
            let named = |prefix: &str| std::env::var_os(format!("{prefix}_{name}"));
            named("DOTNET").or_else(|| named("COMPlus"))
        })
    }

    fn with_variables(mut self, variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let is = |name: &str, value: &str| variable(name).is_some_and(|given| given == value);
        if is("EnableDiagnostics", "0") || is("EnableDiagnostics_IPC", "0") {
            return None;
        }
        self.suspend |= is("DefaultDiagnosticPortSuspend", "1");
        match variable("DiagnosticPorts") {
            Some(ports) => Some(self.diagnostic_ports(&ports)),
            None => Some(self),
        }
    }

    /// Sets whether the program is suspended at startup until it is resumed over its own socket
    /// (`DOTNET_DefaultDiagnosticPortSuspend=1`).
    #[must_use]
    pub fn suspend(mut self, yes: bool) -> Self {
        self.suspend = yes;
        self
    }

    /// Creates a server without a socket: the caller provides the connections, including those of connect ports
    /// ([`Dispatcher::for_port`]).
    pub fn dispatcher(self) -> Dispatcher {
        let startup = Startup::new(self.suspend, self.ports.iter().map(|port| port.suspend));
        Dispatcher::new(self.description, self.pipe, self.commands, self.limits, startup, self.notifier)
    }

    /// Creates the socket. A stale socket of that name is replaced. Requires a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn bind(self) -> Result<DiagnosticServer, StartError> {
        let path = match &self.path {
            Some(path) => path.clone(),
            None => native::default_path().ok_or(StartError::NoStartTime)?,
        };
        let listener = Listener::bind(path, BindOptions::default().replace_stale(true))?;
        let ports = self.ports.clone();
        Ok(DiagnosticServer { listener, dispatcher: self.dispatcher(), ports })
    }

    /// Creates the socket and serves it on a separate thread, until the handle is dropped.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn spawn(self) -> Result<ServerThread, StartError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let server = {
            let _context = runtime.enter();
            self.bind()?
        };
        let path = server.path().to_owned();
        let dispatcher = server.dispatcher().clone();
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("diagnostics".to_owned()).spawn(move || {
            // An error means that the handle was dropped, which also stops the server.
            runtime.block_on(server.run(async { stopped.await.unwrap_or_default() }));
            // A running command is not awaited: it is the program's own code.
            runtime.shutdown_background();
        })?;
        Ok(ServerThread { path, dispatcher, handle, stop: Some(stop), thread: Some(thread) })
    }
}

/// A server with a socket, for the caller's event loop.
#[derive(Debug)]
pub struct DiagnosticServer {
    listener: Listener,
    dispatcher: Dispatcher,
    ports: Vec<ConnectPort>,
}

impl DiagnosticServer {
    /// Returns a builder for a server of this process.
    pub fn builder() -> Builder {
        Builder::new(ProcessDescription::of_this_process())
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        self.listener.path()
    }

    /// Returns the dispatcher, which serves the connections.
    pub fn dispatcher(&self) -> &Dispatcher {
        &self.dispatcher
    }

    /// Serves until `until` completes; then removes the socket and ends every session with its rundown. Readers have
    /// [`Limits::shut_down`] to read the rest.
    pub async fn run(self, until: impl Future<Output = ()>) {
        let Self { listener, dispatcher, ports } = self;
        let mut connecting = JoinSet::new();
        for (port, number) in ports.into_iter().zip(1..) {
            connecting.spawn(connect_port::serve(dispatcher.clone(), port, number));
        }
        let mut connections = JoinSet::new();
        tokio::select! {
            () = until => {}
            () = accept(&listener, &dispatcher, &mut connections) => {}
        }
        drop(listener);
        drop(connecting);
        let patience = dispatcher.limits().shut_down;
        let _ = timeout(patience, async {
            dispatcher.close().await;
            // The clients that sent a stop command wait for its answer.
            while connections.join_next().await.is_some() {}
        })
        .await;
    }
}

/// A server on a separate thread. Dropping it shuts the server down.
#[derive(Debug)]
pub struct ServerThread {
    path: PathBuf,
    dispatcher: Dispatcher,
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ServerThread {
    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the source of events.
    pub fn pipe(&self) -> &EventPipe {
        self.dispatcher.pipe()
    }

    /// Returns an environment variable, including changes by clients: see [`Dispatcher::variable`].
    pub fn variable(&self, name: &str) -> Option<String> {
        self.dispatcher.variable(name)
    }

    /// Waits until every port that suspends the program has resumed it; returns at once if there is none.
    ///
    /// # Panics
    /// In async code.
    pub fn wait_until_resumed(&self) {
        self.handle.block_on(self.dispatcher.resumed());
    }

    /// Returns the dispatcher, which serves the connections.
    pub fn dispatcher(&self) -> &Dispatcher {
        &self.dispatcher
    }

    /// Removes the socket, ends every session with its rundown, and waits for that, at most
    /// [`Limits::shut_down`]. Dropping the handle is equivalent.
    pub fn shut_down(self) {}
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // An error means that the thread has panicked.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_read_as_runtimes_read_it() {
        let with = |variables: &'static [(&str, &str)]| {
            DiagnosticServer::builder().with_variables(|name| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
            })
        };
        let plain = with(&[]).unwrap();
        assert!(!plain.suspend && plain.ports.is_empty());
        let given = with(&[
            ("DefaultDiagnosticPortSuspend", "1"),
            ("DiagnosticPorts", "/a,nosuspend;/b,listen;/c"),
            ("EnableDiagnostics", "1"),
        ]);
        let given = given.unwrap();
        assert!(given.suspend);
        let ports: Vec<_> =
            given.ports.iter().map(|port| (port.path.to_str().unwrap(), port.suspend)).collect();
        assert_eq!(ports, [("/a", false), ("/c", true)]);
        assert!(with(&[("EnableDiagnostics", "0")]).is_none());
        assert!(with(&[("EnableDiagnostics_IPC", "0"), ("DiagnosticPorts", "/a")]).is_none());
    }
}
