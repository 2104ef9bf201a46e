//! The profile of a running process, updated while its samples arrive.
//!
//! A runtime sends the names of methods that it compiles, and at the end of a session those of all others. So a second, short session
//! provides the names of what was compiled before, and is repeated if code without names is hot: precompiled code is loaded without
//! an event.

use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use runtap_clr::{LiveLimits, LiveProfile, ProfileOptions};
use runtap_diag::{Chunks, Client, Error as ClientError, Level, Provider, SessionConfig};
use runtap_model::{Trace, UtcNs, View};
use runtap_nettrace::Reader;
use runtap_os::output::{PendingFile, numbered, plain_name};
use runtap_sinks::{Format, Options};
use runtap_target::ResolvedTarget;
use tokio::sync::mpsc;

use crate::error::Error;
use crate::providers::{CLR_PROVIDER, METHOD_NAMES, Profile, profile};
use crate::stops::Stops;
use crate::tap::{Drained, tap_all};
use crate::threads::ThreadNames;

/// The buffer of the runtime for samples in MB. They are received ten times a second.
const BUFFER_MB: u32 = 64;
/// The minimum time between two sessions for names.
const NAMES_INTERVAL: Duration = Duration::from_secs(15);
/// The minimum time between two readings of the names of threads.
const THREAD_NAMES_INTERVAL: Duration = Duration::from_secs(1);
/// Names are received again if more than one in this number of samples ends in code without a name.
const UNNAMED_SHARE: u64 = 20;
/// The maximum number of parts of the window.
const MAX_SLICES: usize = 10_000;

/// The settings of a live profile.
#[derive(Debug, Clone, Copy)]
pub struct LiveProfileRequest {
    /// The time between two updates.
    pub interval: Duration,
    /// The length of the time that the profile covers.
    pub window: Duration,
    /// The time after which to stop. If `None`, until a stop is requested.
    pub duration: Option<Duration>,
}

/// A live profile at a point in time.
#[derive(Debug)]
pub struct LiveProfileUpdate {
    /// The samples of the window, each weighted with the time for which it stands.
    pub trace: Trace,
    /// The end of the window.
    pub time: UtcNs,
    /// The time that the window covers.
    pub covers: Duration,
    /// The number of events that the target has dropped since the start.
    pub lost: u64,
    /// The number of samples that were left out since the start, because memory is limited.
    pub left_out: u64,
    /// The number of methods whose names are known.
    pub methods: usize,
    /// Whether names of methods are being received.
    pub is_naming: bool,
    /// Whether the runtime is known to mark every sample correctly as running or waiting.
    pub has_exact_states: bool,
}

/// The end of a live profile.
#[derive(Debug)]
pub struct LiveProfileEnd {
    /// The number of updates.
    pub updates: u64,
    /// The number of events that the target has dropped.
    pub lost: u64,
    /// Whether the stream is complete.
    pub is_whole: bool,
    /// The error that occurred while reading the stream.
    pub read_error: Option<ClientError>,
    /// The error that occurred while receiving names.
    pub names_error: Option<ClientError>,
    /// The error of the function that receives updates.
    pub write_error: Option<io::Error>,
}

/// Samples a process and passes its profile to `receive` after each interval, on another thread. Returns `None` if a stop was
/// requested before the session started, or if the session was abandoned.
///
/// # Errors
/// Fails if the session can't be started.
pub async fn live_profile(
    subject: ResolvedTarget,
    request: LiveProfileRequest,
    stops: &Stops,
    receive: impl FnMut(LiveProfileUpdate) -> io::Result<()> + Send + 'static,
) -> Result<Option<LiveProfileEnd>, Error> {
    let client = subject.client.clone();
    let pid = subject.process.as_ref().map(|process| process.pid);
    let mut taps = tap_all(vec![subject], &session(), stops).await;
    let Some((_, tap)) = taps.pop() else { return Ok(None) };
    let Some(tap) = tap? else { return Ok(None) };
    let (to_names, wanted) = mpsc::unbounded_channel();
    let (to_profile, names) = channel();
    let naming = tokio::spawn(receive_names(client, wanted, to_profile));
    let follower = Follower::new(pid, request, to_names, names);
    let drained = tap.drain(request.duration, stops, move |chunks| follower.follow(chunks, receive)).await;
    naming.abort();
    Ok(drained?.map(|Drained { made, .. }| made))
}

