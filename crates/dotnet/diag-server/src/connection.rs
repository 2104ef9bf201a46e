//! One connection: a request, its answer, and the stream of a session.
//!
//! Waits only for its own client, within the [`Limits`](crate::Limits).

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use runtap_diag_proto::server::{Event, Server as Machine};
use runtap_diag_proto::{ErrorReply, Hresult, Reply, Request, SessionConfig, SessionId};
use runtap_transport::Peer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::timeout;

use crate::batch::Batch;
use crate::commands::{Commands, carry_out, is_command};
use crate::description::ProcessDescription;
use crate::encoder::Encoder;
use crate::environment::Changes;
use crate::limits::Limits;
use crate::notice::{Notice, Notifier};
use crate::pipe::EventPipe;
use crate::session::Session;
use crate::startup::Startup;
use crate::state::Served;

/// The interval at which a session's events are sent, as in a runtime.
const SEND_EVERY: Duration = Duration::from_millis(100);

/// Serves connections from any source. Clones refer to one server.
#[derive(Debug, Clone)]
pub struct Dispatcher {
    inner: Arc<Inner>,
    /// The port of the connections: 0 is the default port, others are the connect ports in order.
    port: usize,
}

#[derive(Debug)]
struct Inner {
    description: ProcessDescription,
    pipe: EventPipe,
    commands: Arc<dyn Commands>,
    limits: Limits,
    startup: Startup,
    notifier: Notifier,
    environment: Changes,
    /// Whether the server is shutting down and accepts no new requests.
    closing: watch::Sender<bool>,
}

/// The context of a connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionContext {
    pub(crate) peer: Option<Peer>,
    /// Released when the client gets a session.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
    /// Whether the server waits for the client to send its request or to read its answer.
    pub(crate) waited_for: Arc<AtomicBool>,
}

impl Dispatcher {
    pub(crate) fn new(
        description: ProcessDescription,
        pipe: EventPipe,
        commands: Arc<dyn Commands>,
        limits: Limits,
        startup: Startup,
        notifier: Notifier,
    ) -> Self {
        let closing = watch::Sender::new(false);
        let environment = Changes::default();
        let inner = Inner { description, pipe, commands, limits, startup, notifier, environment, closing };
        Self { inner: Arc::new(inner), port: 0 }
    }

    /// Returns a dispatcher for connections over the connect port `number` (from 1): a resume applies to that port only.
    #[must_use]
    pub fn for_port(&self, number: usize) -> Self {
        Self { inner: Arc::clone(&self.inner), port: number }
    }

    /// Returns whether the program must wait at startup: some port that suspends it has not resumed it yet.
    pub fn is_suspended(&self) -> bool {
        !self.inner.startup.is_over()
    }

    /// Completes when every port that suspends the program has resumed it.
    pub async fn resumed(&self) {
        self.inner.startup.over().await;
    }

    /// Returns the description of the process.
    pub fn description(&self) -> &ProcessDescription {
        &self.inner.description
    }

