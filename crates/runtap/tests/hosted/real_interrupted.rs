//! Ctrl-C, and servers and wrappers that die: nothing of ours stays behind.

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

/// SIGINT to the group, as a terminal sends it. How long the server has lived on.
fn interrupt(server: &mut Child) -> Duration {
    kill_process_group(Pid::from_child(server), Signal::INT).expect("the group is there");
    let started = Instant::now();
    server.wait().expect("it is our child");
    let lived = started.elapsed();
    // The bar is 20 ms on a machine that has nothing else to do, which `cargo xtask bench host` measures: here only that it
    // does not wait for something.
    let _ = writeln!(std::io::stderr(), "dotnet test was gone {} ms after SIGINT", lived.as_millis());
    lived
}

/// Far less than what is running takes, which is five minutes, and far more than a machine that stands still for a while.
const NOT_WAITED: Duration = Duration::from_secs(30);

pub(crate) fn the_harness() -> Outcome {
    or_skip(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pid");
        module(folder.path(), "sleeps", &format!("sleeps:{}", file.display()));
        let mut server = start(dotnet_test(folder.path(), "sleeps", &[])?);
        let pid = written(&file);
        let lived = interrupt(&mut server);
        assert!(lived < NOT_WAITED, "{lived:?}");
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
        assert!(lived < NOT_WAITED, "{lived:?}");
        processes.are_gone();
        // The same by `runtap test`, which asks over the control pipe.
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
