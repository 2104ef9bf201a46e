//! Sockets that impersonate another process: of other users in a world-writable folder, and of a container with links
//! to the outside. Root's requests reach only the intended process. All tests run as root in their own folders, to
//! which kernel settings that protect such folders (`fs.protected_*`) do not apply.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runtap_testkit::{Finished, MAKE_ROOT, Program, Running, Skip, eventually, require, run};
use runtap_transport::naming::SocketName;
use tempfile::TempDir;

use crate::attacker::{Attacker, NOBODY};
use crate::common::{command, folder, ps, socket_in};
use crate::real_doctor_rights::NOBODY as SETPRIV;

/// A folder like `/tmp`, on tmpfs or on disk, with a diagnosable program of root.
struct SharedFolder {
    folder: TempDir,
    victim: Running,
}

/// Returns whether other users can access the path.
fn is_public(path: &Path) -> bool {
    path.ancestors().all(|it| fs::metadata(it).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0))
}

/// Folders for the attacks on different file systems, which differ in the links and renames that they allow. Other
/// users may have no access to the checkout.
fn file_systems() -> Vec<TempDir> {
    let new = |place: &Path| tempfile::Builder::new().prefix("runtap-attack-").tempdir_in(place);
    let checkout = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let disk = if is_public(checkout) { checkout } else { Path::new("/var/tmp") };
    let mut folders = vec![folder(), new(disk).expect("a folder on the disk")];
    folders.extend(new(Path::new("/dev/shm")).ok());
    for folder in &folders {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    }
    folders
}

fn root() -> Result<(), Skip> {
    let root = rustix::process::geteuid().is_root();
    root.then_some(()).ok_or_else(|| Skip::because("only root can run programs as another user"))
}

impl SharedFolder {
    fn each(test: impl Fn(&Self)) {
        for folder in file_systems() {
            let victim = serve(folder.path());
            test(&Self { folder, victim });
        }
    }

    fn pid(&self) -> u32 {
        self.victim.id()
    }

    /// Returns the path of a name in the folder.
    fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `runtap` as root with this folder as temporary directory.
    fn runtap(&self, arguments: &[&str]) -> Finished {
        run(self.command(arguments))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command.env("TMPDIR", self.folder.path());
        command
    }
}

/// Starts the built-in diagnosable program and waits until it answers.
fn serve(temp: &Path) -> Running {
    let mut command = command(["demo", "serve", "--seconds", "60"]);
    let running = Running::start({
        command.env("TMPDIR", temp);
        command
    });
    eventually("its socket", || {
        let entries = fs::read_dir(temp).unwrap();
        let ours = format!("dotnet-diagnostic-{}-", running.id());
        let mut names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.any(|name| name.starts_with(&ours)).then_some(())
    });
    running
}

fn start_time(pid: u32) -> u64 {
    runtap_discover::start_time(pid).expect("the process runs")
}

/// Starts a process with a unique name that is not a runtime.
fn sleeper() -> Running {
    let mut command = Command::new("sleep");
    command.arg("60");
    Running::start(command)
}

#[test]
fn a_router_socket_of_another_user_is_not_queried() {
    require!(root());
    SharedFolder::each(|scene| {
        let pid = scene.pid().to_string();
        let router = scene.at(format!("dotnet-diagnostic-dsrouter-{pid}-1-socket"));
        let attacker = Attacker::at(&router);
        scene.runtap(&["set-env", "-p", &pid, "DB_PASSWORD=secret"]).expect_code(0);
        assert!(
            scene.runtap(&["env", "-p", &pid]).text().contains("DB_PASSWORD"),
            "the built-in program has it"
        );
        let rows = ps(scene.command(&["ps"]));
        let row = rows.iter().find(|row| row["pid"] == scene.pid()).unwrap();
        let own = socket_in(scene.folder.path(), scene.pid());
        assert_eq!(row["reachable"], true);
        assert_eq!(row["socket"], own.to_str().unwrap());
        scene.runtap(&["doctor", &pid]).expect_code(0);
        attacker.has_no_connection();

        // A user who gives the path is told the owner of the socket.
        let named = scene.runtap(&["info", "--diagnostic-port", router.to_str().unwrap()]);
        named.expect_code(3).says("of user nobody").says("nothing was sent");
        attacker.received_nothing();
    });
}

