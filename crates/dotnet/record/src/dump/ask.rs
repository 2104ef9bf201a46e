//! Requests the dump, and reports how the file grows.

use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use runtap_diag::{Client, CoreDump, EncodeError, Error, WrittenDump};
use tokio::time::{MissedTickBehavior, interval};

use crate::dump::place::DumpPlan;
use crate::dump::{Event, Specification};

/// Poll interval of the file's size.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Requests the dump. If the runtime is too old for a crash report, the dump is requested without one and that is reported.
pub(crate) async fn ask(
    client: &Client,
    spec: &Specification,
    told: &str,
    mut asked: impl FnMut(),
    tell: &dyn Fn(Event<'_>),
) -> Result<WrittenDump, Error> {
    let dump = CoreDump::new(told, spec.kind.wire());
    let all = dump.clone().with_flags(spec.flags(spec.crash_report));
    match client.dump_with_notice(&all, &mut asked).await {
        Err(Error::Invalid(EncodeError::DumpFlags { .. })) => {
            tell(Event::NoCrashReport);
            client.dump_with_notice(&dump.with_flags(spec.flags(false)), &mut asked).await
        }
        written => written,
    }
}

pub(crate) enum Watched {
    Done(WrittenDump),
    Interrupted,
}

/// Waits for the answer, and reports how the file grows.
pub(crate) async fn watch(
    answer: impl Future<Output = Result<WrittenDump, Error>>,
    mut stopped: Pin<&mut impl Future<Output = ()>>,
    place: &DumpPlan,
    tell: &dyn Fn(Event<'_>),
) -> Result<Watched, Error> {
    let mut answer = pin!(answer);
    let mut tick = interval(POLL_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let started = Instant::now();
    loop {
        tokio::select! {
            written = &mut answer => return written.map(Watched::Done),
            () = stopped.as_mut() => return Ok(Watched::Interrupted),
            _ = tick.tick() => tell(Event::Progress { elapsed: started.elapsed(), written: place.written() }),
        }
    }
}
