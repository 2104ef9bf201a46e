//! Names in a world-writable folder that another user has taken first: of manual pages, of temporary names for a port,
//! and of sockets that look stale. Requires root.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use runtap_testkit::{require, run};
use tempfile::TempDir;

use crate::attacker::Attacker;
use crate::cli_launch::words;
use crate::cli_outputs::names;
use crate::common::{command, folder, shell};
use crate::real_doctor_rights::{NOBODY, ProgramCopy};

/// Creates a folder like `/tmp`, but without the sticky bit, which would change nothing where the kernel does not
/// protect links.
fn shared() -> TempDir {
    let folder = folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// Runs a script as user `nobody` with `$1` and `$2`.
fn nobody(script: &str, first: &Path, second: &Path) {
    let mut attack = Command::new(NOBODY[0]);
    attack.args(&NOBODY[1..]).args(["sh", "-c", script, "sh"]).arg(first).arg(second);
    run(attack).expect_code(0);
}

fn man(folder: &Path) -> runtap_testkit::Finished {
    run(command(["man", "--out-dir", folder.to_str().unwrap()]))
}

#[test]
fn manual_pages_go_where_no_link_of_others_leads() {
    let _place = require!(ProgramCopy::new());
    let (shared, victim) = (shared(), folder());
    // An existing folder, a folder to be created, and a page.
    for (link, output) in [("pages", "pages"), ("pages", "pages/man1"), ("pages/runtap.1", "pages")] {
        let script = if link.ends_with(".1") {
            "mkdir \"${1%/*}\" && chmod 777 \"${1%/*}\" && ln -s \"$2/x\" \"$1\""
        } else {
            "ln -s \"$2\" \"$1\""
        };
        nobody(script, &shared.path().join(link), victim.path());
        man(&shared.path().join(output)).expect_code(2).says("of user 65534").says("not followed");
        assert_eq!(names(victim.path()), [] as [&str; 0]);
        let first = shared.path().join("pages");
        fs::remove_file(&first).or_else(|_| fs::remove_dir_all(&first)).unwrap();
    }
    // Without interference, the pages are written and world-readable, even behind a link of the current user.
    let own = folder();
    fs::create_dir(own.path().join("real")).unwrap();
    symlink("real", own.path().join("link")).unwrap();
    for output in [own.path().join("link/share/man/man1"), shared.path().join("new/man1")] {
        man(&output).expect_code(0);
        assert!(names(&output).len() > 20);
        let page = fs::metadata(output.join("runtap-trace.1")).unwrap();
        let umask = page.mode() & 0o777;
        assert_eq!((page.uid(), umask & 0o600), (0, 0o600));
        assert_eq!(fs::metadata(&output).unwrap().mode() & 0o444, umask & 0o444, "as open as the pages");
    }
    assert!(own.path().join("real/share/man/man1/runtap.1").is_file());
    man(Path::new("/dev/null")).expect_code(2).says("is not a directory");
}

/// The temporary folder in which a world-accessible socket is created. Its name used to be the process id and a number.
#[test]
fn a_port_is_created_whatever_names_exist() {
    let _place = require!(ProgramCopy::new());
    let shared = shared();
    let port = format!("{},listen", shared.path().join("p").display());
    let resume = command(["resume", "--duration", "0.2s", "--diagnostic-port", &port]);
    // With the process id that the program will have.
    let script = "i=0; while [ $i -lt 1100 ]; do mkdir \"$1/.runtap-$$-$i\"; i=$((i+1)); done; \
                  chown -R 65534 \"$1\"; shift; exec \"$@\"";
    let told =
        run(shell(script, [shared.path().as_os_str()].into_iter().chain(words(&resume)).collect::<Vec<_>>()));
    told.expect_code(3).says("no program has connected");
}

/// Sockets that look stale are connected to before their removal is proposed; targets of links are not.
#[test]
fn the_doctor_connects_to_no_link_instead_of_a_socket() {
    let _place = require!(ProgramCopy::new());
    let (shared, host) = (shared(), folder());
    // An unused process id: one more than the kernel's maximum.
    let name = |key: u32| shared.path().join(format!("dotnet-diagnostic-4194305-{key}-socket"));
    let (live, dead) = (host.path().join("live"), host.path().join("dead"));
    let listening = Attacker::of_user(&live, None);
    drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
    nobody("ln -s \"$2\" \"$1\"", &name(1), &live);
    nobody("ln -s \"$2\" \"$1\"", &name(2), &dead);
    drop(std::os::unix::net::UnixListener::bind(name(3)).unwrap());
    let mut doctor = command(["doctor", "--format", "json"]);
    doctor.env("TMPDIR", shared.path());
    let told = run(doctor);
    listening.has_no_connection();
    let findings = told.expect_code(0).json()["findings"].to_string();
    assert!(findings.contains("4194305-3-socket"), "{findings}");
    for key in [1, 2] {
        assert!(!findings.contains(&format!("4194305-{key}-socket")), "{findings}");
    }
}
