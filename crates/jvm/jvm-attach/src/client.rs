//! The client: makes a JVM listen, and sends it commands, with a connection for each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use runtap_transport::linux::Location;
use runtap_transport::naming::SocketName;
use runtap_transport::{ConnectFailure, Endpoint, Socket, SocketState};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::codec::{self, Reply, ReplyReader, Request, Version, version_of};
use crate::error::AttachError;
use crate::identity::as_its_user;
use crate::jvm::Jvm;
use crate::private::path_in_target;
use crate::trigger::Trigger;

/// The first and the longest interval between two attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const MAX_PAUSE: Duration = Duration::from_millis(50);
/// The time that a starting JVM has between loading its library and installing its signal handlers.
const STARTUP_TIME: Duration = Duration::from_secs(2);
const READ_SIZE: usize = 16 << 10;

/// The time-outs of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// The time until the JVM listens.
    pub listen: Duration,
    /// The time until a connection is accepted.
    pub connect: Duration,
    /// The time until a reply is complete.
    pub reply: Duration,
    /// The time until the reply to `load` is complete: meanwhile, the agent may redefine thousands of classes.
    pub load: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            listen: Duration::from_secs(10),
            connect: Duration::from_secs(5),
            reply: Duration::from_secs(10),
            load: Duration::from_mins(1),
        }
    }
}

impl Timeouts {
    /// Returns time-outs that are all equal.
    pub fn all(limit: Duration) -> Self {
        Self { listen: limit, connect: limit, reply: limit, load: limit }
    }
}

/// A client of a JVM that listens.
#[derive(Debug)]
pub struct Client {
    jvm: Jvm,
    endpoint: Endpoint,
    timeouts: Timeouts,
}

impl Client {
    /// Makes a JVM listen, unless it already does. Must run in a tokio runtime with I/O and time.
    ///
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// Fails if the JVM does not listen; the process is unharmed.
    pub async fn attach(jvm: Jvm, timeouts: Timeouts) -> Result<Self, AttachError> {
        let client = Self::unconnected(jvm, timeouts)?;
        if client.connect_if_listening().await?.is_none() {
            client.wake().await?;
        }
        Ok(client)
    }

    /// Connects to a JVM that already listens; `None` if it does not. Sends no signal and creates no file. Must run in a
    /// tokio runtime with I/O and time.
    ///
    /// # Errors
    /// Fails if the socket cannot be connected to.
    pub async fn attach_if_listening(jvm: Jvm, timeouts: Timeouts) -> Result<Option<Self>, AttachError> {
        let client = Self::unconnected(jvm, timeouts)?;
        Ok(client.connect_if_listening().await?.map(|_connection| client))
    }

    fn unconnected(jvm: Jvm, timeouts: Timeouts) -> Result<Self, AttachError> {
        let at = Location::Root(format!("/tmp/.java_pid{}", jvm.own_pid()).into());
        // The name has no key to compare: the kernel tells which process listens.
        let name = SocketName::runtime(jvm.own_pid(), jvm.start_time());
        let socket = Socket::of_process(jvm.dir(), at, name, SocketState::Matching);
        let Some(endpoint) = Endpoint::of_process(jvm.pid(), jvm.start_time(), [&socket]) else {
            return Err(AttachError::NoProcess { pid: jvm.pid() });
        };
        let client = Self { jvm, endpoint, timeouts };
        client.jvm.check_alive()?;
        Ok(client)
    }

    /// Returns the process.
    pub fn jvm(&self) -> &Jvm {
        &self.jvm
    }

    /// Sends a request, in the oldest version of the protocol that supports it.
    ///
    /// # Errors
    /// Fails if there is no reply. A reply with a code other than 0 is not an error: see [`Reply`].
    pub async fn request(&self, request: &Request) -> Result<Reply, AttachError> {
        self.request_within(request, self.timeouts.reply).await
    }

    pub(crate) async fn request_within(
        &self,
        request: &Request,
        limit: Duration,
    ) -> Result<Reply, AttachError> {
        if request.version_needed()? == Version::Two {
            let version = self.send(&Request::version(), Version::One, self.timeouts.reply).await?;
            if version_of(&version) == Version::One {
                // Fails with an error that tells which part is too long.
                request.encode(Version::One)?;
            }
        }
        self.send(request, request.version_needed()?, limit).await
    }

    /// Sends a request that must succeed: the reply must have the code 0. Returns its text.
    ///
    /// # Errors
    /// Fails if there is no reply, or if it has another code.
    pub async fn execute(&self, request: &Request) -> Result<Vec<u8>, AttachError> {
        let reply = self.request(request).await?;
        if reply.code == 0 {
            return Ok(reply.text);
        }
        let (command, code, message) = (request.command(), reply.code, reply.message());
        Err(AttachError::Rejected { command, code, message })
    }

    /// Returns the system properties of the JVM.
    ///
    /// # Errors
    /// Fails as [`execute`](Self::execute) does.
    pub async fn properties(&self) -> Result<BTreeMap<String, String>, AttachError> {
        Ok(codec::properties(&self.execute(&Request::properties()).await?))
    }