/// Returns the session for samples and the names of methods that are compiled meanwhile.
fn session() -> SessionConfig {
    let mut providers = profile("dotnet-sampled-thread-time").map(Profile::providers).unwrap_or_default();
    providers.push(Provider::new(CLR_PROVIDER, METHOD_NAMES, Level::Verbose));
    SessionConfig { buffer_mb: BUFFER_MB, rundown_keyword: 0, ..SessionConfig::new(providers) }
}

/// What a session for names sends to the profile.
enum NamingSignal {
    Bytes(Vec<u8>),
    End(Option<ClientError>),
}

/// Runs a session for names for each request.
async fn receive_names(
    client: Client,
    mut wanted: mpsc::UnboundedReceiver<()>,
    profile: Sender<NamingSignal>,
) {
    while wanted.recv().await.is_some() {
        let end = receive_names_once(&client, &profile).await.err();
        if profile.send(NamingSignal::End(end)).is_err() {
            return;
        }
    }
}

/// Starts a session without events, and stops it at once: at its end, the runtime sends all names.
async fn receive_names_once(client: &Client, profile: &Sender<NamingSignal>) -> Result<(), ClientError> {
    let nothing = Provider::new(CLR_PROVIDER, 0, Level::Critical);
    let config = SessionConfig { stackwalk: false, ..SessionConfig::new(vec![nothing]) };
    let mut session = client.start_session(&config).await?;
    let stopping = session.stop();
    while let Some(chunk) = session.next_chunk().await? {
        if profile.send(NamingSignal::Bytes(chunk.to_vec())).is_err() {
            return Ok(());
        }
    }
    stopping.await.map(drop)
}

/// Follows the streams of a process, on a thread of its own.
struct Follower {
    pid: Option<u32>,
    request: LiveProfileRequest,
    profile: LiveProfile,
    reader: Reader,
    options: ProfileOptions,
    /// The time at which the names of threads were read.
    threads_named: Option<Instant>,
    to_names: mpsc::UnboundedSender<()>,
    names: Receiver<NamingSignal>,
    /// The reader of the stream with names that is being received.
    names_reader: Option<Reader>,
    /// The time of the last request for names.
    names_requested: Instant,
    names_error: Option<ClientError>,
}

impl Follower {
    fn new(
        pid: Option<u32>,
        request: LiveProfileRequest,
        to_names: mpsc::UnboundedSender<()>,
        names: Receiver<NamingSignal>,
    ) -> Self {
        let slices = request.window.as_nanos().div_ceil(request.interval.as_nanos().max(1));
        let slices = usize::try_from(slices).unwrap_or(usize::MAX).min(MAX_SLICES);
        let mut follower = Self {
            pid,
            request,
            profile: LiveProfile::new(slices.saturating_add(1), LiveLimits::default()),
            reader: Reader::new(),
            options: ProfileOptions::default(),
            threads_named: None,
            to_names,
            names,
            names_reader: None,
            names_requested: Instant::now(),
            names_error: None,
        };
        follower.request_names();
        follower
    }

    fn request_names(&mut self) {
        self.names_reader = self.to_names.send(()).is_ok().then(Reader::new);
        self.names_requested = Instant::now();
    }

