//! The threads of connections.
//!
//! Accepts connections, distinguishes control from data connections by their first byte, reads them, and monitors
//! heartbeats.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::hq::{self, Control, Data};
use runtap_bytefrog_proto::{Configuration, Dialect, Message, Side, Violation};

use super::agent::Agent;
use super::keep_alive::keep_alive;
use super::ordered_access::OrderedAccess;
use super::record::RecordedConnection;
use super::shared::{Shared, User, locked};
use super::slots::OpenConnection;
use super::{AgentId, Connection, Event, HqError, RejectReason};
use crate::Model;

/// The size of the read buffer for events, in bytes.
const READ_BUFFER_SIZE: usize = 256 << 10;

/// The shortest interval between two checks for overdue heartbeats and modes.
const TICK: Duration = Duration::from_millis(50);

/// Accepts connections until HQ closes. The listener does not block: waking a blocked one would need a file
/// descriptor, and an address that can be connected to.
pub(super) fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut number = 0u64;
    while !shared.closing.load(Ordering::SeqCst) {
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                await_connection(listener);
                continue;
            }
            // Usually there are no file descriptors left, until a connection is closed.
            Err(_) => {
                std::thread::sleep(TICK);
                continue;
            }
        };
        // Checked before the connection occupies a slot.
        let Some(user) = allowed_user(&stream, shared) else { continue };
        number += 1;
        if let Err(cause) = start_thread(stream, shared, number, user) {
            (shared.on_event)(None, Event::Rejected { peer, cause });
        }
    }
}

/// Waits for a connection for a short time.
#[cfg(unix)]
fn await_connection(listener: &TcpListener) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let mut polled = [PollFd::new(listener, PollFlags::IN)];
    let a_while = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    if poll(&mut polled, Some(&a_while)).is_err() {
        std::thread::sleep(TICK);
    }
}

#[cfg(not(unix))]
fn await_connection(_: &TcpListener) {
    std::thread::sleep(Duration::from_millis(10));
}

/// Starts the thread of a connection, if there is room.
fn start_thread(
    stream: TcpStream,
    shared: &Arc<Shared>,
    number: u64,
    user: User,
) -> Result<(), RejectReason> {
    let mut threads = locked(&shared.threads);
    threads.retain(|thread| !thread.is_finished());
    if !shared.make_room(user) {
        return Err(RejectReason::Connections(shared.options.connections));
    }
    // Some systems inherit the listener's mode.
    let Ok(()) = stream.set_nonblocking(false) else { return Err(RejectReason::System) };
    // All handles share one descriptor.
    let stream = Arc::new(stream);
    locked(&shared.connections).insert(number, OpenConnection::new(Arc::clone(&stream), user));
    let state = Arc::clone(shared);
    let spawned = std::thread::Builder::new().name(format!("bytefrog-{number}")).spawn(move || {
        // Errors end the connection and are reported where its agent is known.
        let _ = serve(&stream, &state, number, user);
        locked(&state.connections).remove(&number);
    });
    let Ok(thread) = spawned else {
        locked(&shared.connections).remove(&number);
        return Err(RejectReason::System);
    };
    threads.push(thread);
    Ok(())
}

/// Returns the user of a connection if that user may connect. Reports a rejected connection as
/// [`Event::UserRejected`].
fn allowed_user(stream: &TcpStream, shared: &Shared) -> Option<User> {
    let (peer, own) = (stream.peer_addr().ok()?, stream.local_addr().ok()?);
    let user = runtap_os::loopback::is_known(own).then(|| runtap_os::loopback::user_of(peer, own)).flatten();
    let Some(users) = &shared.options.users else { return Some(user) };
    let allowed = user.is_some_and(|user| users.contains(&user));
    if !allowed {
        (shared.on_event)(None, Event::UserRejected { peer, user });
    }
    allowed.then_some(user)
}

