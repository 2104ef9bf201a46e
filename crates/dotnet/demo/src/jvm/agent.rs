//! The connections of the agent, and the pace of its program.
//!
//! A single thread receives commands, sends heartbeats, and runs the program step by step. Without a collector the program runs
//! untraced.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use runtap_bytefrog_proto::agent::{Control, Data, Event, Reply};
use runtap_bytefrog_proto::f1::Process;
use runtap_bytefrog_proto::{ClassOutcome, Command, Configuration, Dialect, JavaString, Mode};

use super::encoder::{Encoder, Outgoing, Truth};
use super::shop::{CLASSES, Shop};

/// The time between two steps of the program.
const STEP: Duration = Duration::from_millis(20);
/// Time-out for connecting to a collector, reading its answers, and sending to it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the program and sends its events to the collector. Returns what was sent.
pub(super) fn run(hq: SocketAddr, dialect: Dialect, lifetime: Duration, stop: &dyn Fn() -> bool) -> Truth {
    // The lifetime starts with the program, because the time until a collector starts it is arbitrary.
    let began = Cell::new(Instant::now());
    let is_over = || stop() || began.get().elapsed() >= lifetime;
    let mut truth = Truth::default();
    let mut speaks = Some(dialect);
    while let Some(dialect) = speaks.take() {
        // If the collector disconnects, the trace ends but the program continues.
        if let Ok(mut agent) = Agent::dial(hq, dialect, &is_over) {
            let _ = agent.trace(&is_over, &|| began.set(Instant::now()));
            speaks = agent.fallback;
            truth = agent.encoder.truth;
        }
    }
    truth
}

struct Agent {
    hq: SocketAddr,
    control: Control,
    socket: TcpStream,
    data: Vec<TcpStream>,
    encoder: Encoder,
    shop: Shop,
    interval: Duration,
    beat: Instant,
    /// The version for the next greeting, if the collector rejected this one.
    fallback: Option<Dialect>,
    over: bool,
}

impl Agent {
    fn dial(hq: SocketAddr, dialect: Dialect, is_over: &dyn Fn() -> bool) -> io::Result<Self> {
        let socket = loop {
            match TcpStream::connect_timeout(&hq, TIMEOUT) {
                Ok(socket) => break socket,
                Err(error) if is_over() => return Err(error),
                Err(_) => sleep(Duration::from_millis(200)),
            }
        };
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        socket.set_read_timeout(Some(Duration::from_millis(5)))?;
        let mut agent = Self {
            hq,
            control: Control::new(dialect),
            socket,
            data: Vec::new(),
            encoder: Encoder::new(dialect),
            shop: Shop::default(),
            interval: Duration::from_secs(1),
            beat: Instant::now(),
            fallback: None,
            over: false,
        };
        let hello = agent.control.hello(None).map_err(io::Error::other)?;
        agent.socket.write_all(&hello)?;
        Ok(agent)
    }

    /// Runs from the configuration to the end.
    fn trace(&mut self, is_over: &dyn Fn() -> bool, starts: &dyn Fn()) -> io::Result<()> {
        while !self.over && !self.control.state().started {
            if is_over() {
                return Ok(());
            }
            self.receive()?;
            self.heartbeat()?;
        }
        if self.over {
            return Ok(());
        }
        starts();
        let began = Instant::now();
        let events = self.shop.open();
        self.program(&events)?;
        let mut paused = Duration::ZERO;
        let mut next = began;
        while !self.over && !is_over() {
            self.receive()?;
            self.heartbeat()?;
            let now = Instant::now();
            if self.control.state().mode == Mode::Paused {
                // The program is paused in its next call.
                paused += now.saturating_duration_since(next);
                next = now;
            } else if now >= next {
                next = now + STEP;
                let events = self.shop.round(nanoseconds(began.elapsed().saturating_sub(paused)));
                self.program(&events)?;
            }
        }
        let events = self.shop.close();
        self.program(&events)?;
        self.end()
    }

