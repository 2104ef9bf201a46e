//! `doctor` on programs that are suspended at startup: the tool they wait for, and how to resume them.

use std::os::unix::net::UnixListener;

use runtap_testkit::{Program, RealRuntime, Running, Signal, Skip, eventually, run};
use serde_json::Value;

use crate::common::{command, folder, json, ps_row, runtap};
use crate::real_doctor::{codes, doctor, finding, idle, says};

on_each_runtime!(a_process_that_waits_at_its_start, a_process_left_suspended_by_a_killed_runtap);

/// Waits until the finding shows that a program is suspended.
fn wait_for_suspension(program: &Program) -> Value {
    eventually("a suspended process", || {
        let mut command = command(["doctor", "--format", "json"]);
        command.arg(program.id().to_string());
        let document = run(command).json();
        // Until its server runs, the process is only starting.
        let up = document["reachable"] == true;
        let found = document["findings"].as_array().unwrap().iter().find(|it| it["code"] == "suspended")?;
        assert_eq!(found["severity"], "warning");
        up.then(|| found.clone())
    })
}

fn a_process_that_waits_at_its_start(runtime: &RealRuntime) -> Result<(), Skip> {
    let dir = folder();
    let launch =
        |ports: &str| Ok(idle(runtime)?.env("TMPDIR", dir.path()).env("DOTNET_DiagnosticPorts", ports));

    // A tool of which only the socket is left, as after kill -9.
    let port = dir.path().join("tool.port");
    let listener = UnixListener::bind(&port).unwrap();
    let abandoned = launch(port.to_str().unwrap())?.spawn_unready();
    let waiting = wait_for_suspension(&abandoned);
    let me = std::process::id();
    says(&waiting, "detail", &format!("{}, where process {me} ", port.display()));
    drop(listener);
    let waiting = wait_for_suspension(&abandoned);
    says(&waiting, "detail", "but nothing is listening there");
    says(&waiting, "fix", &format!("runtap resume {} ", abandoned.id()));
    says(&waiting, "fix", &format!("runtap trace --diagnostic-port {},listen", port.display()));
    assert_eq!(ps_row(abandoned.id())["suspended"], true);
    // A recording would be empty, so it is rejected at once, in every form, and leaves no file.
    let file = dir.path().join("never.nettrace");
    for word in ["trace", "collect"] {
        let mut trace = command([word, "-p", &abandoned.id().to_string(), "--duration", "600", "-o"]);
        trace.arg(&file);
        let refused = run(trace);
        refused.expect_code(4).says("but nothing is listening there");
        refused.says(&format!("runtap resume {} ", abandoned.id()));
        refused.says(&format!("trace --diagnostic-port {},listen", port.display()));
        assert!(!file.exists());
    }
    let tail = runtap(["tail", &abandoned.id().to_string(), "--clrevents", "gc", "--duration", "600"]);
    tail.expect_code(4)
        .says("but nothing is listening there")
        .says(&format!("runtap resume {} ", abandoned.id()));
    // The proposed fix.
    runtap(["resume", &abandoned.id().to_string()]).expect_code(0);
    assert_eq!(codes(&doctor(abandoned.id(), 0)), [] as [&str; 0]);

    // A typing error in the variable.
    let slip = launch(",nosuspend")?.in_folder(dir.path()).spawn_unready();
    let waiting = wait_for_suspension(&slip);
    says(&waiting, "detail", "port nosuspend");
    says(&waiting, "detail", "DOTNET_DiagnosticPorts 'nosuspend'");

    let own = idle(runtime)?.env("TMPDIR", dir.path()).env("DOTNET_DefaultDiagnosticPortSuspend", "1");
    let mut own = own.spawn_unready();
    let waiting = wait_for_suspension(&own);
    says(&waiting, "detail", "DOTNET_DefaultDiagnosticPortSuspend");
    assert_eq!(waiting["fix"], format!("runtap resume {}", own.id()));
    runtap(["resume", &own.id().to_string()]).expect_code(0);
    own.wait_for("ready");
    assert_eq!(codes(&doctor(own.id(), 0)), [] as [&str; 0]);

    // A program that does not wait is not reported as suspended, whether its port exists or not.
    let free = launch(&format!("{},nosuspend", port.display()))?.spawn();
    assert_eq!(codes(&doctor(free.id(), 0)), [] as [&str; 0]);
    Ok(())
}

/// A runtap process accepted a runtime and was killed before it resumed it: the doctor lists the suspended processes.
fn a_process_left_suspended_by_a_killed_runtap(runtime: &RealRuntime) -> Result<(), Skip> {
    let dir = folder();
    let port = dir.path().join("killed.port");
    let mut tool = command(["trace", "--resume-runtime", "false", "-o"]);
    tool.arg(dir.path().join("x.nettrace"))
        .arg("--diagnostic-port")
        .arg(format!("{},listen", port.display()));
    let tool = Running::start(tool);
    eventually("the port", || port.exists().then_some(()));
    let launch = idle(runtime)?.env("TMPDIR", dir.path()).env("DOTNET_DiagnosticPorts", &port);
    let mut left = launch.spawn_unready();
    let waiting = wait_for_suspension(&left);
    says(&waiting, "detail", &format!("process {} ", tool.id()));
    tool.signal(Signal::KILL);
    drop(tool.wait());
    let all = json(["doctor", "--format", "json"]);
    let named =
        all["processes"].as_array().unwrap().iter().find(|it| it["pid"] == left.id()).unwrap().clone();
    says(&finding(&named, "suspended"), "detail", "but nothing is listening there");
    runtap(["resume", &left.id().to_string()]).expect_code(0);
    left.wait_for("ready");
    assert_eq!(codes(&doctor(left.id(), 0)), [] as [&str; 0]);
    Ok(())
}
