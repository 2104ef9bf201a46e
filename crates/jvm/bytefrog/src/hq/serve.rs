//! The threads of connections.
//!
//! Owns: accepting, telling control from data connections by their first byte, reading, and the watch over heartbeats.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::hq::{self, Control, Data};
use runtap_bytefrog_proto::{Configuration, Dialect, Message, Side, Violation};

use super::agent::Agent;
use super::keep_alive::keep_alive;
use super::places::Open;
use super::record::Taped;
use super::shared::{Shared, User, locked};
use super::turn::Turn;
use super::{AgentId, Connection, Event, HqError, Refusal};
use crate::Model;

/// Bytes of a read of events.
const CHUNK: usize = 256 << 10;

/// The least time between two looks at what is overdue.
const TICK: Duration = Duration::from_millis(50);

/// Accepts connections until HQ closes, of a listener that does not block: what would wake one needs a descriptor, and an
/// address that can be dialled.
pub(super) fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut number = 0u64;
    while !shared.closing.load(Ordering::SeqCst) {
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                await_connection(listener);
                continue;
            }
            // Out of descriptors, mostly: that passes when a connection ends.
            Err(_) => {
                std::thread::sleep(TICK);
                continue;
            }
        };
        // Before it takes a place.
        let Some(user) = welcomed(&stream, shared) else { continue };
        number += 1;
        if let Err(cause) = begin(stream, shared, number, user) {
            (shared.tell)(None, Event::Refused { peer, cause });
        }
    }
}

/// Waits for a connection, for a moment.
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

/// Gives a connection its thread, if there is room for it.
fn begin(stream: TcpStream, shared: &Arc<Shared>, number: u64, user: User) -> Result<(), Refusal> {
    let mut threads = locked(&shared.threads);
    threads.retain(|thread| !thread.is_finished());
    if !shared.has_room(user) {
        return Err(Refusal::Connections(shared.options.connections));
    }
    // Some systems hand the listener's mode on.
    let Ok(()) = stream.set_nonblocking(false) else { return Err(Refusal::System) };
    // One descriptor for all who need it.
    let stream = Arc::new(stream);
    locked(&shared.connections).insert(number, Open::new(Arc::clone(&stream), user));
    let state = Arc::clone(shared);
    let spawned = std::thread::Builder::new().name(format!("bytefrog-{number}")).spawn(move || {
        // An error is the end of a connection, which is told where it is known whose it was.
        let _ = serve(&stream, &state, number, user);
        locked(&state.connections).remove(&number);
    });
    let Ok(thread) = spawned else {
        locked(&shared.connections).remove(&number);
        return Err(Refusal::System);
    };
    threads.push(thread);
    Ok(())
}

/// Returns the user of a connection if that user may connect. Reports a refused connection as [`Event::Stranger`].
fn welcomed(stream: &TcpStream, shared: &Shared) -> Option<User> {
    let (peer, own) = (stream.peer_addr().ok()?, stream.local_addr().ok()?);
    let user = runtap_os::loopback::is_known(own).then(|| runtap_os::loopback::user_of(peer, own)).flatten();
    let Some(users) = &shared.options.users else { return Some(user) };
    let welcome = user.is_some_and(|user| users.contains(&user));
    if !welcome {
        (shared.tell)(None, Event::Stranger { peer, user });
    }
    welcome.then_some(user)
}

fn serve(stream: &Arc<TcpStream>, shared: &Arc<Shared>, number: u64, user: User) -> io::Result<()> {
    let patience = shared.options.patience;
    stream.set_read_timeout(Some(patience.max(TICK)))?;
    stream.set_write_timeout(Some(patience.max(TICK)))?;
    // Commands are single bytes, which should not wait for each other.
    stream.set_nodelay(true)?;
    // A machine that was switched off would keep its place for ever. Without that, it is served all the same.
    let _ = keep_alive(stream);
    let mut first = [0];
    if (&**stream).read(&mut first)? == 0 {
        return Ok(());
    }
    match first {
        [DATA] => data(stream, shared, number, user),
        [first] => control(stream, shared, (number, user), first),
    }
}

/// Writes a last word and closes.
fn refuse(mut stream: &TcpStream, transmit: &[u8]) -> io::Result<()> {
    stream.write_all(transmit)?;
    leave(stream)
}

