//! `runtap router` between real peers: .NET programs on one side, Microsoft's dotnet-trace and client library (dncli)
//! on the other, in each of the four modes.

use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use runtap_testkit::{Launch, Peer, RealRuntime, Running, Signal, Skip, eventually, run};
use serde_json::Value;

use crate::bridge::{free_port, port_to_tcp, tcp_to_socket};
use crate::common::{Target, command, folder, json, runtap};

on_the_newest_runtime!(
    server_server,
    server_client,
    client_server,
    client_client,
    local_runtimes,
    two_tools_at_once,
    deadly_requests_are_not_forwarded,
    silent_clients_delay_no_other,
);

/// A program that is idle until it receives input.
const IDLE: [&str; 3] = ["0.05", "1000", "--stdin"];

fn idle(runtime: &RealRuntime) -> Result<Launch, Skip> {
    runtime.program("spin", &IDLE)
}

/// Starts a program that connects to `port` without being suspended.
fn start_connecting(runtime: &RealRuntime, port: &Path) -> Result<Target, Skip> {
    Ok(Target::start(idle(runtime)?.env("DOTNET_DiagnosticPorts", format!("{},nosuspend", port.display()))))
}

/// A running router, and the directory that is its TMPDIR.
struct Router {
    runtap: Running,
    temp: PathBuf,
}

impl Router {
    fn start(temp: &Path, arguments: &[&str]) -> Self {
        let mut command = command(["router"]);
        command.args(arguments).args(["-v", "--format", "json"]).env("TMPDIR", temp);
        Self { runtap: Running::start(command), temp: temp.to_owned() }
    }

    /// Returns the socket that tools find by its process id.
    fn socket(&self) -> PathBuf {
        let prefix = format!("dotnet-diagnostic-dsrouter-{}-", self.runtap.id());
        let is_it = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&prefix);
        eventually("the socket of the router", || {
            fs::read_dir(&self.temp).unwrap().map(|entry| entry.unwrap().path()).find(is_it)
        })
    }

    /// Stops it as Ctrl-C does, and returns its summary.
    fn end(self) -> Value {
        let pid = self.runtap.id();
        self.runtap.signal(Signal::INT);
        let finished = self.runtap.wait();
        let result = finished.expect_code(0).json();
        assert_eq!(result["schema"], "runtap.router/1");
        let sockets = fs::read_dir(&self.temp).unwrap().map(|entry| entry.unwrap().file_name());
        let own = format!("-{pid}-");
        let left = sockets.filter(|name| name.to_string_lossy().contains(&own)).count();
        assert_eq!(left, 0, "the socket stays: {finished}");
        result
    }
}

/// Returns Microsoft's tool, with this temporary directory.
fn microsoft(name: &str, temp: &Path) -> Result<Command, Skip> {
    let mut command = Peer::available(name)?.command();
    command.env("TMPDIR", temp);
    Ok(command)
}

/// Records for two seconds with dotnet-trace, and converts the recording.
fn dotnet_trace(temp: &Path, how: &[&str]) -> Result<(), Skip> {
    let file = temp.join("trace.nettrace");
    let mut collect = microsoft("dotnet-trace", temp)?;
    collect.arg("collect").args(how).args(["--duration", "00:00:00:02", "-o"]).arg(&file);
    run(collect).expect_code(0);
    is_a_trace(temp, &file)
}

fn is_a_trace(temp: &Path, file: &Path) -> Result<(), Skip> {
    let mut convert = microsoft("dotnet-trace", temp)?;
    convert.arg("convert").arg(file).args(["--format", "Speedscope"]);
    run(convert).expect_code(0);
    let made = file.with_extension("speedscope.json");
    let document: Value = serde_json::from_slice(&fs::read(made).unwrap()).unwrap();
    assert!(document["profiles"].as_array().is_some_and(|profiles| !profiles.is_empty()));
    Ok(())
}

/// Runs Microsoft's client library on a process id: runtime information, and environment variables.
fn dncli(temp: &Path, pid: u32) -> Result<(), Skip> {
    let mut info = microsoft("dncli", temp)?;
    info.args(["info", "--pid", &pid.to_string()]);
    let info = run(info);
    assert!(info.expect_code(0).text().contains("spin"), "{info}");
    let mut env = microsoft("dncli", temp)?;
    env.args(["env", "--pid", &pid.to_string()]);
    let env = run(env);
    assert!(env.expect_code(0).text().contains("TMPDIR"), "{env}");
    Ok(())
}

