//! The JVM at the other end: has it listen, and asks it, a connection for each command.

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

/// Between two looks at whether it listens.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// How long a JVM may take from its library to its signal handlers.
const STARTING: Duration = Duration::from_secs(2);
const CHUNK: usize = 16 << 10;

/// How long a JVM is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// Until it listens.
    pub listen: Duration,
    /// Until a connection is accepted.
    pub dial: Duration,
    /// Until an answer has come to its end.
    pub reply: Duration,
    /// The same for `load`: an agent that is loaded may redefine thousands of classes meanwhile.
    pub load: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            listen: Duration::from_secs(10),
            dial: Duration::from_secs(5),
            reply: Duration::from_secs(10),
            load: Duration::from_mins(1),
        }
    }
}

impl Timeouts {
    /// The same limit for each of them.
    pub fn all(limit: Duration) -> Self {
        Self { listen: limit, dial: limit, reply: limit, load: limit }
    }
}

/// A JVM that listens.
#[derive(Debug)]
pub struct Client {
    jvm: Jvm,
    endpoint: Endpoint,
    timeouts: Timeouts,
}

impl Client {
    /// Has a JVM listen, unless it does already. Must run in a tokio runtime with I/O and time.
    ///
    /// When the future is dropped, nothing is left behind.
    ///
    /// # Errors
    /// It does not; the process is unharmed.
    pub async fn attach(jvm: Jvm, timeouts: Timeouts) -> Result<Self, AttachError> {
        let at = Location::Root(format!("/tmp/.java_pid{}", jvm.own_pid()).into());
        // Its name has no key to compare: the kernel says who listens.
        let name = SocketName::runtime(jvm.own_pid(), jvm.start_time());
        let socket = Socket::of_process(jvm.dir(), at, name, SocketState::Matching);
        let Some(endpoint) = Endpoint::of_process(jvm.pid(), jvm.start_time(), [&socket]) else {
            return Err(AttachError::NoProcess { pid: jvm.pid() });
        };
        let client = Self { jvm, endpoint, timeouts };
        client.jvm.check_alive()?;
        if client.dial_if_there().await?.is_none() {
            client.wake().await?;
        }
        Ok(client)
    }

    /// The process.
    pub fn jvm(&self) -> &Jvm {
        &self.jvm
    }

    /// Asks, in the oldest version of the protocol that can say it.
    ///
    /// # Errors
    /// There is no answer. A code other than 0 is one: see [`Reply`].
    pub async fn request(&self, request: &Request) -> Result<Reply, AttachError> {
        self.request_within(request, self.timeouts.reply).await
    }

    async fn request_within(&self, request: &Request, limit: Duration) -> Result<Reply, AttachError> {
        if request.version_needed()? == Version::Two {
            let version = self.ask(&Request::version(), Version::One, self.timeouts.reply).await?;
            if version_of(&version) == Version::One {
                // Says what is too long for it.
                request.encode(Version::One)?;
            }
        }
        self.ask(request, request.version_needed()?, limit).await
    }

    /// Asks, and expects code 0.
    ///
    /// # Errors
    /// There is no answer, or it is a refusal.
    pub async fn carry_out(&self, request: &Request) -> Result<Vec<u8>, AttachError> {
        let reply = self.request(request).await?;
        if reply.code == 0 {
            return Ok(reply.text);
        }
        let (command, code, message) = (request.command(), reply.code, reply.message());
        Err(AttachError::Refused { command, code, message })
    }

    /// Its system properties.
    ///
    /// # Errors
    /// As [`carry_out`](Self::carry_out).
    pub async fn properties(&self) -> Result<BTreeMap<String, String>, AttachError> {
        Ok(codec::properties(&self.carry_out(&Request::properties()).await?))
    }

    /// Loads an agent at an absolute path of its own file system, or has one that it has loaded from there take further options.
    ///
    /// # Errors
    /// It does not run. Only an agent of which that is known can say why: see [`Answer`](crate::Answer).
    pub async fn load(&self, library: &Path, options: &str) -> Result<(), AttachError> {
        let reply = self.request_within(&Request::load(library, options), self.timeouts.load).await?;
        Ok(codec::loaded(&reply)?)
    }

