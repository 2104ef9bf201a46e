//! A diagnostics server that can be made to misbehave, or to act like an old version of .NET. Answers come from
//! `runtap_diag_server`, and faults are applied to the bytes in transit.

mod likeness;
mod proxy;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use runtap_diag_proto::{Command, Hresult};
use runtap_diag_server::{Builder, Commands, ConnectPort, Dispatcher, EventPipe, ProcessDescription};
use runtap_transport::{BindOptions, Endpoint, Listener};
use tempfile::TempDir;
use tokio::sync::{Notify, oneshot};

pub use likeness::Likeness;
use proxy::Proxy;

/// The connections that a [`Fault`] applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum On {
    /// Connections with this command.
    Command(Command),
    /// All other connections.
    Any,
}

/// A fault of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Never answers, and keeps the connection open.
    Silent,
    /// Answers only after [`FakeRuntime::release`].
    Late,
    /// Sends the reply message twice, then continues.
    Twice,
    /// Sends these bytes directly after the reply message, then continues.
    Garbage(Vec<u8>),
    /// Sends these bytes instead of an answer, and closes the connection.
    Instead(Vec<u8>),
    /// Closes the connection after this number of bytes, including those of a stream. 0 closes without an answer.
    CloseAfter(usize),
    /// Sends this number of bytes, then nothing more, and keeps the connection open.
    StallAfter(usize),
    /// Answers with this error without executing the command.
    Refuse(Hresult),
    /// Like `Refuse`, but keeps the connection open, like .NET 9 and 10 after an invalid `CollectTracing`.
    RefuseOpen(Hresult),
    /// Sends the answer byte by byte.
    ByteByByte,
}

/// A builder of a [`FakeRuntime`].
#[derive(Debug)]
pub struct FakeRuntimeBuilder {
    description: ProcessDescription,
    pipe: EventPipe,
    commands: Option<Arc<dyn Commands>>,
    likeness: Likeness,
    faults: HashMap<On, Fault>,
    one_at_a_time: bool,
    ports: Vec<ConnectPort>,
}

impl FakeRuntimeBuilder {
    /// Sets the description of the process.
    #[must_use]
    pub fn description(mut self, description: ProcessDescription) -> Self {
        self.description = description;
        self
    }

    /// Sets the source of events.
    #[must_use]
    pub fn pipe(mut self, pipe: EventPipe) -> Self {
        self.pipe = pipe;
        self
    }

    /// Sets the implementation of dumps, profilers and other commands. Without one, they are rejected like by a
    /// `NativeAOT` runtime.
    #[must_use]
    pub fn commands(mut self, commands: Arc<dyn Commands>) -> Self {
        self.commands = Some(commands);
        self
    }

    /// Supports only the commands of this version of .NET. The default is .NET 10.
    #[must_use]
    pub fn like(mut self, likeness: Likeness) -> Self {
        self.likeness = likeness;
        self
    }

    /// Adds a fault for these connections.
    #[must_use]
    pub fn fault(mut self, on: On, fault: Fault) -> Self {
        self.faults.insert(on, fault);
        self
    }

    /// Serves one client after another, like real runtimes: a client that sends nothing blocks all others. Sessions do
    /// not block.
    #[must_use]
    pub fn one_at_a_time(mut self) -> Self {
        self.one_at_a_time = true;
        self
    }

    /// Also connects to this port of a tool.
    #[must_use]
    pub fn connect_port(mut self, port: ConnectPort) -> Self {
        self.ports.push(port);
        self
    }

    /// Starts the server on a socket in a temporary folder.
    ///
    /// # Panics
    /// If the folder, the socket or the event loop cannot be created.
    pub fn spawn(self) -> FakeRuntime {
        let dir = tempfile::Builder::new().prefix("fake").tempdir().expect("a folder for the socket");
        let path = dir.path().join("s");
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("an event loop");
        let listener = {
            let _context = runtime.enter();
            Listener::bind(&path, BindOptions::default()).expect("a socket")
        };
        let state = Arc::new(State {
            likeness: self.likeness,
            faults: Mutex::new(self.faults),
            requests: Mutex::default(),
            released: Notify::new(),
        });
        let mut builder = Builder::new(self.description).pipe(self.pipe.clone());
        if let Some(commands) = self.commands {
            builder = builder.commands(commands);
        }
        let dispatcher = self.ports.iter().cloned().fold(builder, Builder::connect_port).dispatcher();
        let proxy = Proxy::new(dispatcher.clone(), Arc::clone(&state), self.one_at_a_time);
        let ports = self.ports;
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                for (port, number) in ports.into_iter().zip(1..) {
                    tokio::spawn(proxy.clone().connect(port, number));
                }
                tokio::select! {
                    () = proxy.run(listener) => {}
                    _ = stopped => {}
                }
            });
        });
        let endpoint = Endpoint::unix(path);
        FakeRuntime {
            endpoint,
            pipe: self.pipe,
            dispatcher,
            state,
            stop: Some(stop),
            thread: Some(thread),
            _dir: dir,
        }
    }
}

#[derive(Debug)]
struct State {
    likeness: Likeness,
    faults: Mutex<HashMap<On, Fault>>,
    requests: Mutex<Vec<Command>>,
    released: Notify,
}

impl State {
    fn fault(&self, command: Option<Command>) -> Option<Fault> {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let of_command = command.and_then(|command| faults.get(&On::Command(command)));
        of_command.or_else(|| faults.get(&On::Any)).cloned()
    }
}

/// A diagnostics server in this process. Its connections are closed on drop.
#[derive(Debug)]
pub struct FakeRuntime {
    endpoint: Endpoint,
    pipe: EventPipe,
    dispatcher: Dispatcher,
    state: Arc<State>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _dir: TempDir,
}

impl FakeRuntime {
    /// Creates a builder of a well-behaved .NET 10.
    pub fn builder() -> FakeRuntimeBuilder {
        FakeRuntimeBuilder {
            description: ProcessDescription::of_this_process(),
            pipe: EventPipe::new(),
            commands: None,
            likeness: Likeness::Net10,
            faults: HashMap::new(),
            one_at_a_time: false,
            ports: Vec::new(),
        }
    }

    /// Starts a well-behaved .NET 10.
    pub fn spawn() -> Self {
        Self::builder().spawn()
    }

    /// Returns the address of its socket.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the path of its socket.
    ///
    /// # Panics
    /// Never.
    pub fn path(&self) -> &Path {
        self.endpoint.path().expect("the endpoint is a socket")
    }

    /// Returns the source of its events.
    pub fn pipe(&self) -> &EventPipe {
        &self.pipe
    }

    /// Returns whether it is suspended at startup until it is resumed over one of its ports.
    pub fn is_suspended(&self) -> bool {
        self.dispatcher.is_suspended()
    }

    /// Changes the faults of connections whose requests have not arrived yet; see [`requests`](Self::requests).
    pub fn set_fault(&self, on: On, fault: Option<Fault>) {
        let mut faults = self.state.faults.lock().unwrap_or_else(PoisonError::into_inner);
        match fault {
            Some(fault) => faults.insert(on, fault),
            None => faults.remove(&on),
        };
    }

    /// Answers one connection with [`Fault::Late`], or the next one if none is waiting.
    pub fn release(&self) {
        self.state.released.notify_one();
    }

    /// Returns the commands received so far in order, including rejected ones.
    pub fn requests(&self) -> Vec<Command> {
        self.state.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for FakeRuntime {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // An error means that the thread has ended.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
