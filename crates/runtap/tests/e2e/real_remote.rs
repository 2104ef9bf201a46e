//! `runtap://HOST:PORT[/PID|NAME]`: verbs on a process behind `runtap router listen`, and rejected clients.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use runtap_testkit::{Finished, Launch, RealRuntime, Running, Signal, Skip, eventually, run};
use serde_json::Value;

use crate::bridge::free_port;
use crate::common::{Target, command, counts};

on_the_newest_runtime!(
    verbs_reach_another_machine,
    clients_without_the_token_are_rejected,
    forwarded_handshakes_are_rejected,
    a_recorded_handshake_is_useless,
    strangers_delay_no_other,
);

/// A program that is idle until it receives input.
const IDLE: [&str; 3] = ["0.05", "1000", "--stdin"];
const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn idle(runtime: &RealRuntime) -> Result<Launch, Skip> {
    runtime.program("spin", &IDLE)
}

/// A target, and a router that offers it.
struct OfferedTarget {
    target: Target,
    router: Running,
    address: SocketAddr,
    token: PathBuf,
}

impl OfferedTarget {
    fn start(runtime: &RealRuntime) -> Result<Self, Skip> {
        let (target, address) = (Target::start(idle(runtime)?), free_port());
        let token = file(target.temp.path(), "token", SECRET, 0o600);
        let mut router =
            command(["router", "listen", &address.to_string(), "--format", "json", "-v", "--token-file"]);
        router.arg(&token).env("TMPDIR", target.temp.path());
        let router = Running::start(router);
        eventually("the router", || TcpStream::connect(address).ok());
        Ok(Self { target, router, address, token })
    }

    fn url(&self, which: &str) -> String {
        format!("runtap://{}/{which}", self.address)
    }

    /// Runs a verb on the target, by its process id there.
    fn run(&self, verb: &[&str], rest: &[&str]) -> Finished {
        let mut command = command(verb);
        command.arg(self.url(&self.target.p())).args(rest).env("RUNTAP_TOKEN", SECRET);
        run(command)
    }

    fn end(self) -> Value {
        self.target.still_answers();
        self.router.signal(Signal::TERM);
        self.router.wait().expect_code(0).json()
    }
}

