//! Ctrl-C, and killed servers and wrappers: no process of runtap stays behind.

use std::io::Write as _;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use runtap_mtp_host::harness::Outcome;
use runtap_testkit::{Finished, run};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::left_behind::{Wrapped, is_gone, start, written};
use crate::samples::module;
use crate::servers::{dotnet_test, or_skip, runtap};

/// Sends SIGINT to the group, as a terminal does. Returns the time until the server has exited.
fn interrupt(server: &mut Child) -> Duration {
    kill_process_group(Pid::from_child(server), Signal::INT).expect("the group is there");
    let started = Instant::now();
    server.wait().expect("it is our child");
    let lived = started.elapsed();
    // The limit is 20 ms on an idle machine, which `cargo xtask bench host` measures: this test only checks that the
    // server waits for nothing.
    let _ = writeln!(std::io::stderr(), "dotnet test was gone {} ms after SIGINT", lived.as_millis());
    lived
}

/// Far less than the five minutes of the running tests, and far more than a stall of the machine.
const MAX_WAIT: Duration = Duration::from_secs(30);

pub(crate) fn the_harness() -> Outcome {
    or_skip(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pid");
        module(folder.path(), "sleeps", &format!("sleeps:{}", file.display()));
        let mut server = start(dotnet_test(folder.path(), "sleeps", &[])?);
        let pid = written(&file);
        let lived = interrupt(&mut server);
        assert!(lived < MAX_WAIT, "{lived:?}");
        is_gone("the application has ended", pid);
        Ok(())
    })
}

pub(crate) fn a_wrapped_command() -> Outcome {
    or_skip(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let wrapped = Wrapped::new(folder.path(), "wait; sleep 300");
        let mut server = start(dotnet_test(folder.path(), "wrapped", &[])?);
        let processes = wrapped.processes();
        let lived = interrupt(&mut server);
        assert!(lived < MAX_WAIT, "{lived:?}");
        processes.are_gone();
        // With `runtap test`, which cancels over the control pipe.
        let mut server = start(runtap([Path::new("test"), &wrapped.path()]));
        let processes = wrapped.processes();
        kill_process(Pid::from_child(&server), Signal::INT).expect("it is there");
        assert_eq!(server.wait().expect("it is our child").code(), Some(3));
        processes.are_gone();
        Ok(())
    })
}

pub(crate) fn a_server_that_is_killed() -> Outcome {
    or_skip(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let wrapped = Wrapped::new(folder.path(), "wait; sleep 300");
        let mut server = start(dotnet_test(folder.path(), "wrapped", &[])?);
        let processes = wrapped.processes();
        server.kill().and_then(|()| server.wait()).expect("it is our child");
        processes.are_gone();
        Ok(())
    })
}

pub(crate) fn a_wrapper_that_is_killed() -> Outcome {
    or_skip(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let wrapped = Wrapped::new(folder.path(), "wait; sleep 300");
        let command = dotnet_test(folder.path(), "wrapped", &[])?;
        let killing = std::thread::spawn(move || {
            let processes = wrapped.processes();
            processes.kill_wrapper();
            processes
        });
        let told: Finished = run(command);
        killing.join().expect("it was killed").are_gone();
        assert!(told.expect_code(137).text().contains("Exit code: 137"), "{told}");
        Ok(())
    })
}