/// Also if the process has no socket, and the name matches completely.
#[test]
fn a_stranger_with_the_name_of_a_process_is_not_queried() {
    require!(root());
    SharedFolder::each(|scene| {
        let sleeper = sleeper();
        let pid = sleeper.id();
        let attacker = Attacker::at(&scene.at(SocketName::runtime(pid, start_time(pid)).to_string()));
        let pid = pid.to_string();
        for arguments in [
            &["set-env", "-p", &pid, "DB_PASSWORD=secret"][..],
            &["env", "-p", &pid],
            &["info", "-p", &pid],
            &["dump", "-p", &pid, "-o", scene.at("x.core").to_str().unwrap()],
            &["trace", "-p", &pid, "-o", scene.at("x.nettrace").to_str().unwrap()],
            &["tail", "-p", &pid, "--clrevents", "gc"],
            &["resume", "-p", &pid],
        ] {
            let told = format!(
                "the process behind this socket is PID {} of user nobody, not {pid}",
                std::process::id()
            );
            scene.runtap(arguments).expect_code(3).says(&told);
        }
        let doctor = scene.runtap(&["doctor", &pid]);
        assert!(doctor.expect_code(3).text().contains("not-dotnet"), "{doctor}");
        assert!(ps(scene.command(&["ps"])).iter().all(|row| row["pid"] != sleeper.id()));
        attacker.received_nothing();
    });
}

#[test]
fn a_socket_elsewhere_is_found_despite_a_strangers_socket_of_its_name() {
    require!(root());
    SharedFolder::each(|scene| {
        // The victim's temporary folder differs from that of the test; the stranger has a socket of the same name in
        // the latter.
        let own = folder();
        let victim = serve(own.path());
        let name = socket_in(own.path(), victim.id());
        let attacker = Attacker::at(&scene.at(name.file_name().unwrap().to_str().unwrap()));
        let pid = victim.id().to_string();
        scene.runtap(&["set-env", "-p", &pid, "DB_PASSWORD=secret"]).expect_code(0);
        scene.runtap(&["info", "-p", &pid]).expect_code(0);
        attacker.received_nothing();
    });
}

#[test]
fn a_named_socket_is_queried_if_its_user_or_its_name_matches() {
    require!(root());
    SharedFolder::each(|scene| {
        let socket = socket_in(scene.folder.path(), scene.pid());
        let named = |path: &Path| scene.runtap(&["info", "--diagnostic-port", path.to_str().unwrap()]);
        named(&socket).expect_code(0);
        // A router is queried only if its path is given, whatever its name is.
        let router = scene.at("dotnet-diagnostic-dsrouter-77-1-socket");
        fs::hard_link(&socket, &router).unwrap();
        named(&router).expect_code(0);
        let link = scene.at("link");
        symlink(&socket, &link).unwrap();
        named(&link).expect_code(0);

        // A program of user `nobody` is queried by its own socket's name, but by no other.
        let theirs = scene.at("theirs");
        fs::create_dir(&theirs).unwrap();
        rustix::fs::chown(&theirs, Some(rustix::fs::Uid::from_raw(NOBODY)), None).unwrap();
        let program = scene.at("runtap");
        fs::copy(env!("CARGO_BIN_EXE_runtap"), &program).unwrap();
        let mut serving = Command::new(SETPRIV[0]);
        serving.args(&SETPRIV[1..]).arg(program).args(["demo", "serve", "--seconds", "60"]);
        serving.env("TMPDIR", &theirs).current_dir("/");
        let stranger = Running::start(serving);
        let path = eventually("its socket", || Some(fs::read_dir(&theirs).unwrap().next()?.unwrap().path()));
        eventually("its answer", || (named(&path).code() == Some(0)).then_some(()));
        let other = theirs.join("other");
        fs::hard_link(&path, &other).unwrap();
        named(&other).expect_code(3).says("of user nobody");
        drop(stranger);
    });
}

