//! A test application that only sends results, as fast as it gets replies: `application COUNT A-MESSAGE BYTES PAUSE
//! FOLDER` and the platform's options.
//!
//! Messages are encoded before the time measurement starts, in batches if all together would be large: the memory of
//! this process may be added to its runner's.

use std::fs;
use std::io::{Read as _, Write as _};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use runtap_mtp_proto::host::{Connection, Reply};
use runtap_mtp_proto::{
    DiscoveredTest, DiscoveredTests, Handshake, HandshakeKey, Message, SessionEvent, SessionEventType,
    SuccessfulTest, TestResults, TestState,
};

/// The frame of a void reply.
const VOID: [u8; 8] = [4, 0, 0, 0, 0, 0, 0, 0];
const INSTANCE: &str = "1";
const SESSION: &str = "session";
/// Maximum bytes of messages encoded at a time.
const BATCH: usize = 64 << 20;
const SMALL_BATCH: usize = 1 << 20;

/// Measurements of an application.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured {
    /// Time from the first result to the last reply, without encoding and pauses.
    pub(crate) sending: Duration,
    /// The longest wait for a reply.
    pub(crate) longest: Duration,
}

impl Measured {
    /// Reads the measurements of the applications that were told to write them into this folder.
    pub(crate) fn read_all(folder: &Path) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(folder)? {
            let text = fs::read_to_string(entry?.path())?;
            let mut numbers = text.split(' ').map(|number| number.parse().map(Duration::from_nanos));
            let mut next = || numbers.next().context("two numbers").and_then(|it| Ok(it?));
            all.push(Self { sending: next()?, longest: next()? });
        }
        Ok(all)
    }
}

pub(crate) fn play(words: &[&str], lists: bool) -> Result<()> {
    let [count, each, bytes, pause, folder, options @ ..] = words else {
        bail!("application COUNT A-MESSAGE BYTES PAUSE FOLDER OPTIONS…")
    };
    let (count, each, bytes) = (count.parse::<usize>()?, each.parse::<usize>()?.max(1), bytes.parse()?);
    let pause = Duration::from_micros(pause.parse()?);
    let socket = options.iter().skip_while(|word| **word != "--dotnet-test-pipe").nth(1);
    // Without a runner, there is nothing to do.
    let Some(socket) = socket else { return Ok(()) };
    let mut host = Host::connect(Path::new(socket), lists)?;
    host.session(SessionEventType::START)?;
    let output = "x".repeat(bytes);
    let message = |execution: &str, numbers: Range<usize>| {
        if lists { listed(execution, numbers) } else { results(execution, numbers, &output) }
    };
    let size = if count * (bytes + 100) > BATCH { SMALL_BATCH } else { BATCH };
    let mut measured = Measured::default();
    let mut next = 0;
    while next < count {
        let mut frames = Vec::new();
        let mut encoded = 0;
        while next < count && encoded < size {
            let until = (next + each).min(count);
            frames.push(message(&host.execution, next..until).to_frame()?);
            encoded += frames.last().map_or(0, Vec::len);
            next = until;
        }
        for frame in &frames {
            let since = Instant::now();
            host.send(frame)?;
            let took = since.elapsed();
            measured.sending += took;
            measured.longest = measured.longest.max(took);
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
        }
    }
    host.session(SessionEventType::END)?;
    if *folder != "-" {
        let text = format!("{} {}", measured.sending.as_nanos(), measured.longest.as_nanos());
        fs::write(Path::new(folder).join(std::process::id().to_string()), text)?;
    }
    Ok(())
}

/// A connection after its handshake.
struct Host {
    stream: UnixStream,
    execution: String,
}

impl Host {
    fn connect(socket: &Path, lists: bool) -> Result<Self> {
        let mut stream = UnixStream::connect(socket)?;
        let execution =
            std::env::var("TESTINGPLATFORM_DOTNETTEST_EXECUTIONID").unwrap_or_else(|_| "1".to_owned());
        let mut connection = Connection::data();
        let mode = if lists { "discover" } else { "run" };
        let handshake = handshake(&execution).with(HandshakeKey::EXECUTION_MODE, mode);
        stream.write_all(&connection.handshake(handshake)?)?;
        let mut buffer = [0; 4096];
        loop {
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                bail!("the handshake has no reply");
            }
            match connection.handle_bytes(buffer.get(..count).unwrap_or_default())? {
                None => {}
                Some(Reply::Accepted { .. }) => return Ok(Self { stream, execution }),
                Some(reply) => bail!("the reply to the handshake is {reply:?}"),
            }
        }
    }

    fn session(&mut self, kind: SessionEventType) -> Result<()> {
        self.send(&session(&self.execution, kind).to_frame()?)
    }

    /// Sends a frame and waits for its reply.
    fn send(&mut self, frame: &[u8]) -> Result<()> {
        self.stream.write_all(frame)?;
        let mut reply = [0; VOID.len()];
        self.stream.read_exact(&mut reply)?;
        if reply != VOID {
            bail!("the reply is {reply:?}");
        }
        Ok(())
    }
}

pub(super) fn handshake(execution: &str) -> Handshake {
    Handshake::new()
        .with(HandshakeKey::PID, std::process::id().to_string())
        .with(HandshakeKey::ARCHITECTURE, "X64")
        .with(HandshakeKey::FRAMEWORK, "native")
        .with(HandshakeKey::OS, "Linux")
        .with(HandshakeKey::SUPPORTED_VERSIONS, "1.0.0")
        .with(HandshakeKey::HOST_TYPE, "TestHost")
        .with(HandshakeKey::MODULE_PATH, "bench")
        .with(HandshakeKey::EXECUTION_ID, execution)
        .with(HandshakeKey::INSTANCE_ID, INSTANCE)
        .with(HandshakeKey::EXECUTION_MODE, "run")
}

pub(super) fn session(execution: &str, kind: SessionEventType) -> Message {
    Message::SessionEvent(SessionEvent {
        session_type: Some(kind),
        session_uid: Some(SESSION.to_owned()),
        execution_id: Some(execution.to_owned()),
    })
}

/// Encodes these results in one message.
pub(super) fn results(execution: &str, numbers: Range<usize>, output: &str) -> Message {
    Message::TestResults(TestResults {
        execution_id: Some(execution.to_owned()),
        instance_id: Some(INSTANCE.to_owned()),
        successful: Some(numbers.map(|number| passed(number, output)).collect()),
        failed: None,
    })
}

/// Encodes these discovered tests in one message.
fn listed(execution: &str, numbers: Range<usize>) -> Message {
    let test = |number| DiscoveredTest {
        uid: Some(uid(number)),
        display_name: Some(name(number)),
        namespace: Some("Bench".to_owned()),
        type_name: Some("Tests".to_owned()),
        ..DiscoveredTest::default()
    };
    Message::DiscoveredTests(DiscoveredTests {
        execution_id: Some(execution.to_owned()),
        instance_id: Some(INSTANCE.to_owned()),
        tests: Some(numbers.map(test).collect()),
    })
}

fn uid(number: usize) -> String {
    format!("test-{number:06}")
}

fn name(number: usize) -> String {
    format!("Bench.Tests.Case({number})")
}

fn passed(number: usize, output: &str) -> SuccessfulTest {
    SuccessfulTest {
        uid: Some(uid(number)),
        display_name: Some(name(number)),
        state: Some(TestState::PASSED),
        duration: Some(10_000),
        reason: Some(String::new()),
        standard_output: Some(output.to_owned()),
        error_output: Some(String::new()),
        session_uid: Some(SESSION.to_owned()),
        ..SuccessfulTest::default()
    }
}