/// Closes a connection whose other side may have something to read. What it still sends is taken for a while: bytes that
/// nobody has read when a socket is closed would reset the connection, and take the last word with them.
fn leave(mut stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(TICK))?;
    let (began, mut buffer) = (Instant::now(), [0; 4096]);
    while began.elapsed() < Duration::from_secs(1) && stream.read(&mut buffer)? > 0 {}
    Ok(())
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// A control connection until it has said hello. Then it is an agent's.
fn control(
    stream: &Arc<TcpStream>,
    shared: &Arc<Shared>,
    (number, user): (u64, User),
    first: u8,
) -> io::Result<()> {
    let began = Instant::now();
    let mut control = Control::new(shared.options.protocol.clone(), shared.now());
    let mut output = control.handle_bytes(&[first], shared.now());
    let mut said = vec![first];
    let mut buffer = [0; 64];
    while control.dialect().is_none() && !output.close {
        if began.elapsed() > shared.options.patience {
            return Ok(());
        }
        // One byte at a time: what comes behind hello is for the agent that this becomes.
        let (byte, _) = buffer.split_at_mut(1);
        if (&**stream).read(byte)? == 0 {
            return Ok(());
        }
        said.extend_from_slice(byte);
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
            hq::Event::Violation(violation) => (shared.tell)(None, Event::Violation(violation)),
            _ => {}
        }
    }
    let Some(project) = hello else { return refuse(stream, &output.transmit) };
    let peer = stream.peer_addr()?;
    let make = |id, run, large: bool| {
        let limits = shared.options.limits;
        let limits = if large { limits } else { limits.small() };
        let model = Model::new(dialect, &limits, shared.options.slow);
        Agent::new(id, (run, user), dialect, control, Arc::clone(stream), (model, large))
    };
    // Registered before the configuration is sent: data connections may follow at once.
    let Some(agent) = shared.admit(user, make) else {
        let cause = Refusal::Agents(locked(&shared.agents).len());
        (shared.tell)(None, Event::Refused { peer, cause });
        return refuse(stream, &full());
    };
    shared.belongs(number, &agent);
    agent.tape.begin(shared.options.recorder.as_ref(), agent.id, Connection::Control);
    agent.tape.write(Side::Agent, shared.now(), &said);
    let configuration = Configuration { run: agent.run, ..shared.options.configuration.clone() };
    let told = agent.command(shared.now(), |control| control.configure(&configuration));
    (shared.tell)(Some(agent.id), Event::Connected { peer, dialect, project, run: agent.run });
    let read = match told {
        Ok(()) => {
            if let Some(mode) = shared.options.begin {
                let now = shared.now();
                // What fails here fails for the one who reads, too.
                let _ = agent.command(now, |control| control.go(mode, now));
            }
            listen(stream, shared, &agent)
        }
        Err(error) => {
            // The agent waits for a configuration for ever.
            let _ = agent.command(shared.now(), |control| Ok(control.fail(&error.to_string())));
            let _ = leave(stream);
            let text = error.to_string();
            if let HqError::Command(error) = error {
                (shared.tell)(Some(agent.id), Event::NotConfigured(error));
            }
            Err(io::Error::other(text))
        }
    };
    // The end of an agent that has lost its place is no fault of its own.
    for violation in agent.with(Control::handle_close).into_iter().filter(|_| !agent.has_left()) {
        (shared.tell)(Some(agent.id), Event::Violation(violation));
    }
    agent.tape.end(shared.now());
    tell_failure(shared, agent.id, Connection::Control, &agent.tape);
    (shared.tell)(Some(agent.id), Event::ControlEnded);
    if agent.close_control() {
        finish(shared, &agent);
    }
    read
}

/// What the original HQ says when it expects no agent.
fn full() -> Vec<u8> {
    Control::new(hq::Settings::default(), Duration::ZERO)
        .fail("HQ is not expecting a new connection at this time")
}

/// Everything of an agent has ended.
fn finish(shared: &Shared, agent: &Agent) {
    {
        let mut model = agent.model();
        model.finish();
        if model.fits(&shared.options.limits.small()) {
            agent.give_large_place_back();
        }
        agent.publish(&model);
    }
    if agent.finish() && !agent.has_only_said_hello() {
        shared.keep_sums(agent);
    }
    (shared.tell)(Some(agent.id), Event::Finished);
}