/// A user who starts a program with another user's rights, as `sudo` does, may have started to listen before and passed
/// the socket on: the process belongs to root now, its socket does not.
#[test]
fn a_socket_older_than_the_rights_of_a_process_is_not_queried() {
    require!(root());
    SharedFolder::each(|scene| {
        // This process is root's, and one of its threads listens as user `nobody`.
        let me = std::process::id();
        let path = scene.at(SocketName::runtime(me, start_time(me)).to_string());
        let attacker = Attacker::at(&path);
        let told = format!("PID {me} of user nobody");
        scene.runtap(&["set-env", "-p", &me.to_string(), "DB_PASSWORD=secret"]).expect_code(3).says(&told);
        let path = path.to_str().unwrap();
        scene
            .runtap(&["set-env", "--diagnostic-port", path, "DB_PASSWORD=secret"])
            .expect_code(3)
            .says(&told);
        attacker.received_nothing();
    });
}

/// Names that sort before the real one by every attribute in a folder: newer files of root. A user can create them by
/// hard links where `fs.protected_hardlinks` is off, and so can root of a container that shares the folder and the
/// network.
#[test]
fn no_number_of_decoys_hides_a_process() {
    require!(root());
    SharedFolder::each(|scene| {
        let own = socket_in(scene.folder.path(), scene.pid());
        let place = |number: usize| {
            let folder = scene.at(number.to_string());
            fs::create_dir(&folder).unwrap();
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
            folder.join(own.file_name().unwrap())
        };
        let links: Vec<_> = (0..20)
            .map(|number| {
                let path = place(number);
                // The kernel still reports the path, even if the file is another one.
                let attacker = Attacker::at(&path);
                let other = path.with_extension("root");
                drop(UnixListener::bind(&other).unwrap());
                fs::rename(other, path).unwrap();
                attacker
            })
            .collect();
        let pid = scene.pid().to_string();
        let reached = || {
            scene.runtap(&["info", "-p", &pid]).expect_code(0);
            scene.runtap(&["doctor", &pid]).expect_code(0);
            let rows = ps(scene.command(&["ps"]));
            let row = rows.iter().find(|row| row["pid"] == scene.pid()).unwrap();
            assert_eq!((&row["reachable"], &row["socket"]), (&true.into(), &own.to_str().unwrap().into()));
        };
        reached();
        let of_root: Vec<_> = (20..40).map(|number| Attacker::of_user(&place(number), None)).collect();
        reached();
        links.iter().chain(&of_root).for_each(Attacker::has_no_connection);
    });
}

/// Names in `/tmp` are cheap to create, so they must be cheap to handle.
#[test]
fn thousands_of_names_cause_no_delay() {
    require!(root());
    let folder = folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let sleeper = sleeper();
    let (pid, start) = (sleeper.id(), start_time(sleeper.id()));
    for key in 0..20_000 {
        fs::write(folder.path().join(SocketName::runtime(pid, start + 1 + key).to_string()), "").unwrap();
    }
    let attacker = Attacker::at(&folder.path().join(SocketName::runtime(pid, start).to_string()));
    // Each of these took half a minute when all names were compared in pairs, and exceeded the time-out of a test with
    // three times as many.
    for arguments in [&["ps"][..], &["info", "-p", &pid.to_string()], &["doctor", &pid.to_string()]] {
        let mut command = command(arguments);
        command.env("TMPDIR", folder.path());
        let finished = run(command);
        assert!([Some(0), Some(3)].contains(&finished.code()), "{finished}");
    }
    attacker.received_nothing();
}

/// A process in mount and pid namespaces with its own root, as in a container; `inside` is that root.
struct Container {
    _wrapper: Program,
    pid: u32,
    inside: PathBuf,
    _folder: TempDir,
}

