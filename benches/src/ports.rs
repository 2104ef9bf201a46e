//! `runtap trace --children` with two hundred runtimes on one port: the waiting time of each, and the memory of runtap.
//!
//! The runtimes are servers in this process, so that the moment at which a runtime connects can be taken here. Each is
//! suspended, writes events after it is resumed, and sends its method names at the end, like a small .NET program. All
//! of them connect at once, and all sessions are stopped at once.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use runtap_diag::Advertise;
use runtap_diag_server::{Builder, ConnectPort, Dispatcher, EventPipe, ProcessDescription};
use runtap_nettrace::Metadata;
use runtap_transport::Endpoint;
use runtap_wire::Writer;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use crate::cost::{self, Cost};
use crate::output::{self, Table, bar, median};

const RUNTIMES: u32 = 200;
const RUNS: usize = 5;
const SESSION: &str = "2s";
/// The number of method names that a runtime of .NET 10 with a small program sends: about 350 kB.
const METHODS: u32 = 2_500;
const EVERY: Duration = Duration::from_millis(50);
const PROVIDER: &str = "Bench-Events";
const MAX_WAIT: Duration = Duration::from_secs(1);
const MAX_RESIDENT: u64 = 30_000_000;

pub(crate) fn run(runtap: &Path) -> Result<()> {
    output::machine();
    let mut table = Table::new(&["", "median wait", "longest wait", "CPU", "peak resident", "recorded"]);
    let (mut longest, mut peaks) = (Duration::ZERO, Vec::new());
    for number in 1..=RUNS {
        let (waits, cost, bytes) = once(runtap)?;
        let most = waits.iter().max().copied().unwrap_or_default();
        longest = longest.max(most);
        peaks.push(cost.peak);
        table.row(&[
            format!("run {number}"),
            milliseconds(median(waits)),
            milliseconds(most),
            format!("{:.2} s", cost.cpu.as_secs_f64()),
            megabytes(cost.peak),
            megabytes(bytes),
        ]);
    }
    table.print(&format!("{RUNTIMES} runtimes connect to one port at once and are recorded for {SESSION}"));
    let peak = peaks.into_iter().max().unwrap_or_default();
    bar("each is resumed within 1 s of connecting", longest <= MAX_WAIT, &milliseconds(longest));
    bar("resident memory at most 30 MB", peak <= MAX_RESIDENT, &megabytes(peak));
    output::machine();
    Ok(())
}

/// Returns the waiting time of each runtime, the cost of runtap, and the bytes of all recordings.
fn once(runtap: &Path) -> Result<(Vec<Duration>, Cost, u64)> {
    let folder = tempfile::tempdir_in(runtap_testkit::workspace_root().join("target"))?;
    let port = folder.path().join("port");
    let recordings = folder.path().join("recordings");
    std::fs::create_dir(&recordings)?;
    let mut command = Command::new(runtap);
    command.args(["trace", "--quiet", "--children", "--duration", SESSION, "--providers", PROVIDER]);
    command.arg("--diagnostic-port").arg(format!("{},listen", port.display()));
    command.arg("-o").arg(recordings.join("x.nettrace"));
    let waits = Arc::new(Mutex::new(Vec::new()));
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cost = tokio.block_on(async {
        let mut runtimes = JoinSet::new();
        for n in 0..RUNTIMES {
            runtimes.spawn(runtime(n, port.clone(), Arc::clone(&waits)));
        }
        // Returns when every stream has ended.
        tokio::task::spawn_blocking(move || cost::of(&command)).await?
    })?;
    tokio.shutdown_background();
    let waits = waits.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut bytes = 0;
    let mut files = 0;
    for entry in std::fs::read_dir(&recordings)? {
        bytes += entry?.metadata()?.len();
        files += 1;
    }
    if (waits.len(), files) != (RUNTIMES as usize, RUNTIMES) {
        bail!("{} runtimes went on, {files} were recorded, of {RUNTIMES}", waits.len());
    }
    Ok((waits, cost, bytes))
}

/// Runs one runtime forever.
async fn runtime(n: u32, path: std::path::PathBuf, waits: Arc<Mutex<Vec<Duration>>>) -> Result<()> {
    let pipe = EventPipe::new();
    let mut event = Metadata::new(PROVIDER, 1, "Event");
    (event.keywords, event.level) = (1, 4);
    let event = pipe.define(event).context("an event")?;
    let mut method = Metadata::new("Microsoft-Windows-DotNETRuntimeRundown", 144, "");
    (method.version, method.keywords, method.level) = (2, 0x10, 4);
    let method = pipe.define(method).context("a method")?;
    pipe.on_rundown(move |out| {
        for id in 0..u64::from(METHODS) {
            let mut w = Writer::new();
            w.u64(id).u64(1).u64(0x7f00_0000_0000 + id * 0x100).u32(0x100).u32(0x0600_0000).u32(8 | 4 << 7);
            w.utf16z("Bench.Program").utf16z(&format!("Method{id}")).utf16z("void  ()").u16(0).u64(0);
            out.write(&method, w.as_bytes());
        }
    });
    let mut description = ProcessDescription::of_this_process().entry_assembly(format!("bench{n}"));
    description.info.process_id = u64::from(n + 1);
    let server = Builder::new(description).pipe(pipe).connect_port(ConnectPort::new(&path)).dispatcher();
    let (first_connection, connected) = tokio::sync::oneshot::channel();
    tokio::spawn(connect(server.for_port(1), Endpoint::unix(path), first_connection));
    let since: Instant = connected.await?;
    server.resumed().await;
    let waited = since.elapsed();
    waits.lock().unwrap_or_else(PoisonError::into_inner).push(waited);
    let mut tick = interval(EVERY);
    loop {
        tick.tick().await;
        event.write_here(&[0; 64]);
    }
}

/// Connects to the port, and again for each command; sends the time of the first connection.
async fn connect(
    server: Dispatcher,
    port: Endpoint,
    first_connection: tokio::sync::oneshot::Sender<Instant>,
) {
    let info = &server.description().info;
    let advertise = Advertise { runtime_cookie: info.runtime_cookie, process_id: info.process_id };
    let mut first_connection = Some(first_connection);
    loop {
        let Ok(mut stream) = port.connect(Duration::from_secs(1)).await else {
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        if stream.write_all(&advertise.to_bytes()).await.is_err() {
            continue;
        }
        if let Some(first_connection) = first_connection.take() {
            // The receiver waits for this message.
            let _ = first_connection.send(Instant::now());
        }
        if matches!(stream.readable().await, Ok(true)) {
            let server = server.clone();
            tokio::spawn(async move { server.serve(stream).await });
        }
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1e3)
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
