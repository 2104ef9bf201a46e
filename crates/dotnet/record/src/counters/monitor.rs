//! The counters of all processes of a recording, as one sequence of signals.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use runtap_clr::counters::{CounterNotice, CounterStream, CounterUpdate, MetricsSession};
use runtap_diag::SessionConfig;
use runtap_model::counters::{Counter, CounterBoard, CounterRow};
use runtap_nettrace::{Reader, StreamItem};

use super::{CounterFile, CounterRequest, CounterSelection, jvm};
use crate::Specification;
use crate::consumer::{Consumers, StreamConsumer};

/// The maximum number of different errors of a process that are reported.
pub(super) const MAX_ERRORS: usize = 100;
/// The minimum time between two pauses: the work for each is proportional to the number of all series.
const PAUSE_INTERVAL: Duration = Duration::from_millis(100);
/// How long to wait for the runtime of a command.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What happens to the counters of the processes.
#[derive(Debug)]
#[non_exhaustive]
pub enum CounterSignal<'a> {
    /// A session has started.
    Started {
        /// The process id.
        pid: u32,
        /// The name of the program.
        name: &'a str,
    },
    /// A series has a new reading.
    Reading(&'a CounterRow),
    /// A process has a problem, or its metrics session was rejected. Each is reported once.
    Notice {
        /// The process id.
        pid: u32,
        /// The problem.
        notice: &'a CounterNotice,
    },
    /// No more readings have arrived, or they arrive continuously. At most one signal in 100 ms, and one at the end of a process.
    Pause(&'a CounterBoard),
}

/// A request of which no reading was received.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unread {
    /// The process id.
    pub pid: u32,
    /// The provider.
    pub provider: String,
    /// The requested counter. `None` if all counters of the provider were requested.
    pub counter: Option<String>,
    /// Whether the process is a Java program.
    pub is_jvm: bool,
}

/// Collects the counters of all processes.
#[derive(Debug, Clone)]
pub struct CounterMonitor(Arc<Monitored>);

struct Monitored {
    request: CounterRequest,
    ids: MetricsSession,
    state: Mutex<MonitorState>,
}

type Receive = dyn FnMut(CounterSignal<'_>) -> io::Result<()> + Send;

struct MonitorState {
    board: CounterBoard,
    /// Whether the program has such an instrument.
    unread: BTreeMap<Unread, bool>,
    notices: BTreeMap<u32, ProcessNotices>,
    /// Whether the board has changed since the latest pause.
    has_news: bool,
    /// The earliest time of the next pause. `None` before the first one.
    next_pause: Option<Instant>,
    /// Whether a thread waits for the next pause.
    is_pause_scheduled: bool,
    /// The error of a scheduled pause.
    pause_error: Option<io::Error>,
    file: Option<CounterFile>,
    receive: Box<Receive>,
}

impl fmt::Debug for Monitored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitored").field("request", &self.request).finish_non_exhaustive()
    }
}

