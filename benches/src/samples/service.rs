//! The web service of the examples as another process: requests are sent as fast as they are answered, with and without
//! a session.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use runtap_diag::{Level, Provider};
use runtap_transport::Endpoint;
use tempfile::TempDir;

use super::rate;
use crate::paired::{self, Cost};
use crate::session::CountedSession;

const CONNECTIONS: usize = 2;
/// Requests per connection and measurement.
const REQUESTS: u64 = 1_500;
/// The runtime's own provider of CPU samples.
const SAMPLES: &str = "Microsoft-DotNETCore-SampleProfiler";
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Service {
    child: Child,
    clock: ClockId,
    connections: Vec<Connection>,
    endpoint: Endpoint,
    session: Option<CountedSession>,
    _directory: TempDir,
}

struct Connection(BufReader<TcpStream>);

impl Service {
    pub(super) fn start(program: &Path) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut command = Command::new(program);
        command.env("TMPDIR", directory.path()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let mut said = String::new();
        BufReader::new(child.stdout.take().context("it prints nothing")?).read_line(&mut said)?;
        let port: u16 = said.trim().strip_prefix("listening ").context("it does not listen")?.parse()?;
        let connect = |_| Connection::new(port);
        let connections = (0..CONNECTIONS).map(connect).collect::<Result<_>>()?;
        let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(i32::try_from(child.id())?))?;
        let endpoint = Endpoint::unix(socket(directory.path())?);
        Ok(Self { child, clock, connections, endpoint, session: None, _directory: directory })
    }

    /// Returns the cost of sampling, and the number of samples of its threads per second.
    pub(super) fn measure(&mut self, pairs: usize) -> Result<(Cost, f64)> {
        let (mut samples, mut time) = (0, Duration::ZERO);
        let cost = paired::measure(pairs, |with| {
            self.switch(with)?;
            self.requests(REQUESTS / 10)?;
            let (start, before) = (Instant::now(), self.events());
            let used = self.time()?;
            self.requests(REQUESTS)?;
            let used = self.time()?.saturating_sub(used);
            if with {
                samples += self.events() - before;
                time += start.elapsed();
            }
            Ok(used)
        })?;
        self.switch(false)?;
        Ok((cost, rate(samples, time)))
    }

    /// Returns the processor time of all its threads.
    fn time(&self) -> Result<Duration> {
        Ok(clock_gettime(self.clock)?.into())
    }

    fn events(&self) -> u64 {
        self.session.as_ref().map_or(0, CountedSession::events)
    }

    /// Starts or stops the session, and waits until the service confirms it.
    fn switch(&mut self, on: bool) -> Result<()> {
        match (on, self.session.take()) {
            (true, None) => {
                let provider = Provider::new(SAMPLES, 0, Level::Informational);
                let session = CountedSession::start(self.endpoint.clone(), provider)?;
                let until = Instant::now() + PATIENCE;
                while session.events() == 0 {
                    if Instant::now() > until {
                        bail!("the service sends no samples");
                    }
                    thread::sleep(Duration::from_millis(1));
                }
                self.session = Some(session);
            }
            (false, Some(session)) => {
                session.stop()?;
            }
            (_, same) => self.session = same,
        }
        Ok(())
    }

    fn requests(&mut self, count: u64) -> Result<()> {
        thread::scope(|scope| {
            let all: Vec<_> = self
                .connections
                .iter_mut()
                .map(|connection| scope.spawn(|| (0..count).try_for_each(|id| connection.request(id))))
                .collect();
            all.into_iter().try_for_each(|one| one.join().map_err(|_panic| anyhow!("a client has failed"))?)
        })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Connection {
    fn new(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(stream)))
    }

    fn request(&mut self, order: u64) -> Result<()> {
        let request = format!("GET /orders/{order} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        self.0.get_mut().write_all(request.as_bytes())?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line)? == 0 {
                bail!("the service has closed the connection");
            }
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse()?;
                }
                _ if line == "\r\n" => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        Ok(self.0.read_exact(&mut body)?)
    }
}

/// Returns the diagnostic socket of the service.
fn socket(directory: &Path) -> Result<std::path::PathBuf> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with("-socket")) {
                return Ok(path);
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
    bail!("the service has no diagnostic port")
}
