//! `runtap test` against a scripted test application, correct and faulty: the output for users, scenario by scenario.
//!
//! This program also acts as the application: each scenario is a link to it. So it has its own harness.

#[cfg(target_os = "linux")]
mod beside;
#[cfg(target_os = "linux")]
mod disk;
#[cfg(target_os = "linux")]
mod harness;
#[cfg(target_os = "linux")]
mod late_results;
#[cfg(target_os = "linux")]
mod listing;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod reports;
#[cfg(target_os = "linux")]
mod rules;
#[cfg(target_os = "linux")]
mod scenario;
#[cfg(target_os = "linux")]
mod shown;
#[cfg(target_os = "linux")]
mod verdicts;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use self::harness::Test;

    if let Some(code) = runtap_testkit::scripted::play_if_asked() {
        return code;
    }
    let mut tests: Vec<Test> = scenario::all().into_iter().map(scenario::test).collect();
    tests.push(Test::new("rules::every_rule_has_a_scenario", rules::every_rule_has_a_scenario));
    tests.push(Test::new(
        "beside::faulty_applications_do_not_disturb_others",
        beside::faulty_applications_do_not_disturb_others,
    ));
    let deaf = beside::a_connection_that_reads_no_replies_delays_no_other;
    tests.push(Test::new("beside::a_connection_that_reads_no_replies_delays_no_other", deaf));
    tests.push(Test::new("scenario::every_snapshot_has_a_scenario", scenario::every_snapshot_has_a_scenario));
    tests.extend(reports::all());
    tests.extend(listing::all());
    tests.extend(live::all());
    tests.extend(disk::all());
    tests.extend(verdicts::all());
    tests.extend(late_results::all());
    harness::run(tests)
}
