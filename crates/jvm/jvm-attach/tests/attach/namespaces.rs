//! A JVM in a container, and one of another user, accessed by root, as tools in a host's shell do.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use runtap_jvm_attach::codec::Request;
use runtap_jvm_attach::{AttachError, Client, PlacedLibrary, Timeouts};
use runtap_testkit::{Jdk, OWN_TMP, Program, Skip, eventually, in_own_tmp};

use crate::{agent, attach, block_on, is_there, or_skip, sleeper, start};

const NOBODY: u32 = 65_534;

fn only_root() -> Result<(), Skip> {
    let root = rustix::process::geteuid().is_root();
    root.then_some(()).ok_or_else(|| Skip::because("only root can make namespaces and act as others"))
}

fn can_run(command: &[&str]) -> Result<(), Skip> {
    let ran = Command::new(command[0]).args(&command[1..]).arg("true").status();
    ran.is_ok_and(|status| status.success())
        .then_some(())
        .ok_or_else(|| Skip::because(format!("{} is not possible here", command.join(" "))))
}

/// Returns the only child of a wrapper.
fn child_of(wrapper: &Program) -> u32 {
    let id = wrapper.id();
    let children = format!("/proc/{id}/task/{id}/children");
    eventually("the wrapper's child", || fs::read_to_string(&children).unwrap().trim().parse().ok())
}

/// Loads the agent twice, the second time without its file, and checks that no file is left.
fn load(client: &Client, agent: &'static [u8], out_here: &Path, out_there: &Path) {
    let version = block_on(client.execute(&Request::jcmd("VM.version".as_ref()))).unwrap();
    assert!(String::from_utf8_lossy(&version).contains("JDK"));
    let placed = block_on(PlacedLibrary::write(client.jvm(), "libfake-agent.so", agent)).unwrap();
    let path = placed.path().to_owned();
    let seen = |below: &Path| PathBuf::from(format!("/proc/{}/root{}", client.jvm().pid(), below.display()));
    let folder = fs::metadata(seen(path.parent().unwrap())).unwrap();
    assert_eq!((folder.uid(), folder.mode() & 0o7777), (client.jvm().user(), 0o700));
    let file = fs::metadata(seen(&path)).unwrap();
    assert_eq!((file.uid(), file.mode() & 0o7777), (client.jvm().user(), 0o500));
    let options = format!("{}=0", out_there.display());
    block_on(client.load(&path, &options)).unwrap();
    drop(placed);
    assert!(!seen(path.parent().unwrap()).exists(), "nothing is left");
    assert_eq!(client.loaded_libraries("libfake-agent").unwrap(), std::slice::from_ref(&path));
    block_on(client.load(&path, &options)).unwrap();
    assert_eq!(fs::read_to_string(out_here).unwrap(), "2");
}

#[test]
fn a_container_is_no_obstacle() {
    or_skip(contained());
}

fn contained() -> Result<(), Skip> {
    only_root()?;
    let wrapper = ["unshare", "--pid", "--mount", "--net", "--fork", "--mount-proc", "--kill-child"];
    can_run(&wrapper)?;
    let classes = sleeper()?;
    let agent = agent(classes.path())?;
    for jdk in Jdk::all()? {
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).args(["sh", "-c", OWN_TMP, "sh"]);
        command.arg(in_own_tmp(&jdk.home().join("bin/java"))).arg("-cp").arg(in_own_tmp(classes.path()));
        command.arg("shop.Sleeper");
        let program = start(command);
        assert_eq!(program.own_pid(), 1);
        let pid = child_of(&program);
        let client = attach(pid, Timeouts::default()).unwrap();
        assert_eq!((client.jvm().own_pid(), client.jvm().has_other_network()), (1, true));
        let there = Path::new("/tmp/times");
        load(&client, agent, Path::new(&format!("/proc/{pid}/root/tmp/times")), there);
        assert!(!is_there(&format!("/proc/{pid}/root/tmp/.attach_pid1")));
        assert!(!is_there("/tmp/.java_pid1"), "its socket is not seen from outside");
    }
    Ok(())
}

/// If the JVM could not create its socket, no file is created in its working directory, and it gets no signal.
#[test]
fn a_read_only_folder_for_temporary_files_is_named() {
    or_skip(read_only());
}

fn read_only() -> Result<(), Skip> {
    const SCRIPT: &str = "mount --bind /tmp /mnt && mount -t tmpfs none /tmp && mount -o remount,ro /tmp && cd /mnt && exec \"$@\"";
    only_root()?;
    let wrapper = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"];
    can_run(&wrapper)?;
    let classes = sleeper()?;
    for jdk in Jdk::all()? {
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).args(["sh", "-c", SCRIPT, "sh"]);
        command.arg(in_own_tmp(&jdk.home().join("bin/java"))).arg("-XX:-UsePerfData");
        command.arg("-cp").arg(in_own_tmp(classes.path())).arg("shop.Sleeper");
        let program = start(command);
        let pid = child_of(&program);
        let refused = attach(pid, Timeouts::default()).err();
        assert!(
            matches!(refused, Some(AttachError::ReadOnlyTemp { pid: found, own_pid: 1 }) if found == pid),
            "JDK {}: {refused:?}",
            jdk.major()
        );
        assert!(!is_there(&format!("/proc/{pid}/cwd/.attach_pid1")));
    }
    Ok(())
}

#[test]
fn a_jvm_of_another_user_is_attached_to_as_that_user() {
    or_skip(of_another_user(&[]));
}

/// If the JVM's user namespace has no mapping for root, the JVM does not accept root of the machine.
#[test]
fn a_jvm_in_a_user_namespace_is_attached_to_as_its_user() {
    or_skip(of_another_user(&["unshare", "--user", "--map-root-user", "--"]));
}

fn of_another_user(wrapper: &[&str]) -> Result<(), Skip> {
    only_root()?;
    let classes = sleeper()?;
    let agent = agent(classes.path())?;
    for jdk in Jdk::all()? {
        let as_nobody = |words: &[&str]| {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).uid(NOBODY).gid(NOBODY).current_dir("/");
            command
        };
        let java = jdk.home().join("bin/java");
        let java = java.to_str().expect("the path is UTF-8");
        let words: Vec<&str> = wrapper.iter().copied().chain([java]).collect();
        let mut probe = as_nobody(&words);
        if !probe.arg("-version").stderr(std::process::Stdio::null()).status().is_ok_and(|ran| ran.success())
        {
            return Err(Skip::because(format!("another user can't run {}", words.join(" "))));
        }
        let mut command = as_nobody(&words);
        command.arg("-cp").arg(classes.path()).arg("shop.Sleeper");
        let program = start(command);
        let client = attach(program.id(), Timeouts::default()).unwrap();
        assert_eq!(client.jvm().user(), NOBODY);
        let out = PathBuf::from(format!("/tmp/runtap-times-{}", program.id()));
        load(&client, agent, &out, &out);
        assert_eq!(fs::metadata(&out).unwrap().uid(), NOBODY);
        fs::remove_file(&out).unwrap();
        assert!(!is_there(&format!("/tmp/.attach_pid{}", program.id())));
    }
    Ok(())
}
