//! A Bytefrog agent without a JVM, which follows a script: right, wrong, or as a recorded agent did.
//!
//! Owns: [`FakeAgent`]. Its steps are run in order, on the thread that calls; each that waits has a limit. It says what it is
//! told to say, also what the protocol forbids: the agent's state machine only reads what HQ answers.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::agent::{Control, Data, Event, Reply};
use runtap_bytefrog_proto::{
    Command, Configuration, Decoder, Dialect, Message, Mode, ModeByte, Stream, to_bytes,
};

use crate::Skip;

/// The longest wait of a step.
const LIMIT: Duration = Duration::from_secs(20);

/// Something that an agent does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Says hello with its dialect.
    Hello,
    /// Says hello with a project (version 4).
    ProjectHello(u32),
    /// Waits for a configuration.
    AwaitConfiguration,
    /// Waits for a command.
    Await(Command),
    /// Waits for an error, or the end of the control connection.
    AwaitEnd,
    /// Says a mode.
    Heartbeat(Mode),
    /// Says any bytes on the control connection.
    Control(Vec<u8>),
    /// Dials a data connection, says data hello with the run of the configuration and waits for the reply.
    Dial,
    /// The same with another run, without waiting.
    DialAs(u8),
    /// Says any bytes on a data connection, by its number from 0.
    Data(usize, Vec<u8>),
    /// Closes a data connection.
    CloseData(usize),
    /// Closes the control connection.
    CloseControl,
    /// Does nothing for a while.
    Sleep(Duration),
}

/// An agent, and what it has heard.
#[derive(Debug)]
pub struct FakeAgent {
    address: SocketAddr,
    dialect: Dialect,
    machine: Control,
    control: TcpStream,
    data: Vec<Option<TcpStream>>,
    /// What HQ has said on the control connection, byte for byte.
    pub heard: Vec<u8>,
    /// The configurations that it has got.
    pub configurations: Vec<Configuration>,
    /// The commands that it has got.
    pub commands: Vec<Command>,
    /// Why HQ does not want it, or has ended the trace.
    pub errors: Vec<String>,
    /// What an agent says hello with again that was refused.
    pub fallback: Option<Dialect>,
    /// What HQ has answered on data connections.
    pub replies: Vec<Reply>,
    ended: bool,
}

/// The bytes of a message.
///
/// # Panics
/// The dialect does not have it.
pub fn say(dialect: Dialect, message: &Message<'_>) -> Vec<u8> {
    to_bytes(message, dialect).expect("the dialect has this message")
}

impl FakeAgent {
    /// Dials HQ.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn dial(address: SocketAddr, dialect: Dialect) -> io::Result<Self> {
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
    /// A connection that HQ has closed, or something that was waited for and did not come in time.
    pub fn run(&mut self, steps: &[Step]) -> io::Result<()> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    /// A data connection by its number from 0, for somebody else to write to: it is not the agent's any more.
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
            Step::Dial => {
                let run = self.configurations.last().map_or(0, |configuration| configuration.run);
                self.dial_data(run, true)
            }
            Step::DialAs(run) => self.dial_data(*run, false),
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

    /// Reads the control connection until something has come.
    fn listen_until(&mut self, done: impl Fn(&Self) -> bool) -> io::Result<()> {
        let began = Instant::now();
        self.control.set_read_timeout(Some(Duration::from_millis(50)))?;
        let mut buffer = [0; 4096];
        while !done(self) {
            if began.elapsed() > LIMIT {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "what was waited for did not come"));
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

    fn dial_data(&mut self, run: u8, wait: bool) -> io::Result<()> {
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

/// What a recorded agent has said, as steps that say it again: everything of control and data connections, which begin when
/// HQ has sent a configuration and start. The run in data hello is the one that HQ gives now.
///
/// # Errors
/// No shared folder.
///
/// # Panics
/// The recording can't be read.
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
            // While it waits, and at the end.
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
        steps.push(Step::Dial);
        steps.push(Step::Data(number, data.get(2..).unwrap_or_default().to_vec()));
        number += 1;
    }
    steps.append(&mut behind);
    steps.extend((0..number).map(Step::CloseData));
    steps.push(Step::CloseControl);
    Ok((dialect, steps))
}
