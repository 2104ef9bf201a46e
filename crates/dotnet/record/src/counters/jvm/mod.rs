//! Reads the counters of Java programs from the files in which their virtual machines keep them. The programs are not touched.

mod series;

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use runtap_clr::counters::CounterUpdate;
use runtap_discover::{PerfFile, System};
use runtap_os::in_a_thread;
use runtap_target::JvmTarget;
use runtap_wire::DecodeError;
use tokio::sync::oneshot;

pub(crate) use self::series::GROUPS;
use self::series::JvmSeries;
use super::CounterMonitor;
use crate::Error;
use crate::missing::Missing;
use crate::outcome::{Files, Part, RecordingOutcome};
use crate::stops::{StopRequest, Stops};

/// Poll interval of the exit of a program and of a stop.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// A reader of the counters of one program.
struct JvmReader {
    pid: u32,
    start_time: u64,
    file: PerfFile,
    series: JvmSeries,
    monitor: CounterMonitor,
    is_stopping: Arc<AtomicBool>,
}

/// The result of reading the counters of one program.
#[derive(Debug, Default)]
struct JvmEnd {
    readings: u64,
    duration: Duration,
    /// Why the latest counters could not be read, or not all of them.
    read_error: Option<DecodeError>,
    /// The error of reading the file or of writing the output.
    error: Option<io::Error>,
}

/// Reads the counters of a program until it exits or a stop is requested, and adds the result to the outcome.
pub(crate) async fn read(target: JvmTarget, monitor: CounterMonitor, stops: Stops) -> RecordingOutcome {
    let mut outcome = RecordingOutcome::default();
    match read_to_end(&target, monitor, &stops).await {
        Ok(None) => {}
        Ok(Some(part)) => {
            let is_closed = |missing: &Missing| match missing {
                Missing::NotWritten(error) => error.kind() == ErrorKind::BrokenPipe,
                _ => false,
            };
            outcome.is_unread = part.missing.as_ref().is_some_and(is_closed);
            outcome.made.push(Files { parts: vec![part], ..Files::default() });
        }
        Err(error) => outcome.failed.push((target.to_string(), error)),
    }
    outcome
}

/// Returns `None` if a stop was requested before anything was read.
async fn read_to_end(
    target: &JvmTarget,
    monitor: CounterMonitor,
    stops: &Stops,
) -> Result<Option<Part>, Error> {
    let (pid, start_time) = (target.pid(), target.process.start_time);
    // The process controls how long opening its files takes.
    let open = in_a_thread(move || System::current().perf_file(pid, start_time));
    let file = tokio::select! {
        biased;
        () = stops.stopping() => return Ok(None),
        file = open => file?,
    };
    let is_running = || System::current().is_running(pid, start_time);
    let file = file.ok_or_else(|| Error::NoJvmCounters { pid, is_running: is_running() })?;
    let mut requests = stops.listener();
    // A stop before that is not among the requests.
    let is_stopping = Arc::new(AtomicBool::new(stops.is_stopping()));
    monitor.start_jvm(pid, &target.name())?;
    let reader = JvmReader {
        pid,
        start_time,
        file,
        series: JvmSeries::default(),
        monitor,
        is_stopping: Arc::clone(&is_stopping),
    };
    let (tell, mut end) = oneshot::channel();
    let reader = thread::Builder::new().name("jvm".into()).spawn(move || {
        // The receiver is gone if a blocked reader was abandoned.
        let _ = tell.send(reader.run());
    })?;
    let end = loop {
        tokio::select! {
            end = &mut end => break end.ok(),
            request = requests.next() => {
                if request == StopRequest::Abandon {
                    break None;
                }
                is_stopping.store(true, Ordering::Release);
                reader.thread().unpark();
            }
        }
    };
    let Some(end) = end else {
        let missing = Some(Missing::Abandoned { sends_names: false });
        return Ok(Some(Part::of_jvm(pid, target.name(), JvmEnd::default().duration, missing)));
    };
    let JvmEnd { readings, duration, read_error, error } = end;
    let missing = match (error, read_error) {
        (Some(error), _) if error.kind() == ErrorKind::StorageFull => Some(Missing::DiskFull),
        (Some(error), _) => Some(Missing::NotWritten(error)),
        (None, Some(error)) if readings == 0 => return Err(Error::JvmCounters { pid, error }),
        (None, error) => error.map(Missing::Damaged),
    };
    Ok(Some(Part::of_jvm(pid, target.name(), duration, missing)))
}

impl JvmReader {
    fn run(mut self) -> JvmEnd {
        let started = Instant::now();
        let interval = self.monitor.interval();
        let (mut next, mut before): (Instant, Option<Instant>) = (started, None);
        let mut end = JvmEnd::default();
        let mut bytes = Vec::new();
        loop {
            let has_exited = match self.wait_until(next) {
                Wait::Stopped => break,
                Wait::Exited => true,
                Wait::Due => false,
            };
            let now = Instant::now();
            let interval_s = before.map(|before| (now - before).as_secs_f64());
            if let Err(error) = self.read(interval_s, has_exited, &mut bytes, &mut end) {
                end.error = Some(error);
                break;
            }
            if has_exited {
                break;
            }
            before = Some(now);
            // Intervals during which this machine was suspended are skipped.
            next = (next + interval).max(now);
        }
        self.monitor.end_process(self.pid);
        end.duration = started.elapsed();
        end
    }

    /// Reads the counters once, and passes them on.
    fn read(
        &mut self,
        interval_s: Option<f64>,
        is_end: bool,
        bytes: &mut Vec<u8>,
        end: &mut JvmEnd,
    ) -> io::Result<()> {
        self.file.read(bytes)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let utc_ns = now.and_then(|now| i64::try_from(now.as_nanos()).ok());
        match self.series.read(bytes, interval_s, utc_ns) {
            Ok(all) => {
                end.read_error = all.error;
                end.readings += all.readings.len() as u64;
                let updates = all.readings.into_iter().map(CounterUpdate::Reading).collect();
                self.monitor.apply(self.pid, updates, is_end)?;
            }
            // A machine that is still starting has no counters.
            Err(error) => end.read_error = Some(error),
        }
        Ok(())
    }

    /// Waits until a time, or until the program has exited or a stop is requested.
    fn wait_until(&self, time: Instant) -> Wait {
        loop {
            if self.is_stopping.load(Ordering::Acquire) {
                return Wait::Stopped;
            }
            if !System::current().is_running(self.pid, self.start_time) {
                return Wait::Exited;
            }
            let left = time.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Wait::Due;
            }
            thread::park_timeout(left.min(POLL_INTERVAL));
        }
    }
}

/// The end of a wait.
enum Wait {
    Due,
    Exited,
    Stopped,
}
