//! The look into a startup hook against the runtime's own judgement: .NET 8 survives a file that is no hook and says so,
//! so it is asked about each. What it takes, the client has to send, and what it refuses, the client must not.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runtap_diag::Error;
use runtap_diag::Request;
use runtap_diag::blocking::Client;
use runtap_testkit::{Program, RealRuntime, Skip, eventually, require, shared_dir};
use runtap_transport::Endpoint;

struct Target {
    program: Program,
    endpoint: Endpoint,
    client: Client,
    folder: tempfile::TempDir,
}

impl Target {
    fn new(runtime: &RealRuntime) -> Result<Self, Skip> {
        let folder = tempfile::tempdir().unwrap();
        let launch = runtime.program("spin", &["600", "--stdin"])?.env("TMPDIR", folder.path());
        let program = launch.env("DEMO_HOOK_OUT", folder.path().join("hook.txt")).spawn();
        let found = || runtap_discover::process(program.id()).ok().and_then(|process| process.endpoint());
        let endpoint = eventually("the program has a socket", found);
        let client = Client::new(endpoint.clone()).unwrap();
        Ok(Self { program, endpoint, client, folder })
    }

    /// Whether our client would send it.
    fn is_sent(&self, path: &Path) -> Result<(), String> {
        match self.client.apply_startup_hook(path.to_str().unwrap()) {
            Ok(()) => Ok(()),
            Err(Error::Objection { objection, .. }) => Err(objection.to_string()),
            Err(other) => panic!("{}: {other}", path.display()),
        }
    }

    /// Whether the runtime takes it, sent without a look.
    fn is_taken(&self, path: &Path) -> bool {
        let socket = self.endpoint.path().expect("a runtime has a socket with a path");
        let request = Request::ApplyStartupHook { path: path.to_str().unwrap().to_owned() };
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.write_all(&request.to_bytes().unwrap()).unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        // Command set 0xff, and 0 for OK.
        assert_eq!(reply.get(16), Some(&0xff), "{}: {reply:x?}", path.display());
        reply[17] == 0
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.folder.path().join("hook.txt")).unwrap_or_default().lines().count()
    }
}

/// The shared hook with another machine and other flags in its headers.
fn changed(hook: &[u8], machine: u16, flags: u32) -> Vec<u8> {
    let word = |at: usize| usize::try_from(u32::from_le_bytes(hook[at..at + 4].try_into().unwrap())).unwrap();
    let pe = word(60);
    assert_eq!(hook[pe + 24..pe + 26], [0x0b, 0x01], "32-bit headers");
    // The CLI header is in the first section.
    let (address, section) = (word(pe + 24 + 96 + 14 * 8), pe + 24 + 224);
    let cli = address - word(section + 12) + word(section + 20);
    let mut bytes = hook.to_vec();
    bytes[pe + 4..pe + 6].copy_from_slice(&machine.to_le_bytes());
    bytes[cli + 16..cli + 20].copy_from_slice(&flags.to_le_bytes());
    bytes
}

#[test]
fn real_runtimes_and_the_look_agree_on_headers() {
    let runtime = require!(RealRuntime::available(8));
    let target = require!(Target::new(&runtime));
    let shared = shared_dir().expect("the program came from there");
    let hook = fs::read(shared.join("apps/dotnet/startuphook/bin/startuphook.dll")).unwrap();
    let mut taken = 0;
    for (machine, flags) in [
        (0x14c, 0x1),      // any processor
        (0x14c, 0x3),      // 32 bits
        (0x14c, 0x2_0003), // prefers 32 bits
        (0x14c, 0x0),      // mixed
        (0x14c, 0x10),     // with a native entry
        (0x1c4, 0x1),      // arm
        (0xaa64, 0x1),     // arm64
        (0xaa64, 0x4),     // precompiled for arm64, Windows
        (0xd11d, 0x4),     // precompiled for arm64, Linux
        (0x8664, 0x0),     // mixed
        (0xc020, 0x4),     // precompiled for x64, macOS
    ] {
        let path = target.folder.path().join(format!("{machine:x}-{flags:x}.dll"));
        fs::write(&path, changed(&hook, machine, flags)).unwrap();
        let ours = target.is_sent(&path);
        assert_eq!(ours.is_ok(), target.is_taken(&path), "{machine:x} {flags:x}: {ours:?}");
        taken += usize::from(ours.is_ok());
    }
    // Each by our client, and by itself.
    assert_eq!((taken, target.runs()), (2, 4));
}

/// Compiles a class `StartupHook` and more.
fn compile(folder: &Path, n: usize, target: &str, source: &str) -> Result<PathBuf, Skip> {
    let (source_file, path) = (folder.join(format!("{n}.cs")), folder.join(format!("{n}.dll")));
    fs::write(&source_file, source).unwrap();
    let mut mcs = Command::new("mcs");
    mcs.arg(format!("-target:{target}")).arg(format!("-out:{}", path.display())).arg(&source_file);
    match mcs.stdout(Stdio::null()).status() {
        Ok(status) => assert!(status.success(), "mcs: {source}"),
        Err(_) => return Err(Skip::because("there is no C# compiler mcs (Debian: mono-mcs)")),
    }
    Ok(path)
}

#[test]
fn real_runtimes_and_the_look_agree_on_classes_and_methods() {
    let runtime = require!(RealRuntime::available(8));
    let target = require!(Target::new(&runtime));
    let library = |source: &'static str| ("library", source);
    let sources = [
        (true, library("class StartupHook { static void Initialize() {} }")),
        (true, ("exe", "class StartupHook { static void Initialize() {} static void Main() {} }")),
        (true, library("struct StartupHook { public static void Initialize() {} }")),
        (true, library("abstract class StartupHook { static void Initialize() {} }")),
        (
            true,
            library(
                "static class StartupHook { static void Initialize() {} static void Initialize(int n) {} }",
            ),
        ),
        (true, library("class StartupHook { static void Initialize() {} void Initialize(string s) {} }")),
        (false, library("class StartupHook { void Initialize() {} }")),
        (false, library("class StartupHook { static int Initialize() { return 1; } }")),
        (false, library("class StartupHook { static void Initialize<T>() {} }")),
        (false, library("class StartupHook { static void Initialize<T>() {} static void Initialize() {} }")),
        (false, library("class StartupHook<T> { static void Initialize() {} }")),
        (false, library("class A { protected static void Initialize() {} } class StartupHook : A {}")),
        (false, library("class A { class StartupHook { static void Initialize() {} } }")),
        (false, library("namespace A { class StartupHook { static void Initialize() {} } }")),
        (false, ("module", "class StartupHook { static void Initialize() {} }")),
    ];
    for (n, (good, (kind, source))) in sources.into_iter().enumerate() {
        let path = require!(compile(target.folder.path(), n, kind, source));
        let ours = target.is_sent(&path);
        assert_eq!((ours.is_ok(), target.is_taken(&path)), (good, good), "{source}: {ours:?}");
        if source.contains("StartupHook<T>") {
            // A generic class by that very name, which no compiler makes.
            let mut bytes = fs::read(&path).unwrap();
            let at = bytes.windows(13).position(|name| name == b"StartupHook`1").unwrap();
            bytes[at + 11..at + 13].fill(0);
            fs::write(&path, bytes).unwrap();
            assert!(target.is_sent(&path).unwrap_err().contains("type parameters"));
            assert!(!target.is_taken(&path));
        }
    }
    assert_eq!(target.client.process_info().unwrap().process_id, u64::from(target.program.id()));
}