fn server_server(runtime: &RealRuntime) -> Result<(), Skip> {
    let (temp, address) = (folder(), free_port());
    let router = Router::start(temp.path(), &["server-server", "-tcps", &address.to_string(), "-rt", "60"]);
    let port = temp.path().join("port");
    let socket = router.socket();
    port_to_tcp(&port, address);
    let _target = start_connecting(runtime, &port)?;

    let pid = router.runtap.id();
    dotnet_trace(temp.path(), &["-p", &pid.to_string()])?;
    dncli(temp.path(), pid)?;
    microsoft("dotnet-trace", temp.path())?;
    // dotnet-trace fails if any process of the machine exits while all are examined.
    let listed = eventually("its list", || {
        let mut list = microsoft("dotnet-trace", temp.path()).ok()?;
        list.arg("ps");
        let listed = run(list);
        (!listed.to_string().contains("Process has exited")).then_some(listed)
    });
    assert!(listed.expect_code(0).text().contains(&pid.to_string()));
    let through = format!("{},connect", socket.display());
    let info = json(["info", "--diagnostic-port", &through, "--format", "json"]);
    assert_eq!(info["entry_assembly"], "spin");
    let counted = router.end();
    assert!(counted["bytes_to_clients"].as_u64().unwrap() > 100_000, "{counted}");
    assert_eq!((&counted["runtimes"], &counted["refused"]), (&1.into(), &0.into()), "{counted}");
    Ok(())
}

fn server_client(runtime: &RealRuntime) -> Result<(), Skip> {
    let temp = folder();
    let target = Target::start(idle(runtime)?);
    let address = tcp_to_socket(target.socket()).to_string();
    let socket = temp.path().join("app.sock");
    let arguments = ["server-client", "-tcpc", &address, "-ipcs", socket.to_str().unwrap()];
    let router = Router::start(temp.path(), &arguments);
    eventually("the socket of the router", || socket.exists().then_some(()));
    dotnet_trace(temp.path(), &["--diagnostic-port", &format!("{},connect", socket.display())])?;
    let counted = router.end();
    assert!(!socket.exists());
    assert!(counted["forwarded"].as_u64().unwrap() >= 3, "session, resume, stop: {counted}");

    // By the process id of the router, too.
    let router = Router::start(temp.path(), &["server-client", "--tcp-client", &address]);
    router.socket();
    dotnet_trace(temp.path(), &["-p", &router.runtap.id().to_string()])?;
    dncli(temp.path(), router.runtap.id())?;
    router.end();
    target.still_answers();
    Ok(())
}

fn client_server(runtime: &RealRuntime) -> Result<(), Skip> {
    let (temp, address) = (folder(), free_port());
    let (port, tool) = (temp.path().join("port"), temp.path().join("tool.sock"));
    let tool = tool.to_str().unwrap();
    let router = Router::start(temp.path(), &["client-server", "-ipcc", tool, "-tcps", &address.to_string()]);
    port_to_tcp(&port, address);
    // Suspended until the tool connects: the resume request is forwarded, too.
    let waiting = idle(runtime)?.env("DOTNET_DiagnosticPorts", &port);
    let mut target = Target::start_unready(waiting);
    dotnet_trace(temp.path(), &["--diagnostic-port", tool])?;
    target.program.wait_for("ready");
    // A second tool at this port, and this runtime.
    let listening = format!("{tool},listen");
    let info = json(["info", "--diagnostic-port", &listening, "--format", "json"]);
    assert_eq!(info["entry_assembly"], "spin");
    let cookie = json(["info", "-p", &target.p(), "--format", "json"])["runtime_cookie"].clone();
    assert_eq!(info["runtime_cookie"], cookie);
    router.end();
    target.still_answers();
    Ok(())
}

fn client_client(runtime: &RealRuntime) -> Result<(), Skip> {
    let temp = folder();
    let target = Target::start(idle(runtime)?);
    let address = tcp_to_socket(target.socket()).to_string();
    let tool = temp.path().join("tool.sock");
    let tool = tool.to_str().unwrap();
    let router =
        Router::start(temp.path(), &["client-client", "--ipc-client", tool, "--tcp-client", &address]);
    dotnet_trace(temp.path(), &["--diagnostic-port", tool])?;
    let listening = format!("{tool},listen");
    let info = json(["info", "--diagnostic-port", &listening, "--format", "json"]);
    assert_eq!(info["entry_assembly"], "spin");
    router.end();
    target.still_answers();
    Ok(())
}

/// Without TCP: the runtime is local.
fn local_runtimes(runtime: &RealRuntime) -> Result<(), Skip> {
    let temp = folder();
    let port = temp.path().join("port");
    let router = Router::start(temp.path(), &["server-server", "--diagnostic-port", port.to_str().unwrap()]);
    router.socket();
    let target = start_connecting(runtime, &port)?;
    dotnet_trace(temp.path(), &["-p", &router.runtap.id().to_string()])?;
    router.end();

    let router = Router::start(temp.path(), &["server-client", "-p", &target.p()]);
    router.socket();
    dncli(temp.path(), router.runtap.id())?;
    router.end();
    target.still_answers();
    Ok(())
}

