//! The scripted test application as a program: `scripted_host SCENARIO.mtp --server dotnettestcli --dotnet-test-pipe
//! PATH`, started like test applications by `dotnet test` and runtap.

use std::process::ExitCode;

#[expect(clippy::print_stderr, reason = "what it prints otherwise is what the scenario says")]
fn main() -> ExitCode {
    runtap_testkit::scripted::play_if_asked().unwrap_or_else(|| {
        eprintln!("scripted_host SCENARIO.mtp … --dotnet-test-pipe PATH");
        ExitCode::from(2)
    })
}