impl CounterMonitor {
    /// Creates a monitor that passes signals to `receive`, from the threads on which they occur, one after the other. With a file,
    /// readings go there instead.
    pub fn new(
        request: CounterRequest,
        file: Option<CounterFile>,
        receive: impl FnMut(CounterSignal<'_>) -> io::Result<()> + Send + 'static,
    ) -> Self {
        let ids = request.session_ids();
        let state = Mutex::new(MonitorState {
            board: CounterBoard::default(),
            unread: BTreeMap::new(),
            notices: BTreeMap::new(),
            has_news: false,
            next_pause: None,
            is_pause_scheduled: false,
            pause_error: None,
            file,
            receive: Box::new(receive),
        });
        Self(Arc::new(Monitored { request, ids, state }))
    }

    /// Returns the specification of a recording whose streams this monitor reads.
    pub fn specification(&self) -> Specification {
        let mut session = SessionConfig::new(self.0.request.providers(&self.0.ids));
        (session.rundown_keyword, session.stackwalk) = (0, false);
        Specification {
            consumers: Some(self.consumers()),
            counters: Some(self.clone()),
            connect_timeout: CONNECT_TIMEOUT,
            ..Specification::of_session(session)
        }
    }

    fn consumers(&self) -> Consumers {
        let monitored = Arc::clone(&self.0);
        Consumers::new(move |pid, name| {
            let interval_s = monitored.request.interval.as_secs_f64();
            let stream = CounterStream::new(monitored.ids.clone(), interval_s);
            let result = monitored.start(pid, name, false);
            Box::new(CounterConsumer {
                pid,
                reader: Reader::new(),
                stream,
                monitored: Arc::clone(&monitored),
                error: result.err(),
            })
        })
    }

    /// Returns the time between two readings.
    pub(crate) fn interval(&self) -> Duration {
        self.0.request.interval
    }

    /// Starts to monitor a Java program.
    pub(crate) fn start_jvm(&self, pid: u32, name: &str) -> io::Result<()> {
        self.0.start(pid, name, true)
    }

    /// Applies updates of a process and passes them on.
    pub(crate) fn apply(&self, pid: u32, updates: Vec<CounterUpdate>, is_end: bool) -> io::Result<()> {
        self.0.apply(pid, updates, is_end)
    }

    /// Removes the series of a process that has ended: a later process with its id has series of its own.
    pub(crate) fn end_process(&self, pid: u32) {
        self.0.state().board.end_process(pid);
    }

    /// Completes the file.
    ///
    /// # Errors
    /// Returns an error if the file can't be written.
    pub fn finish(&self) -> io::Result<()> {
        self.0.state().file.as_mut().map_or(Ok(()), CounterFile::finish)
    }

    /// Returns the requests of which no reading was received, with whether the program has such an instrument.
    pub fn unread(&self) -> Vec<(Unread, bool)> {
        self.0.state().unread.iter().map(|(unread, exists)| (unread.clone(), *exists)).collect()
    }

    /// Returns how many readings were ignored because there are too many series.
    pub fn omitted(&self) -> u64 {
        self.0.state().board.omitted()
    }

    /// Returns the ids of the processes of which some errors were not reported, because there were too many different ones.
    pub fn truncated_errors(&self) -> Vec<u32> {
        let state = self.0.state();
        state.notices.iter().filter(|(_, notices)| notices.is_truncated).map(|(pid, _)| *pid).collect()
    }
}

/// The notices of a process that were reported.
#[derive(Debug, Default)]
struct ProcessNotices {
    errors: BTreeSet<String>,
    /// Whether errors were left out.
    is_truncated: bool,
    others: Vec<Discriminant<CounterNotice>>,
}

impl ProcessNotices {
    /// Returns whether a notice is to be reported: each error once, up to a limit, and one notice of each other kind.
    fn admit(&mut self, notice: &CounterNotice) -> bool {
        if !matches!(notice, CounterNotice::CallbackError(_) | CounterNotice::Error(_)) {
            let kind = discriminant(notice);
            let is_new = !self.others.contains(&kind);
            self.others.extend(is_new.then_some(kind));
            return is_new;
        }
        let error = format!("{notice:?}");
        if self.errors.len() >= MAX_ERRORS && !self.errors.contains(&error) {
            self.is_truncated = true;
            return false;
        }
        self.errors.insert(error)
    }
}

impl MonitorState {
    fn pass_on(
        file: &mut Option<CounterFile>,
        receive: &mut Receive,
        signal: CounterSignal<'_>,
    ) -> io::Result<()> {
        match file {
            Some(file) if !matches!(signal, CounterSignal::Notice { .. }) => file.signal(&signal),
            _ => receive(signal),
        }
    }

    /// Passes on a pause if there are news.
    fn pause(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.has_news) {
            return Ok(());
        }
        let Self { board, file, receive, .. } = self;
        let result = Self::pass_on(file, receive, CounterSignal::Pause(board));
        self.next_pause = Instant::now().checked_add(PAUSE_INTERVAL);
        result
    }
}

