//! Defects of the original agents: docs/design/jvm-agent.md has the list, with the test of each. Some are covered by tests in
//! `crowds`, `faults` and `modes`.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use runtap_bytefrog::hq::{AgentId, Hq, Options};
use runtap_bytefrog_proto::hq::Settings;
use runtap_bytefrog_proto::{Configuration, Dialect, JavaString, Message, Mode, RecordMode, to_bytes};
use runtap_testkit::{HARD_LIMIT, Jdk, JvmCounter, Skip, eventually, require, run};

use crate::common::{Listening, demo, run_both, traced};
use crate::counts::{expected, plain, seen};
use crate::oracle::Load;

const COUNTS: &[&str] = &["demo.Counts", "3", "50"];

/// Runs the program and checks its counts.
#[track_caller]
fn counts_are_right(hq: &Listening, threads: u64, rounds: u64) {
    let report = hq.report();
    assert_eq!(plain(seen(&report)), plain(expected(threads, rounds)));
    assert_eq!((report.findings, report.counters.orphans), (Vec::new(), 0));
}

fn only(dialect: Dialect) -> Settings {
    Settings { dialects: vec![dialect], ..Settings::default() }
}

/// Starts an HQ that answers hello and data hello with fixed bytes, and reads everything.
fn saying(control: Vec<u8>, data: Vec<u8>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let (control, data) = (control.clone(), data.clone());
            std::thread::spawn(move || {
                let mut hello = [0; 2];
                if socket.read_exact(&mut hello).is_ok() {
                    let _ = socket.write_all(if hello[0] == 0 { &control } else { &data });
                    while matches!(socket.read(&mut [0; 4096]), Ok(1..)) {}
                }
            });
        }
    });
    port
}

/// Starts a proxy between agents and HQ that passes HQ's messages byte by byte.
fn in_pieces(to: SocketAddr) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for agent in listener.incoming().flatten() {
            let hq = TcpStream::connect(to).unwrap();
            agent.set_nodelay(true).unwrap();
            let (mut from_agent, mut to_hq) = (agent.try_clone().unwrap(), hq.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from_agent, &mut to_hq);
                let _ = to_hq.shutdown(Shutdown::Write);
            });
            let (mut hq, mut agent) = (hq, agent);
            std::thread::spawn(move || {
                let mut byte = [0];
                while matches!(hq.read(&mut byte), Ok(1)) && agent.write_all(&byte).is_ok() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let _ = agent.shutdown(Shutdown::Write);
            });
        }
    });
    port
}

fn error(text: &str) -> Vec<u8> {
    let text = JavaString::from(text);
    to_bytes(&Message::Error { text: text.as_java_str() }, Dialect::F1).unwrap()
}

/// The originals treat the first `read` as the whole configuration, and lose track of a command that arrives in two
/// parts with a heartbeat in between.
#[test]
fn every_byte_of_hq_comes_alone() {
    let jdk = require!(Jdk::with_compiler());
    for dialect in [Dialect::F1, Dialect::V1] {
        let options = Options {
            configuration: Configuration { heartbeat_interval: 10, ..demo() },
            ..Options::default()
        };
        let hq = Listening::new(Options { protocol: only(dialect), ..options });
        require!(run_both(&jdk, in_pieces(hq.hq.address()), "", COUNTS));
        counts_are_right(&hq, 3, 50);
    }
}

/// The originals do not accept more than 65,535 bytes in versions 2 to 4, and abort if they arrive in parts.
#[test]
fn a_configuration_of_300_kilobytes() {
    let jdk = require!(Jdk::with_compiler());
    let mut configuration = demo();
    configuration
        .inclusions
        .extend((0..10_000).map(|n| JavaString::from(format!("^com/example/p{n:05}/[^/]+$").as_str())));
    let hq = Listening::with(configuration);
    require!(run_both(&jdk, hq.hq.address().port(), "", COUNTS));
    counts_are_right(&hq, 3, 50);
}

/// With no data senders the program of an original never ends; with such small buffers it does not start. An original
/// sleeps for the heartbeat interval before it ends.
#[test]
fn a_configuration_with_extremes() {
    let jdk = require!(Jdk::with_compiler());
    for (data_senders, buffer_memory_budget, heartbeat_interval) in
        [(0, 100, 60_000), (-1, -1, 60_000), (1, 0, 0), (1, i32::MAX, -5), (7, 1, i32::MAX)]
    {
        let hq = Listening::with(Configuration {
            data_senders,
            buffer_memory_budget,
            heartbeat_interval,
            ..demo()
        });
        let began = Instant::now();
        require!(run_both(&jdk, hq.hq.address().port(), "", COUNTS));
        assert!(began.elapsed() < Duration::from_secs(50), "{data_senders} {:?}", began.elapsed());
        counts_are_right(&hq, 3, 50);
    }
}