fn serve(stream: &Arc<TcpStream>, shared: &Arc<Shared>, number: u64, user: User) -> io::Result<()> {
    let timeout = shared.options.timeout;
    stream.set_read_timeout(Some(timeout.max(TICK)))?;
    stream.set_write_timeout(Some(timeout.max(TICK)))?;
    // Commands are single bytes and should be sent immediately.
    stream.set_nodelay(true)?;
    // A machine that was switched off would occupy its slot forever. Keep-alive is optional, so errors are ignored.
    let _ = keep_alive(stream);
    let mut first = [0];
    if (&**stream).read(&mut first)? == 0 {
        return Ok(());
    }
    match first {
        [DATA_HELLO] => data(stream, shared, number, user),
        [first] => control(stream, shared, (number, user), first),
    }
}

/// Sends final bytes and closes the connection.
fn reject(mut stream: &TcpStream, transmit: &[u8]) -> io::Result<()> {
    stream.write_all(transmit)?;
    close_gracefully(stream)
}

/// Closes a connection whose peer may still have to read something. Reads what the peer sends for a while: closing
/// a socket with unread bytes would reset the connection and discard the final bytes.
fn close_gracefully(mut stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(TICK))?;
    let (began, mut buffer) = (Instant::now(), [0; 4096]);
    while began.elapsed() < Duration::from_secs(1) && stream.read(&mut buffer)? > 0 {}
    Ok(())
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Handles a control connection: until hello on its own, then as the connection of an agent.
fn control(
    stream: &Arc<TcpStream>,
    shared: &Arc<Shared>,
    (number, user): (u64, User),
    first: u8,
) -> io::Result<()> {
    let began = Instant::now();
    let mut control = Control::new(shared.options.protocol.clone(), shared.now());
    let mut output = control.handle_bytes(&[first], shared.now());
    let mut received = vec![first];
    let mut buffer = [0; 64];
    while control.dialect().is_none() && !output.close {
        if began.elapsed() > shared.options.timeout {
            return Ok(());
        }
        // One byte at a time: bytes after hello belong to the agent.
        let (byte, _) = buffer.split_at_mut(1);
        if (&**stream).read(byte)? == 0 {
            return Ok(());
        }
        received.extend_from_slice(byte);
        let more = control.handle_bytes(byte, shared.now());
        output.events.extend(more.events);
        output.transmit.extend(more.transmit);
        output.close |= more.close;
    }
    let (mut hello, mut dialect) = (None, Dialect::V1);
    for event in output.events {
        match event {
            hq::Event::Hello { dialect: spoken, project } => {
                dialect = spoken;
                hello = Some(project);
            }
            hq::Event::Violation(violation) => (shared.on_event)(None, Event::Violation(violation)),
            _ => {}
        }
    }
    let Some(project) = hello else { return reject(stream, &output.transmit) };
    let peer = stream.peer_addr()?;
    let make = |id, run, large: bool| {
        let limits = shared.options.limits;
        let limits = if large { limits } else { limits.small() };
        let model = Model::new(dialect, &limits, shared.options.slow);
        Agent::new(id, (run, user), dialect, control, Arc::clone(stream), (model, large))
    };
    // Registered before the configuration is sent: data connections may follow at once.
    let Some(agent) = shared.admit(user, make) else {
        let cause = RejectReason::Agents(locked(&shared.agents).len());
        (shared.on_event)(None, Event::Rejected { peer, cause });
        return reject(stream, &full());
    };
    shared.assign(number, &agent);
    agent.tape.prepare(shared.options.recorder.as_ref(), agent.id, Connection::Control);
    agent.tape.write(Side::Agent, shared.now(), &received);
    let configuration = Configuration { run: agent.run, ..shared.options.configuration.clone() };
    let configured = agent.command(shared.now(), |control| control.configure(&configuration));
    (shared.on_event)(Some(agent.id), Event::Connected { peer, dialect, project, run: agent.run });
    let read = match configured {
        Ok(()) => {
            if let Some(mode) = shared.options.initial_mode {
                let now = shared.now();
                // An error here recurs when the connection is read.
                let _ = agent.command(now, |control| control.change_mode(mode, now));
            }
            listen(stream, shared, &agent)
        }
        Err(error) => {
            // The agent would wait for a configuration forever.
            let _ = agent.command(shared.now(), |control| Ok(control.fail(&error.to_string())));
            let _ = close_gracefully(stream);
            let text = error.to_string();
            if let HqError::Command(error) = error {
                (shared.on_event)(Some(agent.id), Event::NotConfigured(error));
            }
            Err(io::Error::other(text))
        }
    };
    // A displaced agent is not responsible for how its connection ends.
    for violation in agent.with(Control::handle_close).into_iter().filter(|_| !agent.is_displaced()) {
        (shared.on_event)(Some(agent.id), Event::Violation(violation));
    }
    agent.tape.end(shared.now());
    report_failure(shared, agent.id, Connection::Control, &agent.tape);
    (shared.on_event)(Some(agent.id), Event::ControlEnded);
    if agent.close_control() {
        finish(shared, &agent);
    }
    read
}

