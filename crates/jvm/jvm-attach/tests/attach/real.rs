//! JDK 11, 17, 21 and 25.

use std::fs;
use std::path::Path;

use runtap_jvm_attach::codec::{LoadError, Request, RequestError};
use runtap_jvm_attach::{AttachError, CLibrary, PlacedLibrary, Timeouts};
use runtap_testkit::{Jdk, Skip};

use crate::{agent, attach, block_on, is_there, java, or_skip, sleeper};

#[test]
fn every_version_is_asked_and_loads_an_agent() {
    or_skip(each_version());
}

fn each_version() -> Result<(), Skip> {
    let classes = sleeper()?;
    let agent = agent(classes.path())?;
    for jdk in Jdk::all()? {
        let major = jdk.major();
        let program = java(&jdk, classes.path(), &[]);
        let pid = program.id();
        let socket = format!("/tmp/.java_pid{pid}");
        let connected = std::os::unix::net::UnixStream::connect(&socket);
        assert!(connected.is_err(), "{major}: it does not listen before it is asked");
        let client = attach(pid, Timeouts::default()).unwrap();
        assert!(is_there(&socket));
        assert!(!is_there(&format!("/tmp/.attach_pid{pid}")), "{major}: the trigger file is removed");
        assert_eq!(client.jvm().c_library(), CLibrary::Glibc);
        assert!(!client.jvm().has_other_network());

        let properties = block_on(client.properties()).unwrap();
        let specification = &properties["java.specification.version"];
        assert_eq!(specification.parse(), Ok(major));
        assert!(properties["line.separator"] == "\n" && properties.len() > 30, "{properties:?}");
        let version = block_on(client.execute(&Request::jcmd("VM.version".as_ref()))).unwrap();
        assert!(String::from_utf8(version).unwrap().contains(&format!("JDK {major}.")));
        let error = block_on(client.execute(&Request::jcmd("No.such".as_ref()))).unwrap_err();
        assert!(error.to_string().contains("Unknown diagnostic command"), "{error}");
        let error = block_on(client.execute(&Request::new::<&str>("nonsense", []))).unwrap_err();
        assert!(matches!(&error, AttachError::Rejected { code: -1, .. }), "{error}");
        let error = block_on(client.load(Path::new("/tmp/none/none.so"), "")).unwrap_err();
        assert!(error.to_string().contains("cannot open shared object file"), "{major}: {error}");

        // A second tool finds the JVM listening.
        let client = attach(pid, Timeouts::default()).unwrap();
        let out = classes.path().join("times");
        let options = |code: u8| format!("{}={code}", out.display());
        let placed = block_on(PlacedLibrary::write(client.jvm(), "libfake-agent.so", agent)).unwrap();
        let path = placed.path().to_owned();
        block_on(client.load(&path, &options(0))).unwrap();
        let folder = path.parent().unwrap().to_owned();
        assert!(folder.is_dir());
        drop(placed);
        assert!(!folder.exists(), "{major}: nothing is left on the disk");
        let error = block_on(client.load(&path, &options(7))).unwrap_err();
        assert!(matches!(error, AttachError::NotLoaded(LoadError::Failed { code: 7 })), "{error}");
        // The library is loaded already, so that its counter continues, although its file is gone.
        assert_eq!(client.loaded_libraries("libfake-agent").unwrap(), std::slice::from_ref(&path), "{major}");
        block_on(client.load(&path, &options(0))).unwrap();
        assert_eq!(fs::read_to_string(&out).unwrap(), "3", "{major}");

        // Only the newer protocol supports this.
        let long = format!("/{}{}", "x".repeat(3000), options(0));
        match block_on(client.load(&path, &long)) {
            Err(AttachError::Request(RequestError::TooLong { limit: 1024, .. })) => assert!(major < 24),
            answer => assert!(major >= 24 && answer.is_ok(), "{major}: {answer:?}"),
        }
    }
    Ok(())
}

#[test]
fn a_jvm_that_was_told_not_to_is_left_alone() {
    or_skip(told_not_to());
}

fn told_not_to() -> Result<(), Skip> {
    let classes = sleeper()?;
    let agent = agent(classes.path())?;
    for jdk in Jdk::all()? {
        let mut program = java(&jdk, classes.path(), &["-XX:+DisableAttachMechanism"]);
        let error = attach(program.id(), Timeouts::default()).unwrap_err();
        assert!(matches!(error, AttachError::Disabled { .. }), "{error}");
        program.kill();
        // By an option that is not visible from outside: the JVM only prints its stacks.
        let file = classes.path().join("options");
        fs::write(&file, "-XX:+DisableAttachMechanism\n").unwrap();
        let program = java(&jdk, classes.path(), &[&format!("@{}", file.display())]);
        let quick = Timeouts::all(std::time::Duration::from_secs(1));
        let error = attach(program.id(), quick).unwrap_err();
        assert!(matches!(error, AttachError::NotListening { .. }), "{error}");
        assert!(Path::new(&format!("/proc/{}", program.id())).exists(), "it lives");
        assert!(!is_there(&format!("/tmp/.attach_pid{}", program.id())));
        // SIGQUIT would end this JVM; it listens from its start instead.
        let program = java(&jdk, classes.path(), &["-Xrs"]);
        let client = attach(program.id(), Timeouts::default()).unwrap();
        assert!(block_on(client.properties()).is_ok());
        if jdk.major() >= 21 {
            let program = java(&jdk, classes.path(), &["-XX:-EnableDynamicAgentLoading"]);
            let client = attach(program.id(), Timeouts::default()).unwrap();
            let placed = block_on(PlacedLibrary::write(client.jvm(), "libfake-agent.so", agent)).unwrap();
            let error = block_on(client.load(placed.path(), "x")).unwrap_err();
            assert!(matches!(error, AttachError::NotLoaded(LoadError::Disabled)), "{error}");
        }
    }
    Ok(())
}