    /// Returns an environment variable as clients see it: the value that a client has set (SetEnvironmentVariable), else
    /// this process's own value. `None` if the variable does not exist, or a client has removed it.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.inner.environment.get(name, || self.inner.description.variable(name))
    }

    /// Returns the source of events.
    pub fn pipe(&self) -> &EventPipe {
        &self.inner.pipe
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    pub(crate) fn notifier(&self) -> &Notifier {
        &self.inner.notifier
    }

    /// Serves one connection to its end. The caller must authorize the client.
    ///
    /// # Errors
    /// If the client has disconnected, or exceeded a time limit (`TimedOut`). Nothing is left to do then.
    pub async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        self.serve_with(stream, ConnectionContext::default()).await
    }

    /// Like [`serve`](Self::serve), for a client with a known peer.
    pub(crate) async fn serve_with(
        &self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
        context: ConnectionContext,
    ) -> io::Result<()> {
        let ConnectionContext { peer, permit, waited_for } = context;
        let mut machine = Machine::new();
        let mut closing = self.inner.closing.subscribe();
        let request = tokio::select! {
            _ = closing.wait_for(|closing| *closing) => return Err(io::ErrorKind::ConnectionAborted.into()),
            read = timeout(self.inner.limits.request, read_request(&mut machine, &mut stream)) => read??,
        };
        let Some(request) = request else {
            // Already rejected.
            return self.answer(&mut machine, &mut stream).await;
        };
        self.inner.notifier.notify(|| Notice::Request { peer, command: request.command() });
        match request {
            Request::ProcessInfo(_) => {
                let reply = Reply::ProcessInfo(self.inner.description.info.clone());
                self.reply(&mut machine, &mut stream, Some(reply)).await
            }
            Request::ProcessEnvironment => {
                let reply =
                    Reply::Environment(self.inner.environment.apply(self.inner.description.variables()));
                self.reply(&mut machine, &mut stream, Some(reply)).await
            }
            Request::ResumeRuntime => {
                self.inner.startup.resume(self.port);
                self.reply(&mut machine, &mut stream, Some(Reply::Resumed)).await
            }
            Request::StopTracing(id) => {
                waited_for.store(false, Ordering::Relaxed);
                self.stop(id).await;
                waited_for.store(true, Ordering::Relaxed);
                self.reply(&mut machine, &mut stream, Some(Reply::SessionStopped(id))).await
            }
            Request::CollectTracing { config, .. } => {
                let Some(session) = self.start(config) else {
                    refuse(&mut machine, &Hresult::E_FAIL.into());
                    return self.answer(&mut machine, &mut stream).await;
                };
                waited_for.store(false, Ordering::Relaxed);
                let reply = Reply::SessionStarted(session.session.id);
                self.reply(&mut machine, &mut stream, Some(reply)).await?;
                drop(permit);
                self.stream(session, stream).await
            }
            command if is_command(&command) => {
                let commands = Arc::clone(&self.inner.commands);
                let change = match &command {
                    Request::SetEnvironmentVariable { name, value } => Some((name.clone(), value.clone())),
                    _ => None,
                };
                waited_for.store(false, Ordering::Relaxed);
                let mut outcome = carry_out(commands, command).await;
                if let (Ok(()), Some((name, value))) = (&outcome, change) {
                    outcome = self.inner.environment.set(name, value).map_err(ErrorReply::from);
                }
                waited_for.store(true, Ordering::Relaxed);
                match outcome {
                    Ok(()) => self.reply(&mut machine, &mut stream, Some(Reply::Done)).await,
                    Err(error) => {
                        refuse(&mut machine, &error);
                        self.answer(&mut machine, &mut stream).await
                    }
                }
            }
            _ => {
                refuse(&mut machine, &Hresult::UNKNOWN_COMMAND.into());
                self.answer(&mut machine, &mut stream).await
            }
        }
    }

    /// Sends a reply, or E_FAIL if it cannot be encoded because a command line is too long for a message.
    async fn reply(
        &self,
        machine: &mut Machine,
        stream: &mut (impl AsyncWrite + Unpin),
        reply: Option<Reply>,
    ) -> io::Result<()> {
        if reply.is_none_or(|reply| machine.reply(&reply).is_err()) {
            refuse(machine, &Hresult::E_FAIL.into());
        }
        self.answer(machine, stream).await
    }

    async fn answer(&self, machine: &mut Machine, stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        while let Some(bytes) = machine.poll_transmit() {
            self.send(stream, &bytes).await?;
        }
        Ok(())
    }

    /// Writes all of `bytes`, while the client reads some of them within the time limit.
    async fn send(&self, stream: &mut (impl AsyncWrite + Unpin), mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = timeout(self.inner.limits.stalled_reader, stream.write(bytes)).await??;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = bytes.get(written..).unwrap_or_default();
        }
        timeout(self.inner.limits.stalled_reader, stream.flush()).await?
    }

    /// Starts a session. `None` if there are too many.
    fn start(&self, config: SessionConfig) -> Option<Served> {
        let pipe = &self.inner.pipe.state;
        let session = pipe.start(config, &self.inner.limits)?;
        Some(Served { session, pipe: Arc::clone(pipe) })
    }

    /// Stops a session and waits for the end of its stream. A session that does not exist has ended.
    async fn stop(&self, id: SessionId) {
        if let Some(session) = self.inner.pipe.state.session(id) {
            session.stop();
            session.finished().await;
        }
    }

    /// Disconnects clients that have not sent a request yet, stops every session, and waits until all streams have ended.
    pub(crate) async fn close(&self) {
        self.inner.closing.send_replace(true);
        let sessions = self.inner.pipe.state.all_sessions();
        for session in &sessions {
            session.stop();
        }
        for session in &sessions {
            session.finished().await;
        }
    }

    async fn stream(&self, served: Served, stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let Served { session, pipe } = &served;
        let info = &self.inner.description.info;
        let mut encoder = Encoder::new(Arc::clone(pipe), info, session.config.format);
        self.send_of(session, &mut writer, &encoder.take_output()).await?;
        let mut batch = Batch::default();
        let mut tick = tokio::time::interval(SEND_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut client_may_speak = true;
        loop {
            let mut probe = false;
            tokio::select! {
                _ = tick.tick() => {}
                () = session.woken() => {}
                () = session.gave_up() => {
                    self.inner.notifier.notify(|| Notice::Overdue { session: session.id });
                }
                () = closed(&mut reader), if client_may_speak => {
                    // Either the connection or only its read side was closed. The next write shows which.
                    client_may_speak = false;
                    probe = true;
                }
            }
            let drained = session.drain(&mut batch, || pipe.now());
            let mut sent = 0;
            while sent < batch.due() {
                let (count, bytes) = encoder.events(batch.some(sent, usize::MAX));
                self.send_of(session, &mut writer, &encoder.take_output()).await?;
                session.give_back(bytes);
                sent += count;
            }
            encoder.flush(&drained, probe);
            batch.clear();
            if drained.last {
                break;
            }
            self.send_of(session, &mut writer, &encoder.take_output()).await?;
        }
        // The program's own rundown code runs on another thread, so that other clients are served meanwhile.
        let (give, mut rest) = mpsc::channel(1);
        let (inner, ending) = (Arc::clone(&self.inner), Arc::clone(session));
        let _unneeded = tokio::task::spawn_blocking(move || {
            encoder.finish(&ending, &inner.description.info, &inner.pipe.rundown, |bytes| {
                // An error means that the reader is gone and needs no more data.
                let _ = give.blocking_send(bytes);
            });
        });
        while let Some(bytes) = rest.recv().await {
            self.send(&mut writer, &bytes).await?;
        }
        writer.shutdown().await
    }

    /// Sends a part of a session's stream, and notifies the program if a thread gives up waiting for space meanwhile.
    async fn send_of(
        &self,
        session: &Session,
        writer: &mut (impl AsyncWrite + Unpin),
        bytes: &[u8],
    ) -> io::Result<()> {
        let mut sending = pin!(self.send(writer, bytes));
        loop {
            tokio::select! {
                sent = &mut sending => return sent,
                () = session.gave_up() => {
                    self.inner.notifier.notify(|| Notice::Overdue { session: session.id });
                }
            }
        }
    }
}

fn refuse(machine: &mut Machine, error: &ErrorReply) {
    // Encoding fails only if the text is too long.
    if machine.refuse(error).is_err() {
        let _ = machine.refuse(&error.hresult.into());
    }
}

/// Reads the request. `None` if it was rejected.
async fn read_request(
    machine: &mut Machine,
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<Request>> {
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer).await? {
            0 => machine.handle_eof(),
            n => machine.handle_bytes(buffer.get(..n).unwrap_or_default()),
        }
        match machine.poll_event() {
            Some(Event::Request(request)) => return Ok(Some(request)),
            Some(_refused) => return Ok(None),
            None => {}
        }
    }
}

/// Completes when the client has closed its write side. Ignores the bytes before that.
async fn closed(reader: &mut (impl AsyncRead + Unpin)) {
    let mut buffer = [0; 256];
    while matches!(reader.read(&mut buffer).await, Ok(n) if n > 0) {}
}