/// Returns the error message of the original HQ when it expects no agent.
fn full() -> Vec<u8> {
    Control::new(hq::Settings::default(), Duration::ZERO)
        .fail("HQ is not expecting a new connection at this time")
}

/// Completes the trace of an agent whose connections are all closed.
fn finish(shared: &Shared, agent: &Agent) {
    {
        let mut model = agent.model();
        model.finish();
        if model.fits(&shared.options.limits.small()) {
            agent.release_large_slot();
        }
        agent.publish(&model);
    }
    if agent.finish() && !agent.has_only_said_hello() {
        shared.keep_sums(agent);
    }
    (shared.on_event)(Some(agent.id), Event::Finished);
}

/// Reads a control connection until it is closed.
fn listen(mut stream: &TcpStream, shared: &Arc<Shared>, agent: &Agent) -> io::Result<()> {
    let mut buffer = [0; 4096];
    // HQ shuts down the connection when it closes.
    while !(agent.is_displaced() && agent.is_abandoned()) {
        let now = shared.now();
        let next = agent.with(|control| control.next_timeout());
        let wait = next.map_or(Duration::from_secs(1), |at| at.saturating_sub(now));
        stream.set_read_timeout(Some(wait.clamp(TICK, Duration::from_secs(1))))?;
        let size = match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(size) => size,
            Err(error) if is_timeout(&error) => 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let now = shared.now();
        let bytes = buffer.get(..size).unwrap_or_default();
        if !bytes.is_empty() {
            agent.tape.start();
        }
        agent.tape.write(Side::Agent, now, bytes);
        report_failure(shared, agent.id, Connection::Control, &agent.tape);
        let (output, overdue) =
            agent.with(|control| (control.handle_bytes(bytes, now), control.handle_timeout(now)));
        for event in output.events {
            let event = match event {
                hq::Event::Heartbeat { mode, queue } => Event::Heartbeat { mode, queue },
                hq::Event::Class { outcome, name } => Event::Class { outcome, name },
                hq::Event::Error { text } => Event::Error(text),
                hq::Event::Process(process) => Event::Process(process),
                hq::Event::Violation(violation) => Event::Violation(violation),
                hq::Event::DataBreak { sequence } => {
                    agent.model().take(&Message::DataBreak { sequence });
                    continue;
                }
                _ => continue,
            };
            (shared.on_event)(Some(agent.id), event);
        }
        for violation in overdue {
            (shared.on_event)(Some(agent.id), Event::Violation(violation));
        }
        if output.close {
            let transmit = output.transmit;
            let _ = agent.command(shared.now(), |_| Ok(transmit));
            return close_gracefully(stream);
        }
    }
    Ok(())
}

/// The first byte of a data connection: the ID of data hello.
const DATA_HELLO: u8 = 0x1e;

