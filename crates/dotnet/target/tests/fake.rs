//! A runtime in this process is found and queried in every way in which it can be specified.

use std::cell::{Cell, RefCell};
use std::fs;
use std::io;
use std::path::PathBuf;

use runtap_diag_server::{ConnectPort, ProcessDescription};
use runtap_target::{
    Change, Dialogue, Error, Examined, Listing, ProcessStatus, Question, Remark, TargetArgs, TargetSpec,
    Watch,
};
use runtap_testkit::FakeRuntime;
use runtap_transport::naming::SocketName;

/// A runtime that discovery finds: its socket has the name and location of this process's own.
struct Found {
    _runtime: FakeRuntime,
    socket: PathBuf,
    name: String,
}

impl Found {
    fn new(name: &str) -> Self {
        let pid = std::process::id();
        let name = format!("{name}-{pid}");
        let description = ProcessDescription::of_this_process().entry_assembly(&name);
        let runtime = FakeRuntime::builder().description(description).spawn();
        let key = runtap_discover::start_time(pid).unwrap();
        let socket = runtap_discover::temp_dir().join(SocketName::runtime(pid, key).to_string());
        fs::rename(runtime.path(), &socket).unwrap();
        Self { _runtime: runtime, socket, name }
    }
}

impl Drop for Found {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

/// A user who gives these answers.
#[derive(Default)]
struct Person {
    answers: RefCell<Vec<String>>,
    slips: Cell<usize>,
    remarks: RefCell<Vec<String>>,
}

impl Dialogue for Person {
    fn remark(&self, remark: Remark<'_>) {
        self.remarks.borrow_mut().push(format!("{remark:?}"));
    }

    fn can_ask(&self) -> bool {
        true
    }

    async fn ask(&self, question: Question<'_>) -> io::Result<String> {
        assert!(!question.processes.is_empty());
        self.slips.set(self.slips.get() + usize::from(question.invalid_answer.is_some()));
        Ok(self.answers.borrow_mut().pop().unwrap_or_default())
    }
}

fn named(name: &str, user: Option<&str>) -> TargetSpec {
    TargetSpec::parse(&TargetArgs { word: Some(name), user, ..TargetArgs::default() }).unwrap()
}

// A single test, because a process has one socket.
#[tokio::test]
async fn every_specification_selects_the_process() {
    let runtime = Found::new("fake");
    let us = std::process::id();
    let name = runtime.name.as_str();

    let person = Person::default();
    let by_name = named(name, None).resolve(&person).await.unwrap();
    assert_eq!(by_name.pid(), Some(us));
    assert_eq!(by_name.chosen_name().map(|(name, process)| (name, process.pid)), Some((name, us)));
    let info = by_name.client.process_info().await.unwrap();
    assert_eq!(info.entry_assembly.as_deref(), Some(name));
    assert!(person.remarks.borrow()[0].starts_with("Connecting"), "{:?}", person.remarks);

    let by_pid = TargetSpec::Pid(us).resolve(&()).await.unwrap();
    assert_eq!((by_pid.pid(), by_pid.chosen_name().is_none()), (Some(us), true));
    assert_eq!(by_pid.pids().await.unwrap(), (us, Some(us)));
    assert_eq!(named(name, None).resolve_all(&()).await.unwrap().len(), 1);

    // One invalid answer is accepted, two are not.
    let person = |answers: &[&str]| {
        let answers = answers.iter().rev().map(|answer| (*answer).to_owned()).collect();
        Person { answers: RefCell::new(answers), ..Person::default() }
    };
    let forgiven = person(&["x", &us.to_string()]);
    assert_eq!(TargetSpec::Ask.resolve(&forgiven).await.unwrap().pid(), Some(us));
    assert_eq!(forgiven.slips.get(), 1);
    let error = TargetSpec::Ask.resolve(&person(&["x", "0"])).await.unwrap_err();
    assert!(matches!(error, Error::NotInList { answer, .. } if answer == "0"));
    assert!(matches!(TargetSpec::Ask.resolve(&person(&[])).await, Err(Error::NotSpecified)));

    let Examined::Named(diagnosed) = named(name, None).examine(false, &()).await.unwrap() else {
        panic!("it has a name")
    };
    assert_eq!(diagnosed[0].name, name);
    assert!(diagnosed[0].diagnosis.reachable, "{:?}", diagnosed[0].diagnosis);

    let mut processes = Listing::now(false).processes;
    processes.retain(|process| process.pid == us);
    let seen = ProcessStatus::all(processes.clone()).await;
    assert!(seen[0].reachable && seen[0].has_name(name) && seen[0].has_name(&us.to_string()), "{seen:?}");
    let mut watch = Watch::default();
    assert_eq!(watch.to_query(&processes), processes);
    let changes = |changes: Vec<(Change, ProcessStatus)>| {
        changes.into_iter().map(|(change, _)| change).collect::<Vec<_>>()
    };
    assert_eq!(changes(watch.update(&processes, seen.clone())), [Change::Started]);
    assert_eq!(changes(watch.update(&processes, seen.clone())), []);
    let mut other = seen;
    other[0].name = "other".to_owned();
    assert_eq!(changes(watch.update(&processes, other)), [Change::Changed]);
    assert_eq!(watch.known()[0].name, "other");
    assert_eq!(changes(watch.update(&[], Vec::new())), [Change::Exited]);
}

#[tokio::test]
async fn missing_processes_are_not_found() {
    let error = named("n0b0dy", None).resolve(&()).await.unwrap_err();
    assert!(matches!(&error, Error::NoMatch { name, user: None, .. } if name == "n0b0dy"), "{error:?}");
    let error = named("n0b0dy", Some("n0b0dy:")).resolve(&()).await.unwrap_err();
    assert!(matches!(error, Error::UnknownUser(_)), "{error:?}");
    let error = named("n0b0dy", None).examine(true, &()).await.unwrap_err();
    assert!(matches!(error, Error::NoManagedMatch { .. }), "{error:?}");
    // No process has this id.
    let error = TargetSpec::Pid(u32::MAX).resolve(&()).await.unwrap_err();
    assert!(matches!(error, Error::NotFound(_)), "{error:?}");
    assert!(matches!(TargetSpec::Ask.resolve(&()).await, Err(Error::NotSpecified)));
}

fn port(port: &str) -> TargetSpec {
    TargetSpec::parse(&TargetArgs { port: Some(port), ..TargetArgs::default() }).unwrap()
}

#[tokio::test]
async fn a_runtime_that_listens_is_queried_at_its_port() {
    let runtime = FakeRuntime::spawn();
    let path = runtime.path().display();
    for spec in [format!("{path}"), format!("uds:{path},connect")] {
        let subject = port(&spec).resolve(&()).await.unwrap();
        assert!(subject.process.is_none());
        assert_eq!(subject.pids().await.unwrap().0, std::process::id());
    }
}

#[tokio::test]
async fn the_first_runtime_that_connects_is_selected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port");
    let runtime = FakeRuntime::builder().connect_port(ConnectPort::new(&path).suspend(true)).spawn();
    let person = Person::default();
    let subject = port(&format!("{},listen", path.display())).resolve(&person).await.unwrap();
    assert!(person.remarks.borrow()[0].starts_with("Listening"), "{:?}", person.remarks);
    assert_eq!(subject.pid(), Some(std::process::id()));
    assert!(runtime.is_suspended());
    subject.client.process_info().await.unwrap();
    subject.runtime().unwrap().resume().await.unwrap();
    assert!(!runtime.is_suspended());
    assert!(path.exists());
    drop(subject);
    assert!(!path.exists());
}