fn file(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

fn verbs_reach_another_machine(runtime: &RealRuntime) -> Result<(), Skip> {
    let offered = OfferedTarget::start(runtime)?;
    let pid = Value::from(offered.target.pid());
    let list = |which: &str| {
        let mut ps = command(["ps", &offered.url(which), "--format", "json", "--token-file"]);
        ps.arg(&offered.token);
        run(ps)
    };
    for which in ["", &offered.target.p()] {
        let document = list(which).expect_code(0).json();
        let rows = document["processes"].as_array().unwrap();
        let row = rows.iter().find(|row| row["pid"] == pid).unwrap();
        assert_eq!((&row["name"], &row["reachable"]), (&"spin".into(), &true.into()));
        assert_eq!(row["socket"], offered.url(&offered.target.p()));
    }
    list("nobody-is-called-so").expect_code(3);

    // A router for this program reports its name too: if it were offered, the name would be ambiguous.
    let socket = offered.target.socket().display().to_string();
    let mut other = command(["router", "server-client", "--diagnostic-port", &format!("{socket},connect")]);
    other.env("TMPDIR", offered.target.temp.path());
    let other = Running::start(other);
    let is_there = || {
        fs::read_dir(offered.target.temp.path()).unwrap().flatten().any(|entry| {
            entry.file_name().to_string_lossy().starts_with(&format!("dotnet-diagnostic-{}-", other.id()))
        })
    };
    eventually("the other router", || is_there().then_some(()));
    let document = list("").expect_code(0).json();
    let pids: Vec<&Value> = document["processes"].as_array().unwrap().iter().map(|row| &row["pid"]).collect();
    assert!(pids.contains(&&pid) && !pids.contains(&&Value::from(other.id())), "{document}");
    list("spin").expect_code(0);
    other.signal(Signal::TERM);
    other.wait();

    let info = offered.run(&["info"], &["--format", "json"]);
    let info = info.expect_code(0).json();
    assert_eq!(info["entry_assembly"], "spin");
    let mut by_port =
        command(["info", "--format", "json", "--diagnostic-port", &offered.url(&offered.target.p())]);
    by_port.env("RUNTAP_TOKEN", SECRET);
    assert_eq!(run(by_port).expect_code(0).json(), info);
    let env = offered.run(&["env"], &["--format", "json"]);
    assert!(env.expect_code(0).text().contains("TMPDIR"));
    offered.run(&["set-env"], &["FROM_AFAR=yes"]).expect_code(0);
    assert!(offered.run(&["env"], &[]).expect_code(0).text().contains("FROM_AFAR=yes"));
    offered.run(&["resume"], &[]).expect_code(0);

    let trace = offered.target.temp.path().join("far.nettrace");
    let trace_to = trace.to_str().unwrap();
    let traced =
        offered.run(&["trace"], &["--duration", "2s", "--to", "speedscope,nettrace", "-o", trace_to]);
    traced.expect_code(0);
    let counted = counts(&trace, 0);
    assert!(counted["counts"].as_array().is_some_and(|counts| !counts.is_empty()), "{counted}");
    let tail = offered
        .run(&["tail"], &["--providers", "System.Runtime:0:4:EventCounterIntervalSec=1", "--duration", "3s"]);
    tail.expect_code(0);
    assert!(tail.text().contains("System.Runtime"), "{tail}");

    // Verbs that need the files or the kernel of the target's machine.
    for (verb, rest) in
        [(&["dump"][..], &["-o", "/tmp/never"][..]), (&["doctor"], &[]), (&["startup-hook"], &["/hook.dll"])]
    {
        offered.run(verb, rest).expect_code(3).says("another machine");
    }
    assert!(!Path::new("/tmp/never").exists());
    let counted = offered.end();
    assert!(counted["bytes_to_clients"].as_u64().unwrap() > 50_000, "{counted}");
    Ok(())
}

fn clients_without_the_token_are_rejected(runtime: &RealRuntime) -> Result<(), Skip> {
    let offered = OfferedTarget::start(runtime)?;
    let ps = |options: &[&str], token: Option<&str>| {
        let mut ps = command(["ps", &offered.url("")]);
        ps.env_remove("RUNTAP_TOKEN").args(options).envs(token.map(|token| ("RUNTAP_TOKEN", token)));
        run(ps)
    };
    ps(&[], None).expect_code(2).says("RUNTAP_TOKEN");
    ps(&[], Some("0123456789abcdef-but-another")).expect_code(3).says("the router has a different token");
    ps(&[], Some("short")).expect_code(2).says("16");
    let open = file(offered.target.temp.path(), "open", SECRET, 0o644);
    ps(&["--token-file", open.to_str().unwrap()], None).expect_code(2).says("chmod 600");
    let mut router = command(["router", "listen", "127.0.0.1:0", "--token-file"]);
    router.arg(&open);
    run(router).expect_code(2).says("is readable by other users");
    let mut beyond = command(["router", "listen", "0.0.0.0:0", "--token-file"]);
    beyond.arg(&offered.token);
    run(beyond).expect_code(2).says("--insecure");

    // A router without the token can't impersonate one.
    let liar = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("runtap://{}", liar.local_addr().unwrap());
    let lying = thread::spawn(move || {
        let (mut client, _) = liar.accept().unwrap();
        let mut hello = [0; 44];
        client.read_exact(&mut hello).unwrap();
        client.write_all(&[b"RUNTAP-R\x02\0", &[7; 32][..]].concat()).unwrap();
        let mut ask = [0; 2 + 1 + 18 + 32];
        client.read_exact(&mut ask).unwrap();
        assert!(!ask.windows(8).any(|part| part == &SECRET.as_bytes()[..8]));
        // OK, an empty list, and no proof.
        client.write_all(&[&[0, 0, 2, 0, 0, 0, 0, 0][..], &[0; 32]].concat()).unwrap();
    });
    let mut fooled = command(["ps", &url]);
    fooled.env("RUNTAP_TOKEN", SECRET);
    run(fooled).expect_code(3).says("the peer has a different token");
    lying.join().unwrap();
    offered.end();
    Ok(())
}

/// A listener at another address that forwards all bytes to a router with this token fails.
fn forwarded_handshakes_are_rejected(runtime: &RealRuntime) -> Result<(), Skip> {
    let offered = OfferedTarget::start(runtime)?;
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let (at, there) = (relay.local_addr().unwrap(), offered.address);
    let relaying = thread::spawn(move || {
        let (client, _) = relay.accept().unwrap();
        let router = TcpStream::connect(there).unwrap();
        let (mut from, mut to) = (client.try_clone().unwrap(), router.try_clone().unwrap());
        let up = thread::spawn(move || std::io::copy(&mut from, &mut to));
        let _ = std::io::copy(&mut &router, &mut &client);
        client.shutdown(std::net::Shutdown::Both).unwrap();
        let _ = up.join().unwrap();
    });
    let mut ps = command(["ps", &format!("runtap://{at}")]);
    ps.env("RUNTAP_TOKEN", SECRET);
    let told = run(ps);
    told.expect_code(3).says("was relayed").says(&format!("connected to {at}, not {there}"));
    told.says("--public-address");
    relaying.join().unwrap();
    offered.end();
    Ok(())
}

/// Replays a client's recorded bytes on another connection. The listener in between looks like a tunnel.
fn a_recorded_handshake_is_useless(runtime: &RealRuntime) -> Result<(), Skip> {
    let offered = OfferedTarget::start(runtime)?;
    let spy = TcpListener::bind(("127.0.0.2", offered.address.port())).unwrap();
    let url = format!("runtap://{}", spy.local_addr().unwrap());
    let (address, (tell, heard)) = (offered.address, mpsc::channel());
    thread::spawn(move || {
        let (mut client, _) = spy.accept().unwrap();
        let mut router = TcpStream::connect(address).unwrap();
        let mut hello = vec![0; 44];
        client.read_exact(&mut hello).unwrap();
        router.write_all(&hello).unwrap();
        let mut challenge = [0; 42];
        router.read_exact(&mut challenge).unwrap();
        client.write_all(&challenge).unwrap();
        let mut ask = vec![0; 2 + 1 + 18 + 32];
        client.read_exact(&mut ask).unwrap();
        router.write_all(&ask).unwrap();
        std::io::copy(&mut router, &mut client).unwrap();
        tell.send((hello, ask)).unwrap();
    });
    let mut ps = command(["ps", &url]);
    ps.env("RUNTAP_TOKEN", SECRET);
    run(ps).expect_code(0);
    let (hello, ask) = heard.recv().unwrap();
    let mut again = TcpStream::connect(address).unwrap();
    again.write_all(&[hello, ask].concat()).unwrap();
    let mut answer = Vec::new();
    again.read_to_end(&mut answer).unwrap();
    // The challenge, and then the rejection.
    assert_eq!(answer.len(), 42 + 6 + 32);
    assert_eq!(answer[42..48], [1, 0, 0, 0, 0, 0]);
    offered.end();
    Ok(())
}

fn strangers_delay_no_other(runtime: &RealRuntime) -> Result<(), Skip> {
    let offered = OfferedTarget::start(runtime)?;
    let strangers: Vec<TcpStream> = (0..300)
        .map(|n| {
            let mut stranger = TcpStream::connect(offered.address).unwrap();
            let said =
                [&b"RUNTAP-R"[..], b"GET / HTTP/1.1\r\nHost: a-host-with-a-long-name\r\n\r\n", b""][n % 3];
            // A connection that makes room for others is closed.
            let _ = stranger.write_all(said);
            stranger
        })
        .collect();
    offered.run(&["info"], &[]).expect_code(0);
    drop(strangers);
    let counted = offered.end();
    // All of them were accepted, at the same time as the served clients.
    assert!(counted["connections"].as_u64().unwrap() > 300, "{counted}");
    assert!(counted["refused"].as_u64().unwrap() >= 100, "{counted}");
    Ok(())
}