/// Handles a data connection.
fn data(mut stream: &TcpStream, shared: &Arc<Shared>, connection_number: u64, user: User) -> io::Result<()> {
    let mut data = Data::new();
    data.handle_bytes(&[DATA_HELLO], |_| None, |_, _| {});
    let mut run = [0];
    stream.read_exact(&mut run)?;
    let agent = shared.by_run(run[0], user);
    let opened = agent.as_ref().and_then(|agent| agent.open_data());
    let dialect = agent.as_ref().filter(|_| opened.is_some()).map(|agent| agent.dialect);
    let output = data.handle_bytes(&run, |_| dialect, |_, _| {});
    let (Some(agent), Some((count, number))) = (agent, opened) else {
        report_all(shared, None, output.violations);
        return reject(stream, &output.transmit);
    };
    shared.assign(connection_number, &agent);
    (shared.on_event)(Some(agent.id), Event::Data(count));
    let (tape, connection) = (RecordedConnection::off(), Connection::Data(number));
    tape.prepare(shared.options.recorder.as_ref(), agent.id, connection);
    let [run] = run;
    tape.write(Side::Agent, shared.now(), &[DATA_HELLO, run]);
    tape.write(Side::Hq, shared.now(), &output.transmit);
    let read = stream.write_all(&output.transmit).and_then(|()| {
        let mut has_started = false;
        let mut record = |side, bytes: &[u8]| {
            if !std::mem::replace(&mut has_started, true) {
                // A recording cannot be read without its control connection.
                agent.tape.start();
                report_failure(shared, agent.id, Connection::Control, &agent.tape);
                tape.start();
            }
            tape.write(side, shared.now(), bytes);
            report_failure(shared, agent.id, connection, &tape);
        };
        read_events(stream, shared, (&agent, number), &mut data, &mut record)
    });
    tape.end(shared.now());
    report_failure(shared, agent.id, connection, &tape);
    report_all(
        shared,
        Some(agent.id),
        data.handle_close().into_iter().filter(|_| !agent.is_displaced()).collect(),
    );
    let (count, is_last) = agent.close_data();
    (shared.on_event)(Some(agent.id), Event::Data(count));
    if is_last {
        finish(shared, &agent);
    }
    read
}

fn read_events(
    mut stream: &TcpStream,
    shared: &Shared,
    (agent, number): (&Agent, u32),
    data: &mut Data,
    record: &mut dyn FnMut(Side, &[u8]),
) -> io::Result<()> {
    // A program may be idle for any time; only the heartbeats of its agent have a deadline.
    stream.set_read_timeout(None)?;
    let mut buffer = vec![0; READ_BUFFER_SIZE];
    while !shared.is_abandoned() && !agent.is_abandoned() {
        let size = match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(size) => size,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let bytes = buffer.get(..size).unwrap_or_default();
        record(Side::Agent, bytes);
        let (output, is_over) = {
            let mut access = OrderedAccess::new(agent, number, shared.options.gap_timeout);
            let output = data.handle_bytes(bytes, |_| None, |_, message| access.take(&message));
            (output, access.is_over())
        };
        report_all(shared, Some(agent.id), output.violations);
        if is_over {
            return Ok(());
        }
        if output.close {
            record(Side::Hq, &output.transmit);
            return reject(stream, &output.transmit);
        }
    }
    Ok(())
}

/// Reports once that the recording of a connection failed.
fn report_failure(shared: &Shared, agent: AgentId, connection: Connection, tape: &RecordedConnection) {
    if let Some(error) = tape.failure() {
        (shared.on_event)(Some(agent), Event::RecordingFailed { connection, reason: error.to_string() });
    }
}

fn report_all(shared: &Shared, agent: Option<AgentId>, violations: Vec<Violation>) {
    for violation in violations {
        (shared.on_event)(agent, Event::Violation(violation));
    }
}