fn two_tools_at_once(runtime: &RealRuntime) -> Result<(), Skip> {
    let (temp, address) = (folder(), free_port());
    let router = Router::start(temp.path(), &["server-server", "--tcp-server", &address.to_string()]);
    let port = temp.path().join("port");
    let through = format!("{},connect", router.socket().display());
    port_to_tcp(&port, address);
    let _target = start_connecting(runtime, &port)?;
    let trace = |file: &Path| {
        let mut trace = command(["trace", "--diagnostic-port", &through, "--duration", "2s", "-o"]);
        trace.arg(file);
        Running::start(trace)
    };
    let files = [temp.path().join("a.nettrace"), temp.path().join("b.nettrace")];
    let tools = files.each_ref().map(|file| trace(file));
    for tool in tools {
        tool.wait().expect_code(0);
    }
    for file in &files {
        is_a_trace(temp.path(), file)?;
    }
    // Eight clients send requests at the same time: each is served.
    let asking: Vec<Running> =
        (0..8).map(|_| Running::start(command(["info", "--diagnostic-port", &through]))).collect();
    for client in asking {
        client.wait().expect_code(0);
    }
    router.end();
    Ok(())
}

/// Returns a message with this command and payload.
fn message(command: u16, payload: &[u8]) -> Vec<u8> {
    let size = u16::try_from(20 + payload.len()).unwrap().to_le_bytes();
    let [set, id] = command.to_be_bytes();
    [b"DOTNET_IPC_V1\0", &size[..], &[set, id, 0, 0], payload].concat()
}

/// Returns the requests that are known to crash or permanently hang runtimes.
fn deadly() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut add = |command, payload: &[u8]| all.push(message(command, payload));
    for command in 0x0202..=0x0206 {
        for length in [0, 1, 2, 4] {
            add(command, &vec![0; length]);
        }
    }
    let session = |megabytes: u32, format: u32, providers: u32| {
        [megabytes.to_le_bytes(), format.to_le_bytes(), providers.to_le_bytes()].concat()
    };
    for (megabytes, format, providers) in [(0, 1, 1), (64, 2, 1), (64, 1, 1001), (64, 1, u32::MAX)] {
        add(0x0202, &session(megabytes, format, providers));
    }
    for command in [0x0101, 0x0102, 0x0103, 0x0301, 0x0302, 0x0403, 0x0405, 0x0407] {
        add(command, &[]);
        add(command, &[1]);
    }
    // CollectTracing5 with a filter of 4 billion ids.
    let name: Vec<u8> = "A\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut filter = [0u32, 64, 1].map(u32::to_le_bytes).concat();
    filter.extend([0; 8]);
    filter.push(0);
    filter
        .extend([&1u32.to_le_bytes()[..], &[0; 8], &4u32.to_le_bytes(), &2u32.to_le_bytes(), &name].concat());
    filter.extend([&0u32.to_le_bytes()[..], &[1], &u32::MAX.to_le_bytes()].concat());
    add(0x0206, &filter);
    all
}

fn deadly_requests_are_not_forwarded(runtime: &RealRuntime) -> Result<(), Skip> {
    let temp = folder();
    let target = Target::start(idle(runtime)?);
    let address = tcp_to_socket(target.socket()).to_string();
    let router = Router::start(temp.path(), &["server-client", "--tcp-client", &address]);
    let socket = router.socket();
    let requests = deadly();
    for request in &requests {
        // The file of a socket is there before the router listens.
        let mut client = eventually("the router listens", || UnixStream::connect(&socket).ok());
        client.write_all(request).unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert_eq!(answer.get(16..18), Some(&[0xff, 0xff][..]), "{request:x?} has {answer:x?}");
        assert_eq!(answer.get(20..24), Some(&0x8013_1384_u32.to_le_bytes()[..]), "{request:x?}");
    }
    target.still_answers();
    let counted = router.end();
    assert_eq!(counted["refused"], requests.len());
    assert_eq!(counted["forwarded"], 0);
    Ok(())
}

fn silent_clients_delay_no_other(runtime: &RealRuntime) -> Result<(), Skip> {
    let (temp, address) = (folder(), free_port());
    let router = Router::start(temp.path(), &["server-server", "--tcp-server", &address.to_string()]);
    let port = temp.path().join("port");
    let socket = router.socket();
    port_to_tcp(&port, address);
    let _target = start_connecting(runtime, &port)?;
    let through = format!("{},connect", socket.display());
    let half = &message(0x0400, &[])[..7];
    let silent: Vec<UnixStream> = (0..200)
        .map(|n| {
            let mut client = eventually("the router listens", || UnixStream::connect(&socket).ok());
            if n % 2 == 0 {
                client.write_all(half).unwrap();
            }
            client
        })
        .collect();
    // Runtimes that connect by TCP and send nothing, or something else.
    let strangers: Vec<std::net::TcpStream> = (0..100).map(|n| stranger(address, n)).collect();
    for _ in 0..3 {
        runtap(["info", "--diagnostic-port", &through]).expect_code(0).text().contains("spin");
    }
    drop((silent, strangers));
    router.end();
    Ok(())
}

fn stranger(address: SocketAddr, n: usize) -> std::net::TcpStream {
    let mut stranger = std::net::TcpStream::connect(address).unwrap();
    if n.is_multiple_of(2) {
        // A rejected connection is closed, perhaps by now.
        let _ = stranger.write_all(b"GET / HTTP/1.1\r\nHost: localhost:9000\r\n\r\n");
    }
    stranger
}
