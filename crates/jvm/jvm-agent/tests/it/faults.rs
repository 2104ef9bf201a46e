//! No action of HQ, and no lack of one, ends the program or changes its output.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use runtap_bytefrog::hq::{AgentId, Options};
use runtap_bytefrog_proto::hq::Settings;
use runtap_bytefrog_proto::{Configuration, Dialect};
use runtap_testkit::{Jdk, eventually, require};

use crate::common::{Listening, demo, run_both, traced};

const COUNTS: &[&str] = &["demo.Counts", "2", "100"];

/// Starts an HQ that sends a fixed answer on the first connection and on all later ones.
fn answering(answer: impl Fn(&mut TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let mut socket = socket;
            answer(&mut socket);
        }
    });
    port
}

fn configuration(dialect: Dialect) -> Vec<u8> {
    demo().to_message(dialect).unwrap()
}

#[test]
fn no_hq_listens() {
    let jdk = require!(Jdk::with_compiler());
    // The port of a client: nothing listens there, and no other process gets it meanwhile.
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    require!(run_both(&jdk, client.local_addr().unwrap().port(), ",wait=1", COUNTS));
}

#[test]
fn an_hq_that_says_nothing() {
    let jdk = require!(Jdk::with_compiler());
    let port = answering(|socket| {
        // Kept open until the agent closes it.
        let mut socket = socket.try_clone().unwrap();
        std::thread::spawn(move || while matches!(socket.read(&mut [0; 64]), Ok(1..)) {});
    });
    require!(run_both(&jdk, port, ",wait=1", COUNTS));
}

#[test]
fn an_hq_that_speaks_something_else() {
    let jdk = require!(Jdk::with_compiler());
    for answer in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], &[0x07; 300], &[1, 0, 0, 0, 2, b'{', b'}', 3]] {
        let port = answering(move |socket| {
            let _ = socket.read(&mut [0; 2]);
            let _ = socket.write_all(answer);
        });
        require!(run_both(&jdk, port, ",wait=2", COUNTS));
    }
}

/// With `drop` a slow HQ costs the program nothing; at its end it waits a little for an HQ that reads nothing more.
#[test]
fn an_hq_that_stops_reading() {
    let jdk = require!(Jdk::with_compiler());
    for when_slow in ["drop", "counts"] {
        let port = answering(|socket| {
            let mut hello = [0; 2];
            socket.read_exact(&mut hello).unwrap();
            let mut answer = vec![0x1f];
            if hello == [0, 0xf1] {
                answer = configuration(Dialect::F1);
                answer.push(2);
            }
            let _ = socket.write_all(&answer);
            // Open forever, and never read again.
            std::mem::forget(socket.try_clone().unwrap());
        });
        let options = format!(",when-slow={when_slow}");
        let java = require!(traced(&jdk, port, &options, &["demo.Bench", "2", "300000"]));
        let finished = runtap_testkit::run(java);
        finished.expect_code(0);
        assert_eq!(finished.stderr, "", "{finished}");
    }
}

#[test]
fn stop_before_start() {
    let jdk = require!(Jdk::with_compiler());
    let port = answering(|socket| {
        let _ = socket.read(&mut [0; 2]);
        let mut bytes = configuration(Dialect::F1);
        bytes.push(3);
        let _ = socket.write_all(&bytes);
        // Until the agent has closed it.
        while matches!(socket.read(&mut [0; 256]), Ok(1..)) {}
    });
    require!(run_both(&jdk, port, "", COUNTS));
}

#[test]
fn a_configuration_in_pieces() {
    let jdk = require!(Jdk::with_compiler());
    let port = answering(|socket| {
        let _ = socket.read(&mut [0; 2]);
        for byte in configuration(Dialect::F1) {
            let _ = socket.write_all(&[byte]);
            let _ = socket.flush();
        }
        // A heartbeat shows that the agent has read everything. HQ closes the connection before start.
        let _ = socket.read(&mut [0; 4]);
    });
    require!(run_both(&jdk, port, "", COUNTS));
}

#[test]
fn an_expression_that_is_none() {
    let jdk = require!(Jdk::with_compiler());
    let inclusions = vec![runtap_bytefrog_proto::JavaString::from("demo/(")];
    let hq = Listening::with(Configuration { inclusions, ..demo() });
    let finished = require!(run_both(&jdk, hq.hq.address().port(), "", COUNTS));
    assert!(finished.stderr.contains("demo/("), "{finished}");
}