    /// The paths by which it has loaded libraries whose names begin so: those that were [placed](crate::Placed), and others.
    ///
    /// # Errors
    /// It has ended.
    pub fn loaded_libraries(&self, name: &str) -> Result<Vec<PathBuf>, AttachError> {
        let mapped = self.jvm.libraries(name)?.into_iter();
        Ok(mapped.map(|mapped| path_in_target(&mapped).unwrap_or(mapped)).collect())
    }

    /// Creates the file, sends the signal, waits.
    async fn wake(&self) -> Result<(), AttachError> {
        let (jvm, listen) = (&self.jvm, self.timeouts.listen);
        let pid = jvm.pid();
        jvm.check_enabled()?;
        let started = Instant::now();
        while !jvm.handles_quit()? && started.elapsed() < STARTING.min(listen) {
            tokio::time::sleep(LONGEST_PAUSE).await;
        }
        if !jvm.handles_quit()? {
            return Err(AttachError::Deaf { pid });
        }
        let trigger = as_its_user(jvm, listen, "ask the JVM to listen", Trigger::create).await?;
        jvm.quit()?;
        let (mut pause, mut again) = (FIRST_PAUSE, true);
        while started.elapsed() < listen {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            if self.dial_if_there().await?.is_some() {
                drop(trigger);
                return Ok(());
            }
            jvm.check_alive()?;
            // A JVM that was starting may have missed the first one.
            if again && started.elapsed() > listen / 2 {
                jvm.quit()?;
                again = false;
            }
        }
        Err(AttachError::Silent { pid, waited: listen })
    }

    /// `None`: nobody listens there yet. A connection without a request does a JVM no harm.
    async fn dial_if_there(&self) -> Result<Option<UnixStream>, AttachError> {
        match self.dial().await {
            Ok(stream) => Ok(Some(stream)),
            Err(AttachError::Connect { source, pid }) => match source.reason {
                // Left behind by an earlier process of this number: the JVM replaces it.
                ConnectFailure::NotFound | ConnectFailure::Refused => Ok(None),
                _ => Err(AttachError::Connect { source, pid }),
            },
            Err(error) => Err(error),
        }
    }

    async fn dial(&self) -> Result<UnixStream, AttachError> {
        let (endpoint, limit) = (self.endpoint.clone(), self.timeouts.dial);
        let dialled = as_its_user(&self.jvm, limit * 2, "connect to the JVM", move |jvm| {
            let stream = endpoint.connect_blocking(limit);
            stream.map_err(|source| AttachError::Connect { pid: jvm.pid(), source })
        });
        let stream = dialled.await?;
        let stream = stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream));
        stream.map_err(AttachError::io("connect to the JVM"))
    }

    async fn ask(&self, request: &Request, version: Version, waited: Duration) -> Result<Reply, AttachError> {
        // Who is stopped answers when it goes on, which may be never.
        self.jvm.check_alive()?;
        let bytes = request.encode(version)?;
        let mut stream = self.dial().await?;
        let command = || request.command();
        match tokio::time::timeout(waited, exchange(&mut stream, &bytes)).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(Exchange::Reply(source))) => Err(AttachError::Reply { command: command(), source }),
            Ok(Err(Exchange::Io(source))) => Err(AttachError::io("talk to the JVM")(source)),
            Err(_elapsed) => Err(AttachError::NoReply { command: command(), waited }),
        }
    }
}

enum Exchange {
    Io(std::io::Error),
    Reply(codec::ReplyError),
}

async fn exchange(stream: &mut UnixStream, request: &[u8]) -> Result<Reply, Exchange> {
    // A JVM that has read enough to refuse answers, and may close before it has read the rest.
    let sent = stream.write_all(request).await;
    let mut reader = ReplyReader::default();
    let mut chunk = vec![0; CHUNK];
    loop {
        match stream.read(&mut chunk).await {
            Ok(0) => break,
            Ok(n) => reader.handle_bytes(chunk.get(..n).unwrap_or_default()).map_err(Exchange::Reply)?,
            // It closed with bytes of ours unread: what it had said before has been taken.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => return Err(Exchange::Io(error)),
        }
    }
    match (reader.handle_eof(), sent) {
        (Ok(reply), _) => Ok(reply),
        (Err(codec::ReplyError::Closed { received: 0 }), Err(error)) => Err(Exchange::Io(error)),
        (Err(error), _) => Err(Exchange::Reply(error)),
    }
}
