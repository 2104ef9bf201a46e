//! Rust tests under the real `dotnet test` and under `runtap test`: applications of runtap-mtp-host and of its harness,
//! and commands that `runtap mtp host` wraps. This program also acts as the applications, and its tests are run by that
//! harness.

// Separate programs elsewhere, modules here.
#[expect(unreachable_pub, reason = "it is a program of its own")]
#[path = "../../../tests/mtp-host/examples/application.rs"]
mod application;
#[expect(unreachable_pub, reason = "it is a program of its own")]
#[path = "../../../tests/mtp-host/examples/harness.rs"]
mod harness;
mod left_behind;
mod real_interrupted;
mod real_mtp_host;
mod real_options;
mod real_texts;
mod real_wrapped;
mod samples;
mod servers;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(sample) = samples::chosen() {
        return samples::run(&sample);
    }
    runtap_mtp_host::tests!(
        real_mtp_host::an_application_of_the_library,
        real_mtp_host::a_test_binary_of_the_harness,
        real_mtp_host::lists_of_both,
        real_mtp_host::exit_codes,
        real_mtp_host::a_native_executable,
        real_mtp_host::types_and_durations,
        real_mtp_host::rust_and_dotnet_modules_in_one_run,
        real_mtp_host::messages_conform_to_the_rules,
        real_mtp_host::attempts_of_an_orchestrator,
        real_mtp_host::http_is_the_other_transport,
        real_mtp_host::many_results_take_few_messages,
        left_behind::a_wrapper_that_is_killed,
        left_behind::a_keeper_that_is_killed,
        left_behind::a_command_that_ends_by_itself_may_leave_a_daemon,
        left_behind::a_runner_that_is_killed,
        left_behind::an_application_that_is_ended,
        left_behind::an_application_that_ends_by_itself_may_leave_a_daemon,
        real_interrupted::the_harness,
        real_interrupted::a_wrapped_command,
        real_interrupted::a_server_that_is_killed,
        real_interrupted::a_wrapper_that_is_killed,
        real_options::hand_written_scripts_pass_the_servers_options_on,
        real_options::the_negotiated_version_is_reported,
        real_options::files_that_a_command_leaves,
        real_options::quiet_libtest_is_rejected,
        real_options::a_test_that_ends_the_process,
        real_texts::of_the_harness,
        real_texts::of_a_wrapped_command,
        real_wrapped::cargo_test,
        real_wrapped::nextest,
        real_wrapped::nextest_from_its_recorded_output,
        real_wrapped::go_test,
        real_wrapped::node_test,
        real_wrapped::pytest_leaves_a_report,
        real_wrapped::a_report,
        real_wrapped::commands_that_fail_without_a_test,
        real_wrapped::failures_beside_a_quarantined_test_count,
        real_wrapped::tests_of_one_name_are_not_mistaken_for_each_other,
        real_wrapped::without_a_server,
    )
    .main()
}