    fn follow(
        mut self,
        mut chunks: Chunks,
        mut receive: impl FnMut(LiveProfileUpdate) -> io::Result<()>,
    ) -> LiveProfileEnd {
        let start = Instant::now();
        let mut next = start + self.request.interval;
        let (mut updates, mut read_error, mut write_error) = (0, None, None);
        let mut is_open = true;
        while is_open {
            match chunks.blocking_next_within(next.saturating_duration_since(Instant::now())) {
                Some(Ok(Some(chunk))) => self.feed(&chunk),
                Some(Ok(None)) => is_open = false,
                Some(Err(error)) => {
                    read_error = Some(error);
                    is_open = false;
                }
                None => {}
            }
            self.take_names();
            let now = Instant::now();
            // A program that ends within the first interval is shown, too.
            if now < next && (is_open || updates > 0) {
                continue;
            }
            // Without the intervals that were missed.
            next = (next + self.request.interval).max(now);
            let update = self.update(start.elapsed());
            self.request_names_again(&update.trace);
            if let Err(error) = receive(update) {
                write_error = Some(error);
                break;
            }
            updates += 1;
            self.profile.next_slice();
        }
        self.reader.finish();
        self.feed(&[]);
        LiveProfileEnd {
            updates,
            lost: self.reader.lost(),
            is_whole: self.reader.partial().is_none(),
            read_error,
            names_error: self.names_error,
            write_error,
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        let Self { reader, profile, .. } = self;
        let mut items = reader.items(bytes);
        // After a damaged block, reading continues.
        while items.for_each(|item| profile.item(&item)).is_err() {}
    }

    /// Learns the names that have arrived.
    fn take_names(&mut self) {
        while let Ok(signal) = self.names.try_recv() {
            match signal {
                NamingSignal::Bytes(bytes) => {
                    let Some(reader) = &mut self.names_reader else { continue };
                    let mut items = reader.items(&bytes);
                    while items.for_each(|item| self.profile.learn(&item)).is_err() {}
                }
                NamingSignal::End(error) => {
                    self.names_reader = None;
                    self.names_error = error;
                }
            }
        }
    }

    fn update(&mut self, elapsed: Duration) -> LiveProfileUpdate {
        if let Some(pid) = self.pid
            && self.threads_named.is_none_or(|time| time.elapsed() >= THREAD_NAMES_INTERVAL)
        {
            self.options.thread_names = ThreadNames::of(pid);
            self.threads_named = Some(Instant::now());
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        LiveProfileUpdate {
            trace: self.profile.trace(&self.options, self.pid),
            time: UtcNs(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)),
            covers: elapsed.min(self.request.window),
            lost: self.reader.lost(),
            left_out: self.profile.left_out(),
            methods: self.profile.methods(),
            is_naming: self.names_reader.is_some(),
            has_exact_states: self.profile.has_exact_states(),
        }
    }

    /// Requests names again if much of the time is spent in code without a name.
    fn request_names_again(&mut self, trace: &Trace) {
        if self.names_reader.is_some() || self.names_requested.elapsed() < NAMES_INTERVAL {
            return;
        }
        let (mut all, mut unnamed) = (0_u64, 0_u64);
        for (_, thread) in trace.threads() {
            for sample in thread.samples(View::Cpu) {
                let frame = sample.stack.map(|stack| trace.frame(trace.stacks().get(stack).frame));
                all = all.saturating_add(sample.weight);
                if frame.is_some_and(|frame| !frame.has_name()) {
                    unnamed = unnamed.saturating_add(sample.weight);
                }
            }
        }
        if unnamed > all / UNNAMED_SHARE {
            self.request_names();
        }
    }
}

/// Writes a live profile as a flame graph into the current directory, and returns a message about it.
pub fn save_profile(trace: &Trace, view: View) -> String {
    let process = trace.process();
    let name = plain_name(process.name.as_deref().unwrap_or("process"));
    let base = process.pid.map_or_else(|| name.clone(), |pid| format!("{name}_{pid}"));
    let format = Format::Flamegraph;
    let write = || -> Result<_, Box<dyn std::error::Error>> {
        let pending = PendingFile::within(Path::new(""))?;
        format.write(trace, BufWriter::new(pending.file()), &Options::new(view))?;
        Ok(pending.settle_whole(|n| numbered(Path::new(&base), n, format.extension()))?)
    };
    match write() {
        Ok(path) => format!("Wrote {}", path.display()),
        Err(error) => format!("The flame graph was not written: {error}"),
    }
}