/// As Code Pulse does: first nothing is traced, then the classes that the user has selected.
#[test]
fn a_second_configuration_replaces_the_first() {
    let jdk = require!(Jdk::with_compiler());
    for dialect in [Dialect::F1, Dialect::V1] {
        let nothing = Configuration { inclusions: Vec::new(), data_senders: 2, ..demo() };
        let options = Options {
            configuration: nothing,
            initial_mode: None,
            protocol: only(dialect),
            ..Options::default()
        };
        let hq = Listening::new(options);
        let mut java = require!(traced(&jdk, hq.hq.address().port(), "", COUNTS));
        java.stdout(std::process::Stdio::piped());
        let program = runtap_testkit::Running::start(java);
        eventually("it is there", || hq.dialect());
        hq.hq.configure(AgentId(0), |config| *config = demo()).unwrap();
        hq.hq.change_mode(AgentId(0), Mode::Tracing).unwrap();
        program.wait().expect_code(0);
        counts_are_right(&hq, 3, 50);
    }
}

/// In the originals the events of one connection are unordered, and ids have to be contiguous over all connections.
#[test]
fn version_1_on_three_connections() {
    for jdk in require!(Jdk::all()) {
        let configuration = Configuration { data_senders: 3, ..demo() };
        let protocol = only(Dialect::V1);
        let hq = Listening::new(Options { configuration, protocol, ..Options::default() });
        require!(run_both(&jdk, hq.hq.address().port(), "", &["demo.Counts", "16", "60"]));
        counts_are_right(&hq, 16, 60);
        let report = hq.hq.report(AgentId(0)).unwrap();
        let counters = report.counters;
        let events = counters.entries + counters.exits + counters.exceptions + counters.bubbles;
        assert_eq!(report.sequences, Some((0, events - 1)), "JDK {}", jdk.major());
    }
}

/// An original reports the break before it has stopped recording: a few events after it may be from before.
#[test]
fn breaks_of_version_1_are_where_events_are_missing() {
    let jdk = require!(Jdk::with_compiler());
    let hq =
        Listening::new(Options { configuration: demo(), protocol: only(Dialect::V1), ..Options::default() });
    let mut java = require!(traced(&jdk, hq.hq.address().port(), "", &["demo.Forever"]));
    java.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = java.spawn().unwrap();
    let entries = || hq.hq.report(AgentId(0)).map_or(0, |report| report.counters.entries);
    let breaks = || hq.hq.report(AgentId(0)).map_or(0, |report| report.counters.data_breaks);
    for number in 1..=3 {
        let before = entries();
        eventually("it records", || (entries() > before + 20_000).then_some(()));
        hq.hq.change_mode(AgentId(0), Mode::Suspended).unwrap();
        eventually("the break is told", || (breaks() == number).then_some(()));
        hq.hq.change_mode(AgentId(0), Mode::Tracing).unwrap();
    }
    let before = entries();
    eventually("it records", || (entries() > before + 20_000).then_some(()));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let report = hq.report();
    assert_eq!((report.counters.data_breaks, report.counters.missing, report.counters.orphans), (3, 0, 0));
    assert_eq!(report.findings, []);
}

/// An error of HQ ends the JVM of an original with SIGABRT, or with status 0, which means success.
#[test]
fn the_program_keeps_its_status() {
    let jdk = require!(Jdk::with_compiler());
    let configuration = demo().to_message(Dialect::F1).unwrap();
    let then = |more: &[u8]| [&configuration, more].concat();
    let cases = [
        ("an error for hello", error("HQ is not expecting a new connection at this time"), vec![0x1f]),
        ("an error before start", then(&error("HQ shows no trace")), vec![0x1f]),
        (
            "an error for data hello",
            then(&[2]),
            error("Failed to associate the data connection with the trace"),
        ),
        ("an error when it runs", then(&[&[2][..], &error("enough")].concat()), vec![0x1f]),
        ("stop before start", then(&[3]), vec![0x1f]),
        ("unpause, which was not paused", then(&[2, 5]), vec![0x1f]),
        ("unsuspend, which was not suspended", then(&[2, 7]), vec![0x1f]),
        ("start twice", then(&[2, 2]), vec![0x1f]),
        ("a message that there is not", then(&[2, 0xee]), vec![0x1f]),
        ("nothing for data hello", then(&[2]), Vec::new()),
    ];
    for (what, control, data) in cases {
        let java = require!(traced(&jdk, saying(control, data), ",wait=2", &["demo.Ends", "3"]));
        let finished = run(java);
        assert_eq!(finished.code(), Some(3), "{what}: {finished}");
        assert_eq!(finished.text(), "100\n", "{what}: {finished}");
        let lines: Vec<&str> = finished.stderr.lines().collect();
        assert!(
            lines.len() <= 1 && lines.iter().all(|line| line.starts_with("runtap agent: ")),
            "{what}: {finished}"
        );
    }
}

