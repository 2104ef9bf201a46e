//! Asks for the dump, and watches how it grows.

use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use runtap_diag::{Client, CoreDump, EncodeError, Error, WrittenDump};
use tokio::time::{MissedTickBehavior, interval};

use crate::dump::place::Place;
use crate::dump::{Event, Specification};

/// Between two looks at the file.
const LOOK: Duration = Duration::from_millis(200);

/// Asks for the dump. What the runtime is too old for is left out, and said.
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

/// Waits for the answer, and tells how the file grows.
pub(crate) async fn watch(
    answer: impl Future<Output = Result<WrittenDump, Error>>,
    mut stopped: Pin<&mut impl Future<Output = ()>>,
    place: &Place,
    tell: &dyn Fn(Event<'_>),
) -> Result<Watched, Error> {
    let mut answer = pin!(answer);
    let mut tick = interval(LOOK);
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