    /// Sends the events of the program, unless tracing is suspended.
    fn program(&mut self, events: &[super::shop::Event]) -> io::Result<()> {
        if self.control.state().mode == Mode::Tracing {
            let out = self.encoder.encode(events, self.data.len()).map_err(io::Error::other)?;
            return self.send(&out);
        }
        self.encoder.truth.unheard(events);
        Ok(())
    }

    fn send(&mut self, out: &Outgoing) -> io::Result<()> {
        for (socket, bytes) in self.data.iter_mut().zip(out) {
            socket.write_all(bytes)?;
        }
        Ok(())
    }

    /// Receives data of the collector for a few milliseconds.
    fn receive(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        let size = match self.socket.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(size) => size,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => 0,
            Err(error) => return Err(error),
        };
        let output = self.control.handle_bytes(buffer.get(..size).unwrap_or_default());
        self.socket.write_all(&output.transmit)?;
        self.over |= output.close;
        for event in output.events {
            match event {
                Event::Configured(configuration) => self.configured(&configuration)?,
                Event::Command(command, _) => self.commanded(command)?,
                Event::Rejected { fallback, .. } => self.fallback = fallback,
                _ => {}
            }
        }
        Ok(())
    }

    fn configured(&mut self, configuration: &Configuration) -> io::Result<()> {
        self.interval =
            Duration::from_millis(u64::try_from(configuration.heartbeat_interval).unwrap_or(1000));
        if self.control.dialect() == Dialect::F1 && self.data.is_empty() {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let (jvm, main) = (JavaString::from("none: the demo of runtap"), JavaString::from("shop.Main"));
            let process = Process {
                pid: std::process::id(),
                wall: nanoseconds(now),
                resolution: 1,
                jvm: jvm.as_java_str(),
                main: main.as_java_str(),
            };
            let said = self.control.process(&process).map_err(io::Error::other)?;
            self.socket.write_all(&said)?;
        }
        // Send the first heartbeat at once.
        self.beat = Instant::now();
        self.heartbeat()?;
        self.data.clear();
        for _ in 0..configuration.data_senders.max(1) {
            let socket = self.connect_data(configuration.run)?;
            self.data.push(socket);
        }
        Ok(())
    }

    fn connect_data(&self, run: u8) -> io::Result<TcpStream> {
        let mut socket = TcpStream::connect_timeout(&self.hq, TIMEOUT)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        socket.write_all(&Data::hello(run))?;
        let (mut data, mut byte) = (Data::new(self.control.dialect()), [0]);
        loop {
            socket.read_exact(&mut byte)?;
            match data.handle_bytes(&byte) {
                None => {}
                Some(Reply::Ready) => return Ok(socket),
                Some(_) => return Err(io::ErrorKind::ConnectionRefused.into()),
            }
        }
    }

    fn commanded(&mut self, command: Command) -> io::Result<()> {
        match command {
            Command::Start => {
                for class in CLASSES {
                    let said = self.control.class(ClassOutcome::Transformed, &class.into());
                    self.socket.write_all(&said.map_err(io::Error::other)?)?;
                }
            }
            // Before the start nothing was recorded, so nothing is interrupted.
            Command::Suspend if self.control.state().started => {
                if let Ok(said) = self.control.data_break(self.encoder.next()) {
                    self.socket.write_all(&said)?;
                }
                let out = self.encoder.dropped(0, self.data.len()).map_err(io::Error::other)?;
                self.send(&out)?;
            }
            Command::Stop => self.over = true,
            _ => {}
        }
        self.beat = Instant::now();
        self.heartbeat()
    }

    fn heartbeat(&mut self) -> io::Result<()> {
        if Instant::now() < self.beat || self.control.configuration().is_none() {
            return Ok(());
        }
        self.beat = Instant::now() + self.interval;
        let said = self.control.heartbeat(0).map_err(io::Error::other)?;
        self.socket.write_all(&said)
    }

    /// Announces the end and closes the connections, data connections first.
    fn end(&mut self) -> io::Result<()> {
        self.control.shut_down();
        self.beat = Instant::now();
        self.heartbeat()?;
        self.data.clear();
        self.socket.shutdown(Shutdown::Write)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