/// An original splits its options at colons.
#[test]
fn hq_has_an_address_of_version_6() {
    let jdk = require!(Jdk::with_compiler());
    let Ok(probe) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else {
        return Skip::because("this machine has no IPv6").report();
    };
    drop(probe);
    let heard = std::sync::Arc::<std::sync::Mutex<Vec<_>>>::default();
    let tell = std::sync::Arc::clone(&heard);
    let options = Options { configuration: demo(), ..Options::default() };
    let any = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    let hq = Hq::listen(any, options, move |agent, event| tell.lock().unwrap().push((agent, event))).unwrap();
    let port = hq.address().port();
    let hq = Listening { hq, heard };
    require!(run_both(&jdk, port, ",host=::1", COUNTS));
    counts_are_right(&hq, 3, 50);
}

/// A text of more than 65,535 bytes ends the trace of an original, and with it go a sequence id and a buffer of events.
#[test]
fn texts_longer_than_the_wire_has() {
    let jdk = require!(Jdk::with_compiler());
    let (class, method) = ("T".repeat(249), "m".repeat(250));
    let mut source = format!("package demo; public class {class} {{ static int {method}(");
    let parameters: Vec<String> = (0..254).map(|n| format!("{class} p{n}")).collect();
    let nulls = vec!["null"; 254].join(",");
    write!(
        source,
        "{}) {{ return 1; }}
public static void main(String[] words) throws Exception {{
    int sum = 0;
    for (int i = 0; i < 5; i++) sum += {method}({nulls});
    Thread other = new Thread(() -> System.out.println({method}({nulls})), \"\\u00e9\".repeat(70_000));
    other.start();
    other.join();
    System.out.println(sum);
}} }}",
        parameters.join(",")
    )
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    // The file name with `.java` may have the maximum length.
    let file = folder.path().join(format!("{class}.java"));
    std::fs::write(&file, source).unwrap();
    jdk.compile([&file], folder.path());
    for dialect in [Dialect::F1, Dialect::V1, Dialect::V4] {
        let hq =
            Listening::new(Options { configuration: demo(), protocol: only(dialect), ..Options::default() });
        let version = if dialect == Dialect::V4 { ",version=4" } else { "" };
        let mut java = jdk.java();
        let library = crate::common::library();
        java.arg(format!("-agentpath:{}=port={}{version}", library.display(), hq.hq.address().port()));
        java.arg("-Xverify:all").arg("-cp").arg(folder.path()).arg(format!("demo.{class}"));
        let finished = run(java);
        finished.expect_code(0);
        assert_eq!((finished.text(), &*finished.stderr), ("1\n5\n", ""), "{dialect}");
        let report = hq.report();
        assert_eq!((&report.findings, report.counters.missing), (&Vec::new(), 0), "{dialect}");
        let beginning = format!("demo/{class}.{method};8;(");
        let found = report.methods.iter().find(|one| one.signature.starts_with(&beginning)).unwrap();
        assert_eq!((found.signature.len(), found.entries, found.exits), (65_535, 6, 6), "{dialect}");
        if dialect != Dialect::V4 {
            let named = report.threads.iter().filter_map(|thread| thread.name.as_deref());
            let longest = named.max_by_key(|name| name.len()).unwrap();
            assert_eq!(longest, "é".repeat(32_767), "{dialect}");
        }
    }
}

/// The originals cannot read records, sealed classes and nests.
#[test]
fn class_files_newer_than_the_originals() {
    let tools = require!(Jdk::with_compiler());
    let folder = tempfile::tempdir().unwrap();
    let counter = require!(JvmCounter::build(folder.path()));
    let classes = folder.path().join("classes");
    let mut javac = std::process::Command::new(tools.home().join("bin/javac"));
    javac.args(["--release", "17", "-g", "-d"]).arg(&classes);
    javac.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java/later/Newest.java"));
    run(javac).expect_code(0);
    for jdk in require!(Jdk::all()).iter().filter(|jdk| jdk.major() >= 17) {
        let load = Load {
            name: "later.Newest",
            class_path: vec![classes.clone()],
            options: Vec::new(),
            main: "later.Newest",
            arguments: Vec::new(),
            files: Vec::new(),
            packages: &["later/"],
            limit: HARD_LIMIT,
        };
        let work = folder.path().join("work");
        let alone = load.plain(jdk, &work);
        for record in [RecordMode::Full, RecordMode::Counts] {
            let (compared, wrong) = load.judged(jdk, &work, &counter, &alone, record).differences();
            assert_eq!(wrong, Vec::<String>::new(), "JDK {} {record:?}", jdk.major());
            // Two circles with a negative radius fail after `super()`; without a shape, the exception is thrown before.
            assert_eq!((compared.thrown, compared.unborn), (3, 0), "JDK {} {record:?}", jdk.major());
            assert!(compared.methods >= 28, "{compared:?}");
        }
    }
}
