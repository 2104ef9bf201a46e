//! A Bytefrog agent without a JVM that follows a script, whether valid or not, or repeats what a recorded agent sent.
//! The steps of a [`FakeAgent`] run in order on the calling thread, with a time limit for each wait. It sends what the
//! script says, even if the protocol forbids it.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::agent::{Control, Data, Event, Reply};
use runtap_bytefrog_proto::{
    Command, Configuration, Decoder, Dialect, Message, Mode, ModeByte, Stream, to_bytes,
};

use crate::Skip;

/// Maximum duration of a step that waits.
const LIMIT: Duration = Duration::from_secs(20);

/// A step of an agent's script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Sends hello with its dialect.
    Hello,
    /// Sends hello with a project (version 4).
    ProjectHello(u32),
    /// Waits for a configuration.
    AwaitConfiguration,
    /// Waits for a command.
    Await(Command),
    /// Waits for an error or the end of the control connection.
    AwaitEnd,
    /// Sends a mode.
    Heartbeat(Mode),
    /// Sends bytes on the control connection.
    Control(Vec<u8>),
    /// Opens a data connection, sends data hello with the run of the configuration, and waits for the reply.
    ConnectData,
    /// Opens a data connection with another run, without waiting for the reply.
    ConnectDataAs(u8),
    /// Sends bytes on the data connection with this index.
    Data(usize, Vec<u8>),
    /// Closes a data connection.
    CloseData(usize),
    /// Closes the control connection.
    CloseControl,
    /// Waits for a duration.
    Sleep(Duration),
}

/// An agent, and what it has received.
#[derive(Debug)]
pub struct FakeAgent {
    address: SocketAddr,
    dialect: Dialect,
    machine: Control,
    control: TcpStream,
    data: Vec<Option<TcpStream>>,
    /// All bytes that HQ sent on the control connection.
    pub heard: Vec<u8>,
    /// Received configurations.
    pub configurations: Vec<Configuration>,
    /// Received commands.
    pub commands: Vec<Command>,
    /// The error with which HQ rejected the agent or ended the trace.
    pub errors: Vec<String>,
    /// The version to say hello with after being rejected.
    pub fallback: Option<Dialect>,
    /// HQ's replies on data connections.
    pub replies: Vec<Reply>,
    ended: bool,
}

/// Encodes a message.
///
/// # Panics
/// If the dialect lacks the message.
pub fn say(dialect: Dialect, message: &Message<'_>) -> Vec<u8> {
    to_bytes(message, dialect).expect("the dialect has this message")
}

impl FakeAgent {
    /// Connects to HQ.
    ///
    /// # Errors
    /// If connecting fails.
    pub fn connect(address: SocketAddr, dialect: Dialect) -> io::Result<Self> {
        let control = TcpStream::connect(address)?;
        control.set_nodelay(true)?;
        Ok(Self {
            address,
            dialect,
            machine: Control::new(dialect),
            control,
            data: Vec::new(),
            heard: Vec::new(),
            configurations: Vec::new(),
            commands: Vec::new(),
            errors: Vec::new(),
            fallback: None,
            replies: Vec::new(),
            ended: false,
        })
    }

    /// Runs steps.
    ///
    /// # Errors
    /// If HQ closed a connection, or a step timed out.
    pub fn run(&mut self, steps: &[Step]) -> io::Result<()> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    /// Removes the data connection with this index from the agent, so that the caller can write to it.
    pub fn take_data(&mut self, number: usize) -> Option<TcpStream> {
        self.data.get_mut(number)?.take()
    }

    fn step(&mut self, step: &Step) -> io::Result<()> {
        match step {
            Step::Hello => self.control.write_all(&[0, self.dialect.hello()]),
            Step::ProjectHello(project) => {
                let version = self.dialect.hello();
                let hello = say(self.dialect, &Message::ProjectHello { version, project: *project });
                self.control.write_all(&hello)
            }
            Step::AwaitConfiguration => {
                let before = self.configurations.len();
                self.listen_until(|agent| agent.configurations.len() > before)
            }
            Step::Await(command) => {
                let before = self.commands.iter().filter(|heard| *heard == command).count();
                if before > 0 {
                    return Ok(());
                }
                self.listen_until(|agent| agent.commands.contains(command))
            }
            Step::AwaitEnd => self.listen_until(|agent| agent.ended),
            Step::Heartbeat(mode) => {
                let ModeByte(mode) = mode.byte();
                self.control.write_all(&[8, mode, 0, 0])
            }
            Step::Control(bytes) => self.control.write_all(bytes),
            Step::ConnectData => {
                let run = self.configurations.last().map_or(0, |configuration| configuration.run);
                self.connect_data(run, true)
            }
            Step::ConnectDataAs(run) => self.connect_data(*run, false),
            Step::Data(number, bytes) => match self.data.get_mut(*number) {
                Some(Some(stream)) => stream.write_all(bytes),
                _ => Err(io::Error::other("no such data connection")),
            },
            Step::CloseData(number) => {
                if let Some(stream) = self.data.get_mut(*number) {
                    *stream = None;
                }
                Ok(())
            }
            Step::CloseControl => self.control.shutdown(Shutdown::Both),
            Step::Sleep(time) => {
                std::thread::sleep(*time);
                Ok(())
            }
        }
    }

