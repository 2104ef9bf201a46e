//! Reports and leftover files of dumps by targets that write something: runtimes in this process.
#![cfg(target_os = "linux")]

use std::cell::RefCell;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};

use runtap_diag::{CoreDump, ErrorReply};
use runtap_diag_server::Commands;
use runtap_record::dump::{Destination, DumpKind, DumpOutcome, Error, Event, Prepared, Specification};
use runtap_target::ResolvedTarget;
use runtap_testkit::FakeRuntime;
use tokio::sync::Notify;

/// Writes a dump in its own way.
struct Writer<F>(F);

impl<F> fmt::Debug for Writer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

impl<F: Fn(&Path) + Send + Sync + 'static> Commands for Writer<F> {
    fn dump(&self, dump: &CoreDump) -> Result<(), ErrorReply> {
        (self.0)(&PathBuf::from(dump.path.replace("%%", "%")));
        Ok(())
    }
}

/// Requests a dump to a directory from a target that writes like this. Returns the result, the events, and the files.
async fn dump(
    write: impl Fn(&Path) + Send + Sync + 'static,
    stopped: impl Future<Output = ()>,
    look: impl Fn(&Event<'_>),
) -> (Result<DumpOutcome, Error>, Vec<String>, Vec<String>) {
    let runtime = FakeRuntime::builder().commands(Arc::new(Writer(write))).spawn();
    let folder = tempfile::tempdir().unwrap();
    let wanted = Destination::Exact(folder.path().join("x.core"));
    let prepared = Prepared::open(Specification::new(DumpKind::Mini, wanted)).unwrap();
    let told = RefCell::new(Vec::new());
    let tell = |event: Event<'_>| {
        look(&event);
        let name = format!("{event:?}").split([' ', '{']).next().unwrap_or_default().to_owned();
        if name != "Progress" {
            told.borrow_mut().push(name);
        }
    };
    let outcome = prepared.write(&ResolvedTarget::at_port(runtime.path()), stopped, &tell).await;
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    (outcome, told.take(), names.map(|name| name.into_string().unwrap()).collect())
}

#[tokio::test]
async fn files_that_are_not_core_files_are_not_kept() {
    let write = |path: &Path| fs::write(path, "no core at all").unwrap();
    let (outcome, told, there) = dump(write, std::future::pending(), |_| {}).await;
    assert!(matches!(outcome, Err(Error::NoCore { .. })), "{outcome:?}");
    assert_eq!((told, there), (["Writing", "Asked", "Over"].map(str::to_owned).to_vec(), vec![]));
}

#[tokio::test]
async fn an_abandoned_dump_is_left_in_place() {
    let (end, goes_on) = mpsc::channel::<()>();
    let (goes_on, asked) = (Mutex::new(goes_on), Notify::new());
    let write = move |path: &Path| {
        fs::write(path, "half").unwrap();
        // Until the dump is abandoned.
        let _over = goes_on.lock().unwrap().recv();
    };
    let look = |event: &Event<'_>| match event {
        Event::Progress { written: 4, .. } => asked.notify_one(),
        Event::Over => end.send(()).unwrap(),
        _ => {}
    };
    let (outcome, told, there) = dump(write, asked.notified(), look).await;
    let Ok(DumpOutcome::Interrupted { pid, still_writing_to: Some(theirs) }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(pid, std::process::id());
    assert_eq!(there, [theirs.file_name().unwrap().to_str().unwrap()]);
    assert_eq!(told, ["Writing", "Asked", "Over"]);
}

#[tokio::test]
async fn a_dump_that_was_not_requested_leaves_nothing() {
    let (outcome, told, there) = dump(|_| {}, std::future::ready(()), |_| {}).await;
    assert!(!matches!(
        outcome,
        Ok(DumpOutcome::Written(_) | DumpOutcome::Interrupted { still_writing_to: Some(_), .. })
    ));
    assert!(there.is_empty() && !told.contains(&"Asked".to_owned()), "{there:?} {told:?}");
}

#[test]
fn invalid_destinations_are_rejected_before_the_request() {
    let open =
        |path: &str| Prepared::open(Specification::new(DumpKind::Full, Destination::Exact(path.into())));
    assert!(matches!(open("/"), Err(Error::NoName(_))));
    assert!(matches!(open("/dev/null"), Err(Error::NotOrdinary(_))));
    assert!(matches!(open("/tmp/."), Err(Error::NotOrdinary(_))));
}
