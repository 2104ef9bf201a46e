//! `doctor` where users, capabilities, mounts and namespaces prevent access. Requires root; the doctor then runs with
//! fewer rights.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use runtap_testkit::{Launch, Program, RealRuntime, Skip, eventually, run};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{folder, ps_row_of};
use crate::real_doctor::{codes, doctor, finding, idle, judged, says};

on_the_newest_runtime!(
    another_users_process,
    a_process_of_an_unprivileged_user,
    a_namespace_that_may_not_be_inspected_is_reported,
    a_container_of_our_own_user,
    a_process_that_may_not_be_inspected_is_reported,
    a_read_only_temporary_directory,
    a_temporary_directory_of_another_user_is_reported,
);

/// An unprivileged user.
pub(crate) const NOBODY: [&str; 5] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];
/// Root without any capability.
const POWERLESS: [&str; 4] = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"];

/// A world-readable folder, with a copy of the program under test.
pub(crate) struct ProgramCopy {
    dir: TempDir,
}

impl ProgramCopy {
    pub(crate) fn new() -> Result<Self, Skip> {
        if !rustix::process::geteuid().is_root() {
            return Err(Skip::because("only root can run programs as another user"));
        }
        let dir = folder();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_runtap"), dir.path().join("runtap")).unwrap();
        let place = Self { dir };
        let mut version = place.command(&NOBODY, ["version"]);
        version.stdout(std::process::Stdio::null());
        if !version.status().is_ok_and(|status| status.success()) {
            return Err(Skip::because(
                "setpriv can't switch to another user, or that user can't read the program under test",
            ));
        }
        Ok(place)
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns a folder in it that only root can access.
    pub(crate) fn private(&self) -> PathBuf {
        let private = self.path().join("private");
        fs::create_dir(&private).unwrap();
        fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
        private
    }

    /// Runs `runtap` as this user.
    pub(crate) fn command<I: IntoIterator<Item: AsRef<OsStr>>>(&self, who: &[&str], arguments: I) -> Command {
        let mut command = Command::new(who[0]);
        command.args(&who[1..]).arg(self.path().join("runtap")).args(arguments);
        command.env_remove("TMPDIR").current_dir("/");
        command
    }

    /// Runs `runtap doctor` as this user.
    fn doctor(&self, who: &[&str], pid: u32, code: i32) -> Value {
        judged(self.command(who, ["doctor"]), pid, code)
    }
}

/// Returns whether this user can run a .NET program of the shared folder.
pub(crate) fn can_run(who: &[&str], runtime: &RealRuntime) -> Result<(), Skip> {
    let mut command = Command::new(who[0]);
    command.args(&who[1..]).arg("test").arg("-r").arg(runtime.root().join("dotnet"));
    let readable = command.status().is_ok_and(|status| status.success());
    readable.then_some(()).ok_or_else(|| Skip::because("another user can't read the runtime"))
}

/// Returns the only child of a wrapper, once its runtime is running.
pub(crate) fn child_of(wrapper: &Program) -> u32 {
    let id = wrapper.id();
    let children = format!("/proc/{id}/task/{id}/children");
    eventually("the wrapper's child", || fs::read_to_string(&children).unwrap().trim().parse().ok())
}

fn another_users_process(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    // The socket of the process is visible in /tmp, but cannot be used.
    let open = idle(runtime)?.without_env("TMPDIR").spawn();
    let document = place.doctor(&NOBODY, open.id(), 3);
    assert_eq!(codes(&document), ["other-user"]);
    says(&finding(&document, "other-user"), "detail", "belongs to user root");
    says(&finding(&document, "other-user"), "fix", "Run: sudo runtap doctor ");
    let mut ps = place.command(&NOBODY, ["ps", "--all-users", "--format", "json"]);
    let rows = run({
        ps.env_remove("TMPDIR");
        ps
    });
    let rows = rows.expect_code(0).json();
    let row =
        rows["processes"].as_array().unwrap().iter().find(|row| row["pid"] == open.id()).unwrap().clone();
    assert_eq!((&row["reachable"], &row["reason"]), (&false.into(), &"other-user".into()));

    // Only the names of its threads are visible.
    let hidden =
        idle(runtime)?.env("TMPDIR", place.private()).wrapped_by(&["unshare", "--net", "--"]).spawn();
    let document = place.doctor(&NOBODY, hidden.id(), 3);
    assert_eq!(codes(&document), ["other-user"]);
    let all = run(place.command(&NOBODY, ["doctor", "--format", "json"])).expect_code(0).json();
    let listed = all["processes"].as_array().unwrap().iter().any(|process| process["pid"] == hidden.id());
    assert!(listed, "{all:#}");
    assert_eq!(codes(&doctor(hidden.id(), 0)), [] as [&str; 0], "root sees everything");
    // The list has a note about more processes.
    let listed = run(place.command(&NOBODY, ["ps"]));
    listed.expect_code(0).says("use --all-users (or run as root)");
    let document = run(place.command(&NOBODY, ["ps", "--format", "json"])).json();
    assert!(document["of_other_users"].as_u64().unwrap() >= 1, "{document:#}");
    run(place.command(&NOBODY, ["ps", "spin"])).expect_code(3).says("use --all-users (or run as root)");
    let everybody = run(place.command(&NOBODY, ["ps", "--all-users", "--format", "json"])).json();
    assert_eq!(everybody["of_other_users"], 0);
    Ok(())
}

/// Accessible for its own user and root.
fn a_process_of_an_unprivileged_user(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    can_run(&NOBODY, runtime)?;
    let program = idle(runtime)?.env("TMPDIR", place.path()).wrapped_by(&NOBODY).spawn();
    assert_eq!(codes(&place.doctor(&NOBODY, program.id(), 0)), [] as [&str; 0]);
    assert_eq!(codes(&doctor(program.id(), 0)), [] as [&str; 0]);
    Ok(())
}

/// Returns a launch in another pid and mount namespace, with its own temporary directory.
pub(crate) fn contained(launch: Launch, unshare: &[&str], temp: &Path) -> Launch {
    let script = format!("mount -t tmpfs none '{}' && exec \"$@\"", temp.display());
    let mut wrapper = unshare.to_vec();
    wrapper.extend(["--pid", "--mount", "--fork", "--mount-proc", "--kill-child", "sh", "-c", &script, "sh"]);
    launch.wrapped_by(&wrapper).env("TMPDIR", temp)
}

fn a_namespace_that_may_not_be_inspected_is_reported(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    let temp = place.private();
    let program = contained(idle(runtime)?, &["unshare"], &temp).spawn();
    let pid = child_of(&program);
    let document = place.doctor(&POWERLESS, pid, 3);
    assert_eq!(codes(&document), ["other-namespace"]);
    says(&finding(&document, "other-namespace"), "detail", "pid");
    // Accessible with all rights; the location of its files is reported.
    let document = doctor(pid, 0);
    says(&finding(&document, "other-namespace"), "fix", &format!("/proc/{pid}/root"));
    Ok(())
}

/// A container created by an unprivileged user (rootless): accessible for that user and root, with every verb that
/// sends requests.
fn a_container_of_our_own_user(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    can_run(&NOBODY, runtime)?;
    let mut probe = Command::new(NOBODY[0]);
    probe.args(&NOBODY[1..]).args(["unshare", "--user", "--map-root-user", "--mount", "true"]);
    if !probe.status().is_ok_and(|status| status.success()) {
        return Err(Skip::because("users can't make namespaces on this machine"));
    }
    let temp = place.path().join("inside");
    fs::create_dir(&temp).unwrap();
    let mut unshare = NOBODY.to_vec();
    unshare.extend(["unshare", "--user", "--map-root-user"]);
    let program = contained(idle(runtime)?, &unshare, &temp).spawn();
    assert_eq!(program.own_pid(), 1, "first in its namespace");
    let pid = child_of(&program);
    let document = place.doctor(&NOBODY, pid, 0);
    assert_eq!(codes(&document), [] as [&str; 0]);
    says(&finding(&document, "other-namespace"), "detail", "its PID is 1");
    assert_eq!(codes(&doctor(pid, 0)), [] as [&str; 0]);

    let p = pid.to_string();
    let by_user = |arguments: &[&str]| run(place.command(&NOBODY, arguments)).expect_code(0).json();
    assert_eq!(by_user(&["info", &p, "--format", "json"])["pid"], pid);
    let env = by_user(&["env", &p, "--format", "json"]);
    let mut variables = env["variables"].as_array().unwrap().iter();
    assert!(variables.any(|it| it["name"] == "TMPDIR" && it["value"] == temp.to_str().unwrap()));
    let file = place.path().join("contained.nettrace");
    let trace = ["trace", &p, "--duration", "0.2s", "-o", file.to_str().unwrap(), "--format", "json"];
    assert_eq!(by_user(&trace)["partial"], Value::Null);
    assert_eq!(ps_row_of(|| place.command(&NOBODY, ["ps"]), pid)["reachable"], true);
    Ok(())
}

/// Same user and namespaces; the kernel denies access because the doctor has fewer rights than the process.
fn a_process_that_may_not_be_inspected_is_reported(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    let launch = idle(runtime)?.env("TMPDIR", place.private()).wrapped_by(&["unshare", "--net", "--"]);
    let program = launch.spawn();
    let document = place.doctor(&POWERLESS, program.id(), 3);
    assert_eq!(codes(&document), ["lsm"]);
    says(&finding(&document, "lsm"), "detail", "CAP_SYS_PTRACE");
    let (detail, pid) = (finding(&document, "lsm")["detail"].to_string(), program.id().to_string());
    for verb in [&["info"][..], &["jvm", "attach"]] {
        let told = run(place.command(&POWERLESS, [verb, &[&*pid]].concat()));
        told.expect_code(3).says(detail.trim_matches('"')).says("give your container the capability");
    }
    assert_eq!(codes(&doctor(program.id(), 0)), [] as [&str; 0]);
    Ok(())
}

fn a_read_only_temporary_directory(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    let temp = place.private();
    let script = format!("mount -t tmpfs -o ro none '{}' && exec \"$@\"", temp.display());
    let launch = idle(runtime)?.env("TMPDIR", &temp);
    let program = launch.wrapped_by(&["unshare", "--mount", "sh", "-c", &script, "sh"]).spawn();
    let document = doctor(program.id(), 3);
    assert_eq!(codes(&document), ["tmp-read-only"]);
    says(&finding(&document, "tmp-read-only"), "detail", "mounted read-only");
    says(&finding(&document, "tmp-read-only"), "fix", "TMPDIR=");

    // Inside a container with a read-only temporary directory.
    let script = format!(
        "mount -t tmpfs -o ro none '{}' && TMPDIR='{}' exec '{}' doctor --format json",
        temp.display(),
        temp.display(),
        env!("CARGO_BIN_EXE_runtap")
    );
    let mut ours = Command::new("unshare");
    ours.args(["--mount", "sh", "-c", &script]);
    let document = run(ours).expect_code(0).json();
    says(&finding(&document, "tmp-read-only"), "detail", temp.to_str().unwrap());
    Ok(())
}

fn a_temporary_directory_of_another_user_is_reported(runtime: &RealRuntime) -> Result<(), Skip> {
    let place = ProgramCopy::new()?;
    can_run(&NOBODY, runtime)?;
    let temp = place.path().join("roots");
    fs::create_dir(&temp).unwrap();
    fs::set_permissions(&temp, fs::Permissions::from_mode(0o755)).unwrap();
    let program = idle(runtime)?.env("TMPDIR", &temp).wrapped_by(&NOBODY).spawn();
    let document = doctor(program.id(), 3);
    assert_eq!(codes(&document), ["tmp-read-only"]);
    says(&finding(&document, "tmp-read-only"), "detail", "not permitted to write");
    Ok(())
}