/// Counts, coverage and nanoseconds require F1: without it nothing is traced, for an old HQ as for a chosen older version.
#[test]
fn what_an_old_hq_can_not_take_is_refused() {
    let jdk = require!(Jdk::with_compiler());
    for (dialect, version) in [(Dialect::V1, ""), (Dialect::V4, ""), (Dialect::V4, ",version=4")] {
        for wish in ["mode=counts", "mode=coverage", "clock=ns", "when-slow=counts"] {
            let protocol = Settings { dialects: vec![dialect], ..Settings::default() };
            let hq = Listening::new(Options { configuration: demo(), protocol, ..Options::default() });
            let options = format!(",{wish}{version}");
            let finished = require!(run_both(&jdk, hq.hq.address().port(), &options, COUNTS));
            assert!(finished.stderr.contains(&format!("{wish} requires F1")), "{finished}");
            assert_eq!(hq.dialect(), None, "it has got no configuration");
        }
    }
}

/// Most HQs support version 1; the agent tries the others with an HQ that does not.
#[test]
fn an_hq_that_knows_one_version() {
    let jdk = require!(Jdk::with_compiler());
    for dialect in [Dialect::V2, Dialect::V3, Dialect::V4] {
        let protocol = Settings { dialects: vec![dialect], ..Settings::default() };
        let hq = Listening::new(Options { configuration: demo(), protocol, ..Options::default() });
        let finished = require!(run_both(&jdk, hq.hq.address().port(), "", COUNTS));
        assert_eq!((finished.stderr.as_str(), hq.dialect()), ("", Some(dialect)));
        assert!(hq.report().counters.entries > 1000);
    }
}

/// With an HQ that excludes nothing, an agent's own inclusions work like HQ's: nothing else is traced.
#[test]
fn an_inclusion_alone_leaves_all_others_out() {
    let jdk = require!(Jdk::with_compiler());
    let everything = Configuration { inclusions: Vec::new(), exclusions: Vec::new(), ..demo() };
    let hq = Listening::with(everything);
    let options = ",include=^demo/Counts\\$Node$";
    require!(run_both(&jdk, hq.hq.address().port(), options, COUNTS));
    let report = hq.report();
    let strange = report.methods.iter().find(|one| !one.signature.starts_with("demo/Counts$Node."));
    assert_eq!((strange, report.methods.is_empty()), (None, false));
}

#[test]
fn hq_goes_away() {
    for jdk in require!(Jdk::all()) {
        let hq = Listening::with(demo());
        let mut java = require!(traced(&jdk, hq.hq.address().port(), "", &["demo.Forever"]));
        java.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = java.spawn().unwrap();
        let entries = || hq.hq.report(AgentId(0)).map_or(0, |report| report.counters.entries);
        eventually("it traces", || (entries() > 10_000).then_some(()));
        hq.hq.close();
        // The agent's threads are gone, and the program still runs.
        eventually("no thread of the agent is left", || agent_threads(child.id()).is_empty().then_some(()));
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "JDK {}", jdk.major());
        assert_eq!(output.stdout, b"ready\ndone\n");
    }
}

/// Returns the names of the agent's threads in a process.
pub(crate) fn agent_threads(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("runtap-")).collect()
}

#[test]
fn attached_and_detached_again_and_again() {
    let tools = require!(Jdk::with_compiler());
    let jcmd = tools.home().join("bin/jcmd");
    for jdk in require!(Jdk::all()) {
        let mut java = jdk.java();
        if jdk.major() >= 21 {
            java.arg("-XX:+EnableDynamicAgentLoading");
        }
        java.arg("-Xverify:all").arg("-cp").arg(require!(crate::common::programs())).arg("demo.Forever");
        java.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = java.spawn().unwrap();
        let mut ready = [0; 6];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        let load = |options: &str| {
            let mut command = std::process::Command::new(&jcmd);
            command.arg(child.id().to_string()).arg("JVMTI.agent_load").arg(crate::common::library());
            let finished = runtap_testkit::run({
                command.arg(options);
                command
            });
            finished.expect_code(0);
            assert!(String::from_utf8_lossy(&finished.stdout).contains("return code: 0"), "{finished}");
        };
        for _ in 0..3 {
            let hq = Listening::with(demo());
            load(&format!("\"host=127.0.0.1,port={}\"", hq.hq.address().port()));
            let entries = || hq.hq.report(AgentId(0)).map_or(0, |report| report.counters.entries);
            eventually("it traces", || (entries() > 10_000).then_some(()));
            load("detach");
            let report = hq.report();
            assert_eq!(report.counters.orphans, 0, "JDK {}: {:?}", jdk.major(), report.findings);
            eventually("no thread is left", || agent_threads(child.id()).is_empty().then_some(()));
        }
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "JDK {}", jdk.major());
        assert_eq!(output.stdout, b"done\n");
    }
}

