//! Attaching to JVMs: real ones, and a fake one that misbehaves.

#![cfg(target_os = "linux")]

mod fake;
mod namespaces;
mod real;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runtap_jvm_attach::{AttachError, Client, Jvm, Timeouts};
use runtap_testkit::{Jdk, Program, Skip, run};

const SLEEPER: &str = "package shop;
public class Sleeper {
    public static void main(String[] words) throws Exception {
        System.out.println(\"pid \" + ProcessHandle.current().pid());
        System.out.println(\"ready\");
        Thread.sleep(600_000);
    }
}
";

/// Creates a folder that every user can read, with a program for JVMs.
fn sleeper() -> Result<tempfile::TempDir, Skip> {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let source = folder.path().join("Sleeper.java");
    fs::write(&source, SLEEPER).unwrap();
    Jdk::with_compiler()?.compile([&source], folder.path());
    Ok(folder)
}

/// Starts a program and waits until it prints `ready`.
fn start(mut command: Command) -> Program {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(command);
    program.wait_for("ready");
    program
}

/// Starts a JVM with these options.
fn java(jdk: &Jdk, classes: &Path, options: &[&str]) -> Program {
    let mut java = jdk.java();
    java.args(options).arg("-cp").arg(classes).arg("shop.Sleeper");
    start(java)
}

/// Compiles C in a folder.
fn compile(source: &str, name: &str, folder: &Path, shared: bool) -> Result<PathBuf, Skip> {
    if !Command::new("cc").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Err(Skip::because("there is no C compiler (cc)"));
    }
    let (file, out) = (folder.join(format!("{name}.c")), folder.join(name));
    fs::write(&file, source).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Wextra", "-Werror"]);
    if shared {
        cc.args(["-fPIC", "-shared"]);
    }
    cc.arg("-o").arg(&out).arg(&file);
    run(cc).expect_code(0);
    Ok(out)
}

/// Returns the bytes of an agent that does nothing, which live as long as the tests.
fn agent(folder: &Path) -> Result<&'static [u8], Skip> {
    let library = compile(include_str!("agent.c"), "agent.so", folder, true)?;
    Ok(Box::leak(fs::read(library).unwrap().into_boxed_slice()))
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Examines a process and makes it listen.
fn attach(pid: u32, timeouts: Timeouts) -> Result<Client, AttachError> {
    block_on(Client::attach(Jvm::examine(pid)?, timeouts))
}

fn is_there(path: &str) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Prints why a test was skipped.
fn or_skip(test: Result<(), Skip>) {
    if let Err(skip) = test {
        skip.report();
    }
}