impl Monitored {
    fn state(&self) -> MutexGuard<'_, MonitorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, pid: u32, name: &str, is_jvm: bool) -> io::Result<()> {
        let MonitorState { unread, file, receive, .. } = &mut *self.state();
        for CounterSelection { provider, counters, .. } in &self.request.selections {
            // With the default, every Java program has readings.
            if is_jvm && self.request.is_default {
                continue;
            }
            let all = counters.is_empty().then_some(None);
            for counter in all.into_iter().chain(counters.iter().cloned().map(Some)) {
                unread.insert(Unread { pid, provider: provider.clone(), counter, is_jvm }, false);
            }
        }
        MonitorState::pass_on(file, receive, CounterSignal::Started { pid, name })
    }

    /// Applies updates of a process and passes them on.
    fn apply(self: &Arc<Self>, pid: u32, updates: Vec<CounterUpdate>, is_end: bool) -> io::Result<()> {
        let mut state = self.state();
        state.pause_error.take().map_or(Ok(()), Err)?;
        let MonitorState { board, unread, notices, has_news, file, receive, .. } = &mut *state;
        let mut pass_on = |signal: CounterSignal<'_>| MonitorState::pass_on(file, receive, signal);
        for update in updates {
            match update {
                CounterUpdate::Reading(reading) if self.request.wants(&reading.counter) => {
                    // Usually empty after the first interval.
                    if !unread.is_empty() {
                        for request in requests_of(pid, &reading.counter) {
                            unread.remove(&request);
                        }
                    }
                    if let Some(row) = board.add(pid, reading) {
                        *has_news = true;
                        pass_on(CounterSignal::Reading(row))?;
                        if let Some(notice) = shared_series(&row.counter)
                            && notices.entry(pid).or_default().admit(&notice)
                        {
                            pass_on(CounterSignal::Notice { pid, notice: &notice })?;
                        }
                    }
                }
                // Its code may fail, or it has no series yet.
                CounterUpdate::Begun(counter) => {
                    for request in requests_of(pid, &counter) {
                        unread.entry(request).and_modify(|exists| *exists = true);
                    }
                }
                CounterUpdate::Ended(counter) => *has_news |= board.end(pid, &counter),
                // A broken instrument fails in each interval.
                CounterUpdate::Notice(notice) if notices.entry(pid).or_default().admit(&notice) => {
                    pass_on(CounterSignal::Notice { pid, notice: &notice })?;
                }
                _ => {}
            }
        }
        if !state.has_news {
            return Ok(());
        }
        let now = Instant::now();
        let delay = state.next_pause.map_or(Duration::ZERO, |next| next.saturating_duration_since(now));
        if is_end || delay.is_zero() {
            return state.pause();
        }
        // The next chunk may arrive a whole interval later.
        if !state.is_pause_scheduled {
            state.is_pause_scheduled = self.schedule_pause(delay);
        }
        Ok(())
    }

    /// Passes on a pause after `delay`. Returns whether a thread was started for it.
    fn schedule_pause(self: &Arc<Self>, delay: Duration) -> bool {
        let monitored = Arc::clone(self);
        let pause = move || {
            thread::sleep(delay);
            let mut state = monitored.state();
            state.is_pause_scheduled = false;
            if let Err(error) = state.pause() {
                state.pause_error = Some(error);
            }
        };
        thread::Builder::new().name("counters".into()).spawn(pause).is_ok()
    }
}

/// Returns the notice that several instruments report this series. Usually `None`.
fn shared_series(counter: &Counter) -> Option<CounterNotice> {
    counter.instruments?;
    Some(CounterNotice::SharedSeries { provider: counter.provider.clone(), name: counter.name.clone() })
}

/// Returns the requests that a counter fulfils.
fn requests_of(pid: u32, counter: &Counter) -> [Unread; 2] {
    let provider = &counter.provider;
    let is_jvm = jvm::GROUPS.contains(&&**provider);
    [None, Some(counter.name.clone())].map(|counter| Unread {
        pid,
        provider: provider.clone(),
        counter,
        is_jvm,
    })
}