/// Reads a control connection to its end.
fn listen(mut stream: &TcpStream, shared: &Arc<Shared>, agent: &Agent) -> io::Result<()> {
    let mut buffer = [0; 4096];
    // At HQ's own end it is shut.
    while !(agent.has_left() && agent.is_abandoned()) {
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
        tell_failure(shared, agent.id, Connection::Control, &agent.tape);
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
            (shared.tell)(Some(agent.id), event);
        }
        for violation in overdue {
            (shared.tell)(Some(agent.id), Event::Violation(violation));
        }
        if output.close {
            let transmit = output.transmit;
            let _ = agent.command(shared.now(), |_| Ok(transmit));
            return leave(stream);
        }
    }
    Ok(())
}

/// The first byte of a data connection.
const DATA: u8 = 0x1e;

/// A data connection from its first byte to its end.
fn data(mut stream: &TcpStream, shared: &Arc<Shared>, place: u64, user: User) -> io::Result<()> {
    let mut data = Data::new();
    data.handle_bytes(&[DATA], |_| None, |_, _| {});
    let mut run = [0];
    stream.read_exact(&mut run)?;
    let agent = shared.by_run(run[0], user);
    let opened = agent.as_ref().and_then(|agent| agent.open_data());
    let dialect = agent.as_ref().filter(|_| opened.is_some()).map(|agent| agent.dialect);
    let output = data.handle_bytes(&run, |_| dialect, |_, _| {});
    let (Some(agent), Some((count, number))) = (agent, opened) else {
        tell_all(shared, None, output.violations);
        return refuse(stream, &output.transmit);
    };
    shared.belongs(place, &agent);
    (shared.tell)(Some(agent.id), Event::Data(count));
    let (tape, connection) = (Taped::off(), Connection::Data(number));
    tape.begin(shared.options.recorder.as_ref(), agent.id, connection);
    let [run] = run;
    tape.write(Side::Agent, shared.now(), &[DATA, run]);
    tape.write(Side::Hq, shared.now(), &output.transmit);
    let read = stream.write_all(&output.transmit).and_then(|()| {
        let mut has_started = false;
        let mut record = |side, bytes: &[u8]| {
            if !std::mem::replace(&mut has_started, true) {
                // A recording can't be read without its control connection.
                agent.tape.start();
                tell_failure(shared, agent.id, Connection::Control, &agent.tape);
                tape.start();
            }
            tape.write(side, shared.now(), bytes);
            tell_failure(shared, agent.id, connection, &tape);
        };
        events(stream, shared, (&agent, number), &mut data, &mut record)
    });
    tape.end(shared.now());
    tell_failure(shared, agent.id, connection, &tape);
    tell_all(shared, Some(agent.id), data.handle_close().into_iter().filter(|_| !agent.has_left()).collect());
    let (count, over) = agent.close_data();
    (shared.tell)(Some(agent.id), Event::Data(count));
    if over {
        finish(shared, &agent);
    }
    read
}

fn events(
    mut stream: &TcpStream,
    shared: &Shared,
    (agent, number): (&Agent, u32),
    data: &mut Data,
    record: &mut dyn FnMut(Side, &[u8]),
) -> io::Result<()> {
    // A program may be idle for as long as it likes: its agent's heartbeats are what is watched.
    stream.set_read_timeout(None)?;
    let mut buffer = vec![0; CHUNK];
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
            let mut turn = Turn::new(agent, number, shared.options.gap_patience);
            let output = data.handle_bytes(bytes, |_| None, |_, message| turn.take(&message));
            (output, turn.is_over())
        };
        tell_all(shared, Some(agent.id), output.violations);
        if is_over {
            return Ok(());
        }
        if output.close {
            record(Side::Hq, &output.transmit);
            return refuse(stream, &output.transmit);
        }
    }
    Ok(())
}

/// Says once that a connection is not recorded any more.
fn tell_failure(shared: &Shared, agent: AgentId, connection: Connection, tape: &Taped) {
    if let Some(error) = tape.failure() {
        (shared.tell)(Some(agent), Event::RecordingFailed { connection, reason: error.to_string() });
    }
}

fn tell_all(shared: &Shared, agent: Option<AgentId>, violations: Vec<Violation>) {
    for violation in violations {
        (shared.tell)(agent, Event::Violation(violation));
    }
}