/// Starts `demo.Forever` in a JVM without the agent.
fn forever(jdk: &Jdk) -> std::process::Child {
    let mut java = jdk.java();
    if jdk.major() >= 21 {
        java.arg("-XX:+EnableDynamicAgentLoading");
    }
    java.arg("-cp").arg(crate::common::programs().unwrap()).arg("demo.Forever");
    java.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = java.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut ready = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    child
}

/// Loads the agent and returns the JVM's answer.
fn load(pid: u32, options: &str) -> Result<String, runtap_testkit::Skip> {
    Ok(crate::losses::load(&Jdk::with_compiler()?, pid, options))
}

/// A JVM unloads an agent that does not start. None of its functions may be called then, and the next agent works.
#[test]
fn a_refusal_is_the_end_of_the_agent_and_not_of_the_program() {
    let refusal = b"\x63\x00\x0cno \x1b[31mway\n".to_vec();
    let message = |json: &str| {
        let mut bytes = vec![1];
        bytes.extend(u32::try_from(json.len()).unwrap().to_be_bytes());
        bytes.extend(json.as_bytes());
        bytes
    };
    let huge = [&b"\x01\xff\xff\xff\xff"[..], &vec![b' '; 50_000]].concat();
    let mut started = demo();
    started.inclusions = vec![runtap_bytefrog_proto::JavaString::from("(")];
    let mut started = started.to_message(Dialect::F1).unwrap();
    started.push(2);
    let answers = [
        (refusal, "no \\u{1b}[31mway\\n"),
        (vec![0xff; 5000], ""),
        (message("{\"inclusions\":[\"((\"],\"exclusions\":[]}"), ""),
        (message("nonsense"), ""),
        (huge, ""),
        (started, "\"(\""),
    ];
    require!(Jdk::with_compiler());
    for jdk in require!(Jdk::all()) {
        let mut child = forever(&jdk);
        for (answer, why) in &answers {
            let answer = answer.clone();
            let port = answering(move |socket| {
                let _ = socket.read(&mut [0; 2]);
                let _ = socket.write_all(&answer);
                let mut socket = socket.try_clone().unwrap();
                // Until the agent has closed it.
                std::thread::spawn(move || while matches!(socket.read(&mut [0; 256]), Ok(1..)) {});
            });
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("answer");
            let options = format!("host=127.0.0.1,port={port},wait=60,version=f1,answer={}", file.display());
            let said = load(child.id(), &options).unwrap();
            assert!(said.contains("return code: -1"), "JDK {}: {said}", jdk.major());
            let reason = std::fs::read_to_string(&file).unwrap();
            assert!(!reason.is_empty() && reason.contains(why), "JDK {}: {reason:?}", jdk.major());
            assert_eq!(agent_threads(child.id()), [""; 0], "JDK {}", jdk.major());
        }
        let said = load(child.id(), "include=(,mode=x").unwrap();
        assert!(said.contains("return code: -1"), "{said}");
        let hq = Listening::with(demo());
        let said = load(child.id(), &format!("host=127.0.0.1,port={}", hq.hq.address().port())).unwrap();
        assert!(said.contains("return code: 0"), "JDK {}: {said}", jdk.major());
        let entries = || hq.hq.report(AgentId(0)).map_or(0, |report| report.counters.entries);
        eventually("it traces", || (entries() > 10_000).then_some(()));
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "JDK {}: {:?}", jdk.major(), output.status);
        let said = String::from_utf8_lossy(&output.stderr);
        let agent: Vec<_> = said.lines().filter(|line| line.starts_with("runtap agent")).collect();
        // Only the messages that no attaching tool could receive.
        assert_eq!(
            agent,
            ["runtap agent: invalid value \"x\" for mode: expected full, counts or coverage"],
            "{said}"
        );
    }
}
