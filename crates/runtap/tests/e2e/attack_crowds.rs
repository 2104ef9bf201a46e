//! Another user creates huge numbers of processes, sockets, mappings or descriptors: the cost of root's inspection
//! stays bounded, and root's own processes are still found. Requires root.
//!
//! Elapsed time is not asserted: without the limits, each of these tests would exceed its time-out.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use runtap_discover::System;
use runtap_testkit::{Program, Skip, require, run};
use runtap_transport::naming::SocketName;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{command, folder};

/// The start of every program of the crowd: as user `nobody`, each creates a socket with its name in the folder, runs
/// `part(n)` and then reports that it is ready. The processes exit with their parent.
const CROWD: &str = "
import mmap, os, resource, socket, sys, threading
folder, number, part = sys.argv[1], int(sys.argv[2]), None
resource.setrlimit(resource.RLIMIT_NOFILE, (16000, 16000))
os.setgroups([]); os.setgid(65534); os.setuid(65534)
def start():
    return open('/proc/self/stat').read().rsplit(')', 1)[1].split()[19]
def listen():
    server = socket.socket(socket.AF_UNIX)
    path = f'{folder}/dotnet-diagnostic-{os.getpid()}-{start()}-socket'
    server.bind(path); server.listen(64)
    client = socket.socket(socket.AF_UNIX); client.connect(path)
    return server, client, server.accept()
exec(sys.argv[3])
told, tell = os.pipe()
held, hold = os.pipe()
for n in range(number):
    if os.fork() == 0:
        os.close(hold)
        kept = part(n)
        os.write(tell, b'x')
        os.read(held, 1)
        os._exit(0)
os.close(tell)
there = 0
while there < number:
    more = len(os.read(told, 1000))
    if not more:
        sys.exit('not all are there')
    there += more
print('ready', flush=True)
sys.stdin.read()
os.close(hold)
while number:
    os.wait()
    number -= 1
";

/// Many processes of user `nobody`.
struct Crowd {
    program: Program,
    folder: TempDir,
}

impl Crowd {
    /// Starts `number` processes, each of which runs `part` as the body of `part(n)`.
    fn of(number: usize, part: &str) -> Result<Self, Skip> {
        if !rustix::process::geteuid().is_root() {
            return Err(Skip::because("only root can run programs as another user"));
        }
        let python = Command::new("python3").arg("--version").stdout(Stdio::null()).status();
        python.map_err(|_missing| Skip::because("python3 is missing, which the crowd is of"))?;
        let folder = folder();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let part = format!("def part(n):\n    {}", part.replace('\n', "\n    "));
        let mut crowd = Command::new("python3");
        crowd.args(["-c", CROWD]).arg(folder.path()).arg(number.to_string()).arg(part);
        crowd.env("TMPDIR", folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Program::start(crowd);
        program.wait_for("ready");
        Ok(Self { program, folder })
    }

    /// Returns a command whose temporary folder is that of the crowd.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command.env("TMPDIR", self.folder.path());
        command
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // Waits for all processes, which take a while to exit.
        if !thread::panicking() {
            self.program.wait();
        }
    }
}

/// A server in this process, so owned by root, that waits for a client.
struct SilentServer {
    path: PathBuf,
    client: UnixStream,
    server: thread::JoinHandle<()>,
}

impl SilentServer {
    fn among(crowd: &Crowd) -> Self {
        let me = std::process::id();
        let name = SocketName::runtime(me, System::current().start_time(me).unwrap());
        let path = crowd.path().join(name.to_string());
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1]);
            drop(listener);
        });
        Self { path, client, server }
    }

    fn end(self) {
        drop(self.client);
        self.server.join().unwrap();
        fs::remove_file(self.path).unwrap();
    }
}

fn process(document: &Value, pid: u32) -> &Value {
    let processes = document["processes"].as_array().unwrap();
    processes.iter().find(|it| it["pid"] == pid).unwrap_or_else(|| panic!("no {pid} in {document:#}"))
}

/// Sixty processes do not answer, and the peer of each has to be found among 450,000 descriptors.
#[test]
fn doctor_searches_once_for_blocking_clients() {
    let part = "if n < 60: return listen()\nfor _ in range(15000): os.dup(0)";
    let crowd = require!(Crowd::of(90, part));
    let own = SilentServer::among(&crowd);
    let told = run(crowd.command(&["doctor", "--format", "json"])).expect_code(0).json();
    assert!(told["processes"].as_array().unwrap().len() > 60);
    let me = std::process::id();
    let detail = process(&told, me)["findings"][0]["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains(&format!("its diagnostics server waits for process {me} ")), "{detail}");
    own.end();
}

/// Twenty processes with the maximum number of mappings are not all read, which is reported; root's process is
/// examined.
#[test]
fn doctor_reads_no_crowd_of_memory_maps() {
    // Every other page is writable: equal neighbors would be merged into one mapping.
    let part = "flags, rights = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, [mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE]
return [mmap.mmap(-1, 4096, flags, rights[n % 2]) for n in range(60000)]";
    let crowd = require!(Crowd::of(20, part));
    let own = SilentServer::among(&crowd);
    let told = run(crowd.command(&["doctor", "--format", "json"]));
    let document = told.expect_code(0).json();
    process(&document, std::process::id());
    let number = told.stderr.split("whether ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
    // Processes of other tests may be counted too.
    assert!(number.is_some_and(|number: usize| number >= 10), "{told}");
    own.end();
}

/// All processes are queried concurrently.
#[test]
fn ps_queries_two_hundred_silent_processes_concurrently() {
    let crowd = require!(Crowd::of(200, "return listen()"));
    let own = SilentServer::among(&crowd);
    let told = run(crowd.command(&["ps", "--format", "json"])).expect_code(0).json();
    let mut crowded = 0;
    for row in told["processes"].as_array().unwrap() {
        if row["socket"].as_str().is_some_and(|socket| socket.starts_with(crowd.path().to_str().unwrap())) {
            assert_eq!((&row["reachable"], &row["reason"]), (&Value::from(false), &Value::from("busy")));
            crowded += 1;
        }
    }
    assert_eq!(crowded, 201);
    own.end();
}