/// Starts a container with `temp` as its TMPDIR.
fn container(temp: &str) -> Result<Container, Skip> {
    root()?;
    let folder = folder();
    let inside = folder.path().join("root");
    fs::create_dir_all(inside.join("tmp")).unwrap();
    let script = MAKE_ROOT.to_owned() + r#"echo up; exec chroot "$1" sleep 60"#;
    let mut wrapper = Command::new("unshare");
    wrapper.args(["--pid", "--mount", "--fork", "--mount-proc", "--kill-child", "sh", "-ec", &script, "sh"]);
    wrapper.arg(&inside).env("TMPDIR", temp).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut wrapper = Program::start(wrapper);
    wrapper.wait_for("up");
    let children = format!("/proc/{0}/task/{0}/children", wrapper.id());
    let pid = eventually("the container's own process", || {
        let pid = fs::read_to_string(&children).ok()?.trim().parse().ok()?;
        let comm = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        (comm.trim() == "sleep").then_some(pid)
    });
    Ok(Container { _wrapper: wrapper, pid, inside, _folder: folder })
}

/// Runs every verb that examines or queries a process.
fn everything(scene: &TempDir, pid: u32) {
    let pid = pid.to_string();
    let output = scene.path().join("x");
    for arguments in [
        &["ps"][..],
        &["doctor", &pid],
        &["doctor"],
        &["set-env", "-p", &pid, "DB_PASSWORD=secret"],
        &["info", "-p", &pid],
        &["dump", "-p", &pid, "-o", output.to_str().unwrap()],
        &["trace", "-p", &pid, "-o", output.to_str().unwrap()],
        &["tail", "-p", &pid, "--clrevents", "gc"],
    ] {
        let mut command = command(arguments);
        command.env("TMPDIR", scene.path());
        let finished = run(command);
        assert!([0, 2, 3].contains(&finished.code().unwrap_or(-1)), "{finished}");
    }
}

#[test]
fn links_of_a_container_lead_to_no_socket_of_the_host() {
    let container = require!(container("/tmp"));
    let (scene, host) = (folder(), folder());
    let listener = host.path().join("host.sock");
    let listening = Attacker::of_user(&listener, None);
    // The container has a link with the correct name of the socket: absolute, through `..`, and through /proc.
    let socket =
        container.inside.join("tmp").join(SocketName::runtime(1, start_time(container.pid)).to_string());
    let listener = listener.display();
    for target in
        [format!("{listener}"), format!("../../../../../..{listener}"), format!("/proc/1/root{listener}")]
    {
        symlink(target, &socket).unwrap();
        everything(&scene, container.pid);
        // The path as users would give it.
        let named = format!("/proc/{}/root/tmp/{}", container.pid, socket.file_name().unwrap().display());
        run(command(["info", "--diagnostic-port", &named])).expect_code(3);
        listening.has_no_connection();
        fs::remove_file(&socket).unwrap();
    }
}

#[test]
fn folders_of_a_container_lead_to_no_socket_of_the_host() {
    // On the host, a process listens under the socket name of the container's process.
    let (scene, host) = (folder(), folder());
    for tmpdir in ["/evil", "/evil/../evil/", "evil"] {
        let container = require!(container(tmpdir));
        let name = SocketName::runtime(1, start_time(container.pid)).to_string();
        let listening = Attacker::of_user(&host.path().join(&name), None);
        for target in [
            host.path().to_owned(),
            Path::new("../../../../../..").join(host.path().strip_prefix("/").unwrap()),
        ] {
            let link = container.inside.join("evil");
            symlink(target, &link).unwrap();
            everything(&scene, container.pid);
            listening.has_no_connection();
            fs::remove_file(link).unwrap();
        }
    }
}

/// Legitimate use of a container: its own folder behind its own link.
#[test]
fn links_that_stay_in_a_container_are_followed() {
    let container = require!(container("/link"));
    fs::create_dir(container.inside.join("deep")).unwrap();
    symlink("/deep", container.inside.join("link")).unwrap();
    let name = SocketName::runtime(1, start_time(container.pid)).to_string();
    let listening = Attacker::of_user(&container.inside.join("deep").join(name), None);
    let told = run(command(["info", "-p", &container.pid.to_string()]));
    // The socket was found and connected to, but does not belong to the process.
    told.expect_code(3).says(&format!("PID {} of user root, not {}", std::process::id(), container.pid));
    listening.received_nothing();
}
