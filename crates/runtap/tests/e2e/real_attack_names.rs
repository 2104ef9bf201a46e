//! Another user gives a program the name of root's program. Root's operations on that name do not affect it, and it
//! does not receive data for root's program. Requires root.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use runtap_testkit::{Launch, RealRuntime, Skip, run};

use crate::common::{Target, folder, runtap, unique};
use crate::real_doctor_rights::{NOBODY, ProgramCopy, can_run};
use crate::real_verbs::{CLASS_ID, hook, profiler};

on_the_newest_runtime!(
    a_name_selects_no_process_of_another_user,
    a_name_selects_the_users_own_program,
    processes_of_one_name_belong_to_one_user,
    another_user_is_named,
);

const SECRET: &str = "RUNTAP_E2E_SECRET=of root";

fn idle(runtime: &RealRuntime) -> Result<Launch, Skip> {
    runtime.program("spin", &["0.05", "1000", "--stdin"])
}

/// Starts a program of that name as user `nobody`, in a folder of that user.
fn of_nobody(runtime: &RealRuntime, name: &str) -> Result<Target, Skip> {
    can_run(&NOBODY, runtime)?;
    let temp = folder();
    fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let launch = idle(runtime)?.called(name, temp.path()).env("TMPDIR", temp.path()).wrapped_by(&NOBODY);
    Ok(Target { program: launch.spawn(), temp })
}

fn of_root(runtime: &RealRuntime, name: &str) -> Result<Target, Skip> {
    let temp = folder();
    let launch = idle(runtime)?.called(name, temp.path()).env("TMPDIR", temp.path());
    Ok(Target { program: launch.spawn(), temp })
}

/// Returns whether the program has received the variable.
fn has_secret(target: &Target) -> bool {
    let told = runtap(["env", &target.p()]);
    told.expect_code(0).text().contains(SECRET)
}

/// Without a program of root nothing is done, and nothing is sent, for every verb.
fn a_name_selects_no_process_of_another_user(runtime: &RealRuntime) -> Result<(), Skip> {
    let _place = ProgramCopy::new()?;
    let name = unique("bait");
    let theirs = of_nobody(runtime, &name)?;
    let (hook, profiler, file) = (hook()?, profiler()?, folder());
    let file = file.path().join("x");
    let file = file.to_str().unwrap();
    let verbs: [&[&str]; 11] = [
        &["set-env", SECRET],
        &["startup-hook", &hook],
        &["profiler", "attach", "--clsid", CLASS_ID, "--path", &profiler],
        &["profiler", "startup", "--clsid", CLASS_ID, "--path", &profiler],
        &["perfmap", "enable"],
        &["perfmap", "disable"],
        &["resume"],
        &["dump", "-o", file],
        &["trace", "-o", file],
        &["tail", "--clrevents", "gc"],
        &["info"],
    ];
    for verb in verbs {
        for all in [&[][..], &["--all"]] {
            let refused = runtap(verb.iter().chain(all).copied().chain(["-n", &name]));
            refused.expect_code(3).says("no .NET or Java process of your user").says(&theirs.p());
            refused.says("nobody").says("--user");
        }
    }
    assert!(!has_secret(&theirs));
    // The doctor examines all processes, but changes nothing.
    runtap(["doctor", "-n", &name]).expect_code(0);
    theirs.still_answers();
    Ok(())
}

fn a_name_selects_the_users_own_program(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    let name = unique("twin");
    let (theirs, ours) = (of_nobody(runtime, &name)?, of_root(runtime, &name)?);
    let told = runtap(["set-env", "-n", &name, SECRET]);
    told.expect_code(0).says(&format!("'{name}' is process {} of user root", ours.pid()));
    told.says(&format!("belong to other users: {} (nobody)", theirs.pid()));
    assert!(has_secret(&ours) && !has_secret(&theirs));
    // User `nobody` still selects its own program.
    let info = run(place.command(&NOBODY, ["info", "-n", &name, "--format", "json"]));
    assert_eq!(info.expect_code(0).json()["pid"], theirs.pid());
    assert!(!info.stderr.contains("left out"), "{info}");
    let told = run(place.command(&NOBODY, ["info", "-n", &name, "--user", "root"]));
    told.expect_code(3).says(&ours.p()).says("belongs to user root");
    // User `nobody` is told that such a program exists, and its owner.
    drop(theirs);
    let told = run(place.command(&NOBODY, ["info", "-n", &name]));
    told.expect_code(3)
        .says("no .NET or Java process of your user")
        .says(&ours.p())
        .says("root")
        .says("hint:");
    for refused in [
        runtap(["info", "-n", &name, "--user", "no-such-user"]),
        runtap(["doctor", "-n", &name, "--user", "no-such-user"]),
    ] {
        refused.expect_code(3).says("there is no user 'no-such-user'").says("hint:");
    }
    Ok(())
}

fn processes_of_one_name_belong_to_one_user(runtime: &RealRuntime) -> Result<(), Skip> {
    let _place = ProgramCopy::new()?;
    let name = unique("crowd");
    let theirs = of_nobody(runtime, &name)?;
    let ours = [of_root(runtime, &name)?, of_root(runtime, &name)?];
    let told = runtap(["set-env", "-n", &name, "--all", SECRET]);
    told.expect_code(0).says(&format!("belong to other users: {} (nobody)", theirs.pid()));
    assert!(ours.iter().all(has_secret) && !has_secret(&theirs));
    // The message has the owners and process ids.
    let refused = runtap(["set-env", "-n", &name, SECRET]);
    refused.expect_code(3).says("root").says(&ours[0].p()).says(&ours[1].p());
    let other = "nobody";
    assert!(!refused.stderr.contains(&format!(" {other}  ")), "{refused}");
    Ok(())
}

fn another_user_is_named(runtime: &RealRuntime) -> Result<(), Skip> {
    let _place = ProgramCopy::new()?;
    let name = unique("named");
    let (theirs, ours) = (of_nobody(runtime, &name)?, of_root(runtime, &name)?);
    for user in ["nobody", "65534"] {
        for verb in ["info", "doctor"] {
            let told = runtap([verb, "-n", &name, "--user", user, "--format", "json"]);
            assert_eq!(told.expect_code(0).json()["pid"], theirs.pid());
        }
    }
    // As an argument, too; and with --all.
    let told = runtap(["set-env", "--user", "nobody", "--all", &name, "RUNTAP_E2E_OPEN=1"]);
    told.expect_code(0).says(&format!("'{name}' is process {} of user nobody", theirs.pid()));
    assert!(!runtap(["env", &ours.p()]).text().contains("RUNTAP_E2E_OPEN"));
    runtap(["info", &name, "--user", "daemon"]).expect_code(3).says("of user daemon");
    runtap(["info", &ours.p(), "--user", "root"]).expect_code(2).says("--user");
    runtap(["info", "-p", &ours.p(), "--user", "root"]).expect_code(2).says("--user");
    runtap(["info", "--user", "root"]).expect_code(2).says("-n");
    Ok(())
}