/// Reads the counters of one process.
#[derive(Debug)]
struct CounterConsumer {
    pid: u32,
    reader: Reader,
    stream: CounterStream,
    monitored: Arc<Monitored>,
    /// The error that occurred at the start.
    error: Option<io::Error>,
}

impl StreamConsumer for CounterConsumer {
    fn consume(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let Self { reader, stream, .. } = self;
        let mut updates = Vec::new();
        let mut see = |item: StreamItem<'_>| updates.extend(stream.item(&item));
        if bytes.is_empty() {
            reader.finish();
        }
        let mut items = reader.items(bytes);
        // After a damaged block, reading continues.
        while items.for_each(&mut see).is_err() {}
        self.monitored.apply(self.pid, updates, bytes.is_empty())?;
        if bytes.is_empty() {
            self.monitored.state().board.end_process(self.pid);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use runtap_model::counters::Reading;

    use super::*;

    /// Returns a monitor and what it passes on, as names.
    fn monitor() -> (CounterMonitor, Receiver<String>) {
        let (sender, receiver) = channel();
        let request = CounterRequest::parse(&["A".to_owned()]).unwrap();
        let receive = move |signal: CounterSignal<'_>| {
            let name = match signal {
                CounterSignal::Pause(_) => "pause".to_owned(),
                CounterSignal::Notice { pid, notice } => format!("{pid} {notice:?}"),
                _ => return Ok(()),
            };
            sender.send(name).map_err(io::Error::other)
        };
        (CounterMonitor::new(request, None, receive), receiver)
    }

    fn reading() -> CounterUpdate {
        let counter = Counter { provider: "A".to_owned(), name: "a".to_owned(), ..Counter::default() };
        CounterUpdate::Reading(Reading { counter, ..Reading::default() })
    }

    #[test]
    fn pauses_are_limited_and_none_is_lost() {
        let (monitor, signals) = monitor();
        let start = Instant::now();
        for _ in 0..500 {
            monitor.0.apply(1, vec![reading()], false).unwrap();
        }
        // No chunk follows, and the last readings are passed on nevertheless: in the loop, or up to an interval later.
        while monitor.0.state().has_news {
            assert!(start.elapsed() < Duration::from_mins(1), "the last readings are not passed on");
            thread::yield_now();
        }
        let names: Vec<String> = signals.try_iter().collect();
        assert!(names.iter().all(|name| name == "pause"), "{names:?}");
        let count = names.len() as u128;
        assert!(count >= 1 && count <= 1 + start.elapsed().as_millis() / 100, "{count} pauses");
        // At the end, there is no delay.
        monitor.0.apply(1, vec![reading()], true).unwrap();
        assert_eq!(signals.try_iter().count(), 1);
        let unknown = Counter { name: "unknown".to_owned(), ..Counter::default() };
        monitor.0.apply(1, vec![CounterUpdate::Ended(unknown)], true).unwrap();
        assert_eq!(signals.try_iter().count(), 0);
    }

    /// Errors of one process hide neither limits nor another process.
    #[test]
    fn only_errors_are_limited() {
        let (monitor, signals) = monitor();
        let error = |index: usize| CounterUpdate::Notice(CounterNotice::CallbackError(index.to_string()));
        let errors: Vec<_> = (0..MAX_ERRORS).chain(0..MAX_ERRORS).map(error).collect();
        monitor.0.apply(1, errors, false).unwrap();
        assert_eq!((signals.try_iter().count(), monitor.truncated_errors()), (MAX_ERRORS, vec![]));
        let limit = || CounterUpdate::Notice(CounterNotice::SeriesLimit);
        monitor.0.apply(1, vec![error(MAX_ERRORS), limit(), limit()], false).unwrap();
        monitor.0.apply(2, vec![error(0)], false).unwrap();
        let rest: Vec<_> = signals.try_iter().collect();
        assert_eq!(rest, ["1 SeriesLimit", "2 CallbackError(\"0\")"]);
        assert_eq!(monitor.truncated_errors(), [1]);
    }
}