    /// Reads the control connection until `done` returns true.
    fn listen_until(&mut self, done: impl Fn(&Self) -> bool) -> io::Result<()> {
        let began = Instant::now();
        self.control.set_read_timeout(Some(Duration::from_millis(50)))?;
        let mut buffer = [0; 4096];
        while !done(self) {
            if began.elapsed() > LIMIT {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the expected message did not arrive"));
            }
            match self.control.read(&mut buffer) {
                Ok(0) => {
                    self.ended = true;
                    if !done(self) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Ok(size) => self.hear(buffer.get(..size).unwrap_or_default()),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.heard.extend_from_slice(bytes);
        let output = self.machine.handle_bytes(bytes);
        self.ended |= output.close;
        for event in output.events {
            match event {
                Event::Configured(configuration) => self.configurations.push(*configuration),
                Event::Command(command, _) => self.commands.push(command),
                Event::Rejected { text, fallback } => {
                    self.fallback = fallback;
                    self.errors.push(text.to_string());
                }
                Event::Error { text } => self.errors.push(text.to_string()),
                Event::Violation(violation) => self.errors.push(violation.to_string()),
                _ => {}
            }
        }
    }

    fn connect_data(&mut self, run: u8, wait: bool) -> io::Result<()> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.write_all(&Data::hello(run))?;
        if wait {
            stream.set_read_timeout(Some(LIMIT))?;
            let mut machine = Data::new(self.dialect);
            let mut byte = [0];
            let reply = loop {
                stream.read_exact(&mut byte)?;
                if let Some(reply) = machine.handle_bytes(&byte) {
                    break reply;
                }
            };
            self.replies.push(reply);
        }
        self.data.push(Some(stream));
        Ok(())
    }
}

/// Returns steps that repeat what a recorded agent sent on its control and data connections, after HQ has sent a
/// configuration and a start command. Data hello contains the run that HQ assigns now.
///
/// # Errors
/// If there is no shared folder.
///
/// # Panics
/// If the recording cannot be read.
pub fn recorded(scenario: &str) -> Result<(Dialect, Vec<Step>), Skip> {
    let control = crate::shared_data(format!("bytefrog/{scenario}.ctl.a2h.bin"))?;
    let mut decoder = Decoder::new(Stream::control_from_agent());
    let (mut ahead, mut behind, mut last) = (Vec::new(), Vec::new(), 0);
    let mut ids = Vec::new();
    let read = decoder.feed(&control, |offset, message| {
        ids.push((usize::try_from(offset).unwrap_or(usize::MAX), message.id().0));
        None
    });
    read.expect("the recording is whole");
    let dialect = decoder.stream().dialect.expect("it begins with hello");
    ids.push((control.len(), 0));
    for pair in ids.windows(2) {
        let [(from, id), (to, _)] = *pair else { continue };
        let bytes = control.get(from..to).unwrap_or_default().to_vec();
        match (id, bytes.get(1)) {
            (0x00 | 0x10, _) => last = to,
            // Steps while waiting, and at the end.
            (0x08, Some(b'X')) => behind.push(Step::Control(bytes)),
            (0x08, Some(b'I')) if ahead.is_empty() => ahead.push(Step::Control(bytes)),
            (0x08, Some(b'I')) => {}
            _ => behind.push(Step::Control(bytes)),
        }
    }
    let hello = control.get(..last).unwrap_or_default().to_vec();
    let mut steps = vec![Step::Control(hello), Step::AwaitConfiguration];
    steps.append(&mut ahead);
    steps.push(Step::Await(Command::Start));
    let mut number = 0;
    for name in ["data0", "data1"] {
        let path = format!("bytefrog/{scenario}.{name}.a2h.bin");
        if crate::shared_dir().is_some_and(|shared| !shared.join("data").join(&path).is_file()) {
            continue;
        }
        let data = crate::shared_data(path)?;
        steps.push(Step::ConnectData);
        steps.push(Step::Data(number, data.get(2..).unwrap_or_default().to_vec()));
        number += 1;
    }
    steps.append(&mut behind);
    steps.extend((0..number).map(Step::CloseData));
    steps.push(Step::CloseControl);
    Ok((dialect, steps))
}
