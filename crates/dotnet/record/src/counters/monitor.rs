//! The counters of all processes of a recording, as one sequence of signals.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runtap_clr::counters::{CounterNotice, CounterStream, CounterUpdate, MetricsSession};
use runtap_diag::SessionConfig;
use runtap_model::counters::{Counter, CounterBoard, CounterRow};
use runtap_nettrace::{Reader, StreamItem};

use super::{CounterFile, CounterRequest, CounterSelection};
use crate::Specification;
use crate::consumer::{Consumers, StreamConsumer};

/// The maximum number of different problems that are reported.
const MAX_NOTICES: usize = 100;
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
    /// No more readings have arrived.
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
    notices: BTreeSet<(u32, String)>,
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
            notices: BTreeSet::new(),
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
            connect_timeout: CONNECT_TIMEOUT,
            ..Specification::of_session(session)
        }
    }

    fn consumers(&self) -> Consumers {
        let monitored = Arc::clone(&self.0);
        Consumers::new(move |pid, name| {
            let interval_s = monitored.request.interval.as_secs_f64();
            let stream = CounterStream::new(monitored.ids.clone(), interval_s);
            let result = monitored.start(pid, name);
            Box::new(CounterConsumer {
                pid,
                reader: Reader::new(),
                stream,
                monitored: Arc::clone(&monitored),
                error: result.err(),
            })
        })
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
}

impl Monitored {
    fn state(&self) -> MutexGuard<'_, MonitorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, pid: u32, name: &str) -> io::Result<()> {
        let MonitorState { unread, file, receive, .. } = &mut *self.state();
        for CounterSelection { provider, counters, .. } in &self.request.selections {
            let all = counters.is_empty().then_some(None);
            for counter in all.into_iter().chain(counters.iter().cloned().map(Some)) {
                unread.insert(Unread { pid, provider: provider.clone(), counter }, false);
            }
        }
        MonitorState::pass_on(file, receive, CounterSignal::Started { pid, name })
    }

    /// Applies updates of a process and passes them on.
    fn apply(&self, pid: u32, updates: Vec<CounterUpdate>) -> io::Result<()> {
        let MonitorState { board, unread, notices, file, receive } = &mut *self.state();
        let mut pass_on = |signal: CounterSignal<'_>| MonitorState::pass_on(file, receive, signal);
        let mut has_news = false;
        for update in updates {
            match update {
                CounterUpdate::Reading(reading) if self.request.wants(&reading.counter) => {
                    for request in requests_of(pid, &reading.counter) {
                        unread.remove(&request);
                    }
                    if let Some(row) = board.add(pid, reading) {
                        has_news = true;
                        pass_on(CounterSignal::Reading(row))?;
                    }
                }
                // Its code may fail, or it has no series yet.
                CounterUpdate::Begun(counter) => {
                    for request in requests_of(pid, &counter) {
                        unread.entry(request).and_modify(|exists| *exists = true);
                    }
                }
                CounterUpdate::Ended(counter) => {
                    has_news = true;
                    board.end(pid, &counter);
                }
                // A broken instrument fails in each interval.
                CounterUpdate::Notice(notice)
                    if notices.len() < MAX_NOTICES && notices.insert((pid, format!("{notice:?}"))) =>
                {
                    pass_on(CounterSignal::Notice { pid, notice: &notice })?;
                }
                _ => {}
            }
        }
        if has_news { pass_on(CounterSignal::Pause(board)) } else { Ok(()) }
    }
}

/// Returns the requests that a counter fulfils.
fn requests_of(pid: u32, counter: &Counter) -> [Unread; 2] {
    [None, Some(counter.name.clone())].map(|name| Unread {
        pid,
        provider: counter.provider.clone(),
        counter: name,
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
        self.monitored.apply(self.pid, updates)?;
        if bytes.is_empty() {
            self.monitored.state().board.end_process(self.pid);
        }
        Ok(())
    }
}
