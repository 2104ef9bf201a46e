//! `doctor` on conditions that prevent dumps, and on a process that is writing a dump.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runtap_diag::blocking::Client;
use runtap_testkit::{RealRuntime, Skip, eventually, extract, require, run, shared_archive};
use runtap_transport::Endpoint;
use serde_json::Value;

use crate::common::{Target, command, folder, json, runtap};
use crate::real_doctor::{Cat, codes, doctor, finding, idle, says};

on_the_newest_runtime!(a_createdump_that_cannot_be_started, a_process_that_writes_a_dump_is_busy);

/// Copies a runtime, so that its createdump can be changed.
fn copied(runtime: &RealRuntime) -> (tempfile::TempDir, RealRuntime, PathBuf) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let copy = runtime.linked_into(dir.path());
    let shared = copy.root().join("shared/Microsoft.NETCore.App");
    let version = fs::read_dir(shared).unwrap().next().unwrap().unwrap().path();
    (dir, copy, version.join("createdump"))
}

fn a_createdump_that_cannot_be_started(runtime: &RealRuntime) -> Result<(), Skip> {
    let (_dir, copy, createdump) = copied(runtime);
    let target = Target::start(idle(&copy)?);
    assert_eq!(codes(&doctor(target.pid(), 0)), [] as [&str; 0]);
    fs::set_permissions(&createdump, fs::Permissions::from_mode(0o644)).unwrap();
    let document = doctor(target.pid(), 0);
    assert_eq!(codes(&document), ["no-createdump"]);
    says(&finding(&document, "no-createdump"), "fix", &format!("chmod a+x {}", createdump.display()));
    fs::remove_file(&createdump).unwrap();
    let document = doctor(target.pid(), 0);
    says(&finding(&document, "no-createdump"), "detail", "is missing");
    target.still_answers();
    Ok(())
}

/// A replacement for createdump that runs until the test releases it.
fn a_process_that_writes_a_dump_is_busy(runtime: &RealRuntime) -> Result<(), Skip> {
    let (dir, copy, createdump) = copied(runtime);
    let gate = dir.path().join("gate");
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, 0o600.into()).unwrap();
    fs::write(&createdump, format!("#!/bin/sh\nread line < '{}'\nexit 1\n", gate.display())).unwrap();
    let target = Target::start(idle(&copy)?);
    let client = Client::new(Endpoint::unix(target.socket())).unwrap();
    let path = dir.path().join("x.dmp");
    let asking = std::thread::spawn(move || client.request(dump(&path)));
    let detail = eventually("a dump", || {
        let mut command = command(["doctor", "--format", "json"]);
        command.arg(target.p());
        let document = run(command).json();
        let busy = document["findings"].as_array().unwrap().iter().find(|it| it["code"] == "busy")?.clone();
        let detail = busy["detail"].as_str().unwrap().to_owned();
        detail.contains("createdump").then_some(detail)
    });
    assert!(detail.contains("it is writing a dump of itself"), "{detail}");
    fs::write(&gate, "\n").unwrap();
    asking.join().unwrap().unwrap_err();
    Ok(())
}

fn dump(path: &Path) -> runtap_diag::Request {
    use runtap_diag::{CoreDump, DumpFlags, DumpForm, DumpType};
    let dump = CoreDump {
        path: path.to_str().unwrap().to_owned(),
        kind: DumpType::FULL,
        flags: DumpFlags::default(),
    };
    runtap_diag::Request::GenerateCoreDump { form: DumpForm::GenerateCoreDump3, dump }
}

/// A program without JIT, whose runtime has no createdump.
#[test]
fn real_native_aot_cannot_write_dumps() {
    let archive = require!(shared_archive("apps/dotnet/aot/aottarget-linux-x64.tar.xz"));
    let dir = folder();
    extract(&archive, dir.path());
    for version in ["8", "9"] {
        let mut program = Command::new(dir.path().join(format!("aot/aottarget-net{version}")));
        program.env("TMPDIR", dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = program.spawn().unwrap();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        let program = Cat(child);
        let document = doctor(program.0.id(), 0);
        assert_eq!(codes(&document), ["no-createdump"]);
        says(&finding(&document, "no-createdump"), "detail", "NativeAOT");
        let (pid, core) = (program.0.id().to_string(), dir.path().join("core"));
        let told = runtap(["dump", &pid, "-o", core.to_str().unwrap()]);
        told.expect_code(4).says("0x80004005").says("NativeAOT").says(&format!("gcore {pid}"));
        assert_eq!(json(["info", &program.0.id().to_string(), "--format", "json"])["suspended"], Value::Null);
    }
}
