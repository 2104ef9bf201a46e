//! A diagnostics server that can be made to misbehave, or to be as old as a given .NET.
//!
//! Its answers are those of `runtap_diag_server`; what is wrong with them is done to the bytes on their way.

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

/// Which connections a [`Fault`] is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum On {
    /// Those with this command.
    Command(Command),
    /// All others.
    Any,
}

/// What is done to a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Never answers, and holds the connection.
    Silent,
    /// Answers only after [`FakeRuntime::release`].
    Late,
    /// Sends the reply message twice, then goes on.
    Twice,
    /// Sends these bytes right behind the reply message, then goes on.
    Garbage(Vec<u8>),
    /// Sends these bytes instead of any answer, and closes.
    Instead(Vec<u8>),
    /// Closes after that many bytes of its answer, a stream among them. 0: closes without an answer.
    CloseAfter(usize),
    /// Sends that many bytes of its answer, then nothing more, and holds the connection.
    StallAfter(usize),
    /// Answers with this error and does not do what it was asked for.
    Refuse(Hresult),
    /// As `Refuse`, and leaves the connection open, as .NET 9 and 10 do after a bad `CollectTracing`.
    RefuseOpen(Hresult),
    /// Answers byte by byte.
    ByteByByte,
}

/// How a [`FakeRuntime`] is to be.
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
    /// Describes another process than this one.
    #[must_use]
    pub fn description(mut self, description: ProcessDescription) -> Self {
        self.description = description;
        self
    }

    /// With these events.
    #[must_use]
    pub fn pipe(mut self, pipe: EventPipe) -> Self {
        self.pipe = pipe;
        self
    }

    /// Carries out these commands: dumps, profilers and so on. Without, it refuses them as a `NativeAOT` runtime does.
    #[must_use]
    pub fn commands(mut self, commands: Arc<dyn Commands>) -> Self {
        self.commands = Some(commands);
        self
    }

    /// Knows the commands of this version of .NET only. Default: .NET 10.
    #[must_use]
    pub fn like(mut self, likeness: Likeness) -> Self {
        self.likeness = likeness;
        self
    }

    /// Misbehaves on these connections.
    #[must_use]
    pub fn fault(mut self, on: On, fault: Fault) -> Self {
        self.faults.insert(on, fault);
        self
    }

    /// Serves one client after the other, as real runtimes do: one that sends nothing blocks all. A session does
    /// not.
    #[must_use]
    pub fn one_at_a_time(mut self) -> Self {
        self.one_at_a_time = true;
        self
    }

    /// Dials this port of a tool too.
    #[must_use]
    pub fn connect_port(mut self, port: ConnectPort) -> Self {
        self.ports.push(port);
        self
    }

    /// Starts it, on a socket in a folder of its own.
    ///
    /// # Panics
    /// When the system does not let it.
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
                    tokio::spawn(proxy.clone().dial(port, number));
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

/// A diagnostics server in this process. Its connections are cut when it is dropped.
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
    /// A well-behaved .NET 10 in this process, which can be changed.
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

    /// A well-behaved .NET 10 in this process.
    pub fn spawn() -> Self {
        Self::builder().spawn()
    }

    /// Where it listens.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The path of its socket.
    ///
    /// # Panics
    /// Never: it has one.
    pub fn path(&self) -> &Path {
        self.endpoint.path().expect("the endpoint is a socket")
    }

    /// Where its events come from.
    pub fn pipe(&self) -> &EventPipe {
        &self.pipe
    }

    /// Whether it waits at its start for a resume over one of its ports.
    pub fn is_suspended(&self) -> bool {
        self.dispatcher.is_suspended()
    }

    /// Changes what is done to connections whose request has not arrived yet, as [`requests`](Self::requests) tells.
    pub fn set_fault(&self, on: On, fault: Option<Fault>) {
        let mut faults = self.state.faults.lock().unwrap_or_else(PoisonError::into_inner);
        match fault {
            Some(fault) => faults.insert(on, fault),
            None => faults.remove(&on),
        };
    }

    /// Lets one connection with [`Fault::Late`] be answered; the next one if none waits yet.
    pub fn release(&self) {
        self.state.released.notify_one();
    }

    /// The commands that came so far, in order, refused ones among them.
    pub fn requests(&self) -> Vec<Command> {
        self.state.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for FakeRuntime {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // An error is a thread that has ended.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
