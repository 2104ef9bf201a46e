//! Things that the agent must never do: keep a JVM from starting, obey another user, or make a program wait for a
//! stopped process. And protection of tracing users against other users.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use runtap_bytefrog::hq::{Hq, Options};
use runtap_bytefrog_proto::Dialect;
use runtap_testkit::fake_agent::{FakeAgent, Step};
use runtap_testkit::{Jdk, Program, Signal, Skip, eventually, require, run};

use crate::attacker::{NOBODY, become_user};
use crate::cli_jvm::Collector;
use crate::common::{command, folder, runtap};
use crate::real_jvm::{AttachedTrace, agents, calls, classes};

/// Runs until it is terminated, and prints a line once a file exists.
const LOOP: &str = "package shop;
public class Loop {
    static int leaf(int n) { return n + 1; }
    static int work(int n) { int s = 0; for (int i = 0; i < n; i++) s += leaf(i); return s; }
    public static void main(String[] words) {
        java.io.File mark = new java.io.File(words[0]);
        System.out.println(\"ready\");
        long sum = 0;
        for (int after = 0; ; ) {
            for (int i = 0; i < 300000; i++) sum += work(10);
            if (mark.exists()) System.out.println(\"after \" + ++after + \" \" + sum);
        }
    }
}
";

fn root() -> Result<(), Skip> {
    let root = rustix::process::geteuid().is_root();
    root.then_some(()).ok_or_else(|| Skip::because("only root can run programs as another user"))
}

fn java(jdk: &Jdk, classes: &Path) -> String {
    format!("'{}' -cp '{}' shop.Work", jdk.home().join("bin/java").display(), classes.display())
}

/// Returns `runtap jvm run` of a shell command, with a cache directory.
fn run_in_shell(home: &Path, script: &str) -> Command {
    let mut command = command(["jvm", "run", "--include", "^shop/", "--format", "json", "--", "sh", "-c"]);
    command.arg(script).env("XDG_CACHE_HOME", home);
    command
}

#[test]
fn a_jvm_that_starts_after_the_run_starts() {
    require!(afterwards());
}

fn afterwards() -> Result<(), Skip> {
    let (classes, home) = (classes()?, folder());
    for jdk in Jdk::all()? {
        let kept = home.path().join("variable");
        let script = format!("printf %s \"$JAVA_TOOL_OPTIONS\" > '{}'", kept.display());
        run(run_in_shell(home.path(), &script)).expect_code(5);
        let variable = fs::read_to_string(&kept).unwrap();
        assert!(variable.starts_with("-agentpath:/"), "{variable}");
        // A daemon that the command starts later.
        let mut later = Command::new("sh");
        later
            .args(["-c", &format!("{} 5 0 0", java(&jdk, classes.path()))])
            .env("JAVA_TOOL_OPTIONS", &variable);
        let finished = run(later);
        finished.expect_code(0);
        assert!(finished.text().contains("sum 282"), "{finished}");
        assert!(!finished.stderr.contains("runtap agent"), "nothing is wrong: {finished}");
        // A traced build below that daemon: the library is passed twice, but loaded as one agent.
        let mut again = run_in_shell(home.path(), &format!("{} 5 0 0", java(&jdk, classes.path())));
        again.env("JAVA_TOOL_OPTIONS", &variable);
        let finished = run(again);
        finished.expect_code(0);
        let [agent] = &agents(&finished.json())[..] else { panic!("{finished}") };
        assert_eq!(calls(agent, "shop/Work.work"), [5, 5, 0]);
        assert_eq!(calls(agent, "shop/Work.leaf"), [50, 50, 0]);
    }
    Ok(())
}

#[test]
fn an_agent_given_twice_is_loaded_once() {
    require!(twice());
}

fn twice() -> Result<(), Skip> {
    let (classes, folder) = (classes()?, folder());
    let library = folder.path().join("agent.so");
    let mut written = command(["jvm", "agent", "-o"]);
    written.arg(&library);
    run(written).expect_code(0);
    for jdk in Jdk::all()? {
        let collector = Collector::start(&["--once", "--format", "json", "--include", "^shop/"]);
        let address = collector.address;
        let option =
            format!("-agentpath:{}=host={},port={}", library.display(), address.ip(), address.port());
        let mut program = jdk.java();
        program.args([&option, &option]).arg("-cp").arg(classes.path()).args(["shop.Work", "5", "0", "0"]);
        let finished = run(program);
        finished.expect_code(0);
        assert!(finished.text().contains("sum 282"), "{finished}");
        assert!(!finished.stderr.contains("runtap agent"), "{finished}");
        let [agent] = &collector.agents(0)[..] else { panic!("one agent") };
        assert_eq!(calls(agent, "shop/Work.work"), [5, 5, 0]);
    }
    Ok(())
}

#[test]
fn an_agent_does_not_obey_a_collector_of_another_user() {
    require!(not_obeyed());
}

fn not_obeyed() -> Result<(), Skip> {
    root()?;
    let (classes, folder) = (classes()?, folder());
    let listening = thread::spawn(|| {
        become_user(NOBODY);
        Hq::listen(SocketAddr::from(([127, 0, 0, 1], 0)), Options::default(), |_, _| {}).unwrap()
    });
    let theirs = listening.join().unwrap();
    let address = theirs.address();
    let library = folder.path().join("agent.so");
    let mut written = command(["jvm", "agent", "-o"]);
    written.arg(&library);
    run(written).expect_code(0);
    let jdk = Jdk::with_compiler()?;
    let at = |more: &str| {
        let mut program = jdk.java();
        program.arg(format!("-agentpath:{}=host=127.0.0.1,port={}{more}", library.display(), address.port()));
        program.arg("-cp").arg(classes.path()).args(["shop.Work", "5", "0", "0"]);
        run(program)
    };
    let finished = at("");
    finished.expect_code(0).says("belongs to user 65534").says("hq-user=65534");
    // A running JVM.
    let mut running = jdk.java();
    running.arg("-cp").arg(classes.path()).args(["shop.Work", "1000000", "1", "0"]);
    running.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = Program::start(running);
    running.wait_for("ready");
    runtap(["jvm", "attach", &running.id().to_string(), "--hq", &address.to_string()])
        .expect_code(4)
        .says("belongs to user 65534");
    // The other user's listener has received a hello, but no class or call.
    for agent in theirs.agents() {
        let (counters, _) = theirs.counters(agent.id).unwrap();
        assert_eq!((counters.entries, agent.reported_mode), (0, None));
        assert_eq!(theirs.report(agent.id).unwrap().methods.len(), 0);
    }
    // A user can allow it explicitly.
    let obeys = at(",hq-user=65534");
    obeys.expect_code(0);
    for program in [finished, obeys] {
        assert!(program.text().contains("sum 282"), "{program}");
    }
    assert!(theirs.agents().iter().any(|agent| theirs.counters(agent.id).unwrap().0.entries > 0));
    Ok(())
}

#[test]
fn agents_of_other_users_are_accepted_only_by_an_option() {
    require!(let_in());
}

fn let_in() -> Result<(), Skip> {
    root()?;
    let says_hello = |address: SocketAddr| {
        let theirs = thread::spawn(move || {
            become_user(NOBODY);
            let mut agent = FakeAgent::connect(address, Dialect::V1).unwrap();
            agent.run(&[Step::Hello, Step::AwaitConfiguration]).is_ok()
        });
        theirs.join().unwrap()
    };
    let closed = Collector::start(&["--plain"]);
    assert!(!says_hello(closed.address));
    closed.wait_for("it is of user 65534");
    let mut ours = FakeAgent::connect(closed.address, Dialect::V1).unwrap();
    ours.run(&[Step::Hello, Step::AwaitConfiguration]).unwrap();
    for user in ["65534", "nobody", "all"] {
        let open = Collector::start(&["--plain", "--allow-user", user]);
        assert!(says_hello(open.address), "{user}");
    }
    runtap(["jvm", "hq", "--listen", "127.0.0.1:0", "--allow-user", "no such user"]).expect_code(2);
    Ok(())
}

/// A run is one byte, so any client can guess that of another user's agent.
#[test]
fn no_other_user_adds_to_the_trace_of_an_agent() {
    require!(not_added());
}

fn not_added() -> Result<(), Skip> {
    root()?;
    let open = Collector::start(&["--plain", "--allow-user", "nobody"]);
    let mut ours = FakeAgent::connect(open.address, Dialect::V1).unwrap();
    ours.run(&[Step::Hello, Step::AwaitConfiguration, Step::ConnectData]).unwrap();
    let address = open.address;
    let theirs = thread::spawn(move || {
        become_user(NOBODY);
        for run in 0..=u8::MAX {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            stream.write_all(&[0x1e, run]).unwrap();
            // An accepted connection would stay open.
            stream.read_to_end(&mut Vec::new()).unwrap_or_else(|error| panic!("run {run}: {error}"));
        }
    });
    theirs.join().unwrap();
    ours.run(&[Step::ConnectData]).unwrap();
    Ok(())
}

/// A crowd at the port of `jvm run`: each connection is looked up separately, so the JVM's is accepted.
#[test]
fn a_crowd_of_another_user_does_not_keep_a_run_from_tracing() {
    require!(crowd());
}

fn crowd() -> Result<(), Skip> {
    root()?;
    let (classes, folder) = (classes()?, folder());
    let (port, go) = (folder.path().join("port"), folder.path().join("go"));
    let script = format!(
        "echo \"$JAVA_TOOL_OPTIONS\" > '{0}.new'; mv '{0}.new' '{0}'; until test -e '{1}'; do :; done; {2} 5 0 0",
        port.display(),
        go.display(),
        java(&Jdk::with_compiler()?, classes.path())
    );
    let traced = run_in_shell(folder.path(), &script);
    let traced = thread::spawn(move || run(traced));
    let variable = eventually("the port is known", || fs::read_to_string(&port).ok());
    let port = variable.split("port=").nth(1).unwrap();
    let port: u16 = port.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let attackers: Vec<_> = (0..4)
        .map(|_| {
            let over = Arc::clone(&over);
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            thread::spawn(move || {
                become_user(NOBODY);
                // Some stay connected, which makes the kernel's table long.
                let mut held = Vec::new();
                for _ in 0..20_000 {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    match TcpStream::connect(address) {
                        Ok(stream) if held.len() < 200 => held.push(stream),
                        _ => {}
                    }
                }
            })
        })
        .collect();
    fs::write(&go, "").unwrap();
    let finished = traced.join().unwrap();
    over.store(true, Ordering::Relaxed);
    for attacker in attackers {
        attacker.join().unwrap();
    }
    finished.expect_code(0);
    let [agent] = &agents(&finished.json())[..] else { panic!("{finished}") };
    assert_eq!(calls(agent, "shop/Work.work"), [5, 5, 0]);
    Ok(())
}

/// Ctrl-Z at `jvm attach`: the traced program continues.
#[test]
fn a_stopped_attach_does_not_stop_the_program() {
    require!(stopped());
}

fn stopped() -> Result<(), Skip> {
    let folder = folder();
    let (source, mark) = (folder.path().join("Loop.java"), folder.path().join("mark"));
    fs::write(&source, LOOP).unwrap();
    let jdk = Jdk::with_compiler()?;
    jdk.compile([&source], folder.path());
    let mut program = jdk.java();
    program.arg("-cp").arg(folder.path()).arg("shop.Loop").arg(&mark);
    program.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(program);
    program.wait_for("ready");
    let traces = AttachedTrace::start(&program.id().to_string(), &[]);
    traces.wait_for_calls();
    traces.process.signal(Signal::STOP);
    fs::write(&mark, "").unwrap();
    // Far more calls than fit into the buffers between the two.
    program.wait_for("after 3 ");
    traces.process.signal(Signal::CONT);
    traces.process.signal(Signal::INT);
    let finished = traces.process.wait();
    assert!(finished.text().contains("shop.Loop.leaf(int)"), "{finished}");
    Ok(())
}