    /// Loads an agent from an absolute path in the JVM's file system, or passes further options to an agent that is
    /// already loaded from there.
    ///
    /// # Errors
    /// Fails if the agent does not run. Only an agent that supports it can report the reason: see
    /// [`AgentAnswer`](crate::AgentAnswer).
    pub async fn load(&self, library: &Path, options: &str) -> Result<(), AttachError> {
        let reply = self.request_within(&Request::load(library, options), self.timeouts.load).await?;
        Ok(codec::loaded(&reply)?)
    }

    /// Returns the paths of loaded libraries whose names start with `name`, both [placed](crate::PlacedLibrary) and
    /// other ones.
    ///
    /// # Errors
    /// Fails if the process has ended.
    pub fn loaded_libraries(&self, name: &str) -> Result<Vec<PathBuf>, AttachError> {
        let mapped = self.jvm.libraries(name)?.into_iter();
        Ok(mapped.map(|mapped| path_in_target(&mapped).unwrap_or(mapped)).collect())
    }

    /// Creates the trigger file, sends the signal, and waits until the JVM listens.
    async fn wake(&self) -> Result<(), AttachError> {
        let (jvm, listen) = (&self.jvm, self.timeouts.listen);
        let pid = jvm.pid();
        jvm.check_enabled()?;
        let started = Instant::now();
        while !jvm.handles_quit()? && started.elapsed() < STARTUP_TIME.min(listen) {
            tokio::time::sleep(MAX_PAUSE).await;
        }
        if !jvm.handles_quit()? {
            return Err(AttachError::SignalNotHandled { pid });
        }
        let trigger = as_its_user(jvm, listen, "make the JVM listen", Trigger::create).await?;
        jvm.quit()?;
        let (mut pause, mut may_repeat) = (FIRST_PAUSE, true);
        while started.elapsed() < listen {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
            if self.connect_if_listening().await?.is_some() {
                drop(trigger);
                return Ok(());
            }
            jvm.check_alive()?;
            // A JVM that was starting may have missed the first signal.
            if may_repeat && started.elapsed() > listen / 2 {
                jvm.quit()?;
                may_repeat = false;
            }
        }
        Err(AttachError::NotListening { pid, waited: listen })
    }

    /// Connects; `None` if the JVM does not listen yet. A connection without a request does not affect a JVM.
    async fn connect_if_listening(&self) -> Result<Option<UnixStream>, AttachError> {
        match self.connect().await {
            Ok(stream) => Ok(Some(stream)),
            Err(AttachError::Connect { source, pid }) => match source.reason {
                // A stale socket of an earlier process with this ID: the JVM replaces it.
                ConnectFailure::NotFound | ConnectFailure::Refused => Ok(None),
                _ => Err(AttachError::Connect { source, pid }),
            },
            Err(error) => Err(error),
        }
    }

    async fn connect(&self) -> Result<UnixStream, AttachError> {
        let (endpoint, limit) = (self.endpoint.clone(), self.timeouts.connect);
        let connected = as_its_user(&self.jvm, limit * 2, "connect to the JVM", move |jvm| {
            let stream = endpoint.connect_blocking(limit);
            stream.map_err(|source| AttachError::Connect { pid: jvm.pid(), source })
        });
        let stream = connected.await?;
        let stream = stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream));
        stream.map_err(AttachError::io("connect to the JVM"))
    }

    async fn send(
        &self,
        request: &Request,
        version: Version,
        waited: Duration,
    ) -> Result<Reply, AttachError> {
        // A stopped process replies only after it is resumed, which may be never.
        self.jvm.check_alive()?;
        let bytes = request.encode(version)?;
        let mut stream = self.connect().await?;
        let command = || request.command();
        match tokio::time::timeout(waited, exchange(&mut stream, &bytes)).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(ExchangeError::Reply(source))) => Err(AttachError::Reply { command: command(), source }),
            Ok(Err(ExchangeError::Io(source))) => Err(AttachError::io("communicate with the JVM")(source)),
            Err(_elapsed) => Err(AttachError::NoReply { command: command(), waited }),
        }
    }
}

enum ExchangeError {
    Io(std::io::Error),
    Reply(codec::ReplyError),
}

async fn exchange(stream: &mut UnixStream, request: &[u8]) -> Result<Reply, ExchangeError> {
    // A JVM may reject a request, reply, and close the connection before it has read all of the request.
    let sent = stream.write_all(request).await;
    let mut reader = ReplyReader::default();
    let mut chunk = vec![0; READ_SIZE];
    loop {
        match stream.read(&mut chunk).await {
            Ok(0) => break,
            Ok(n) => reader.handle_bytes(chunk.get(..n).unwrap_or_default()).map_err(ExchangeError::Reply)?,
            // The JVM closed the connection with unread bytes of the request; its reply has been received.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => return Err(ExchangeError::Io(error)),
        }
    }
    match (reader.handle_eof(), sent) {
        (Ok(reply), _) => Ok(reply),
        (Err(codec::ReplyError::Closed { received: 0 }), Err(error)) => Err(ExchangeError::Io(error)),
        (Err(error), _) => Err(ExchangeError::Reply(error)),
    }
}
