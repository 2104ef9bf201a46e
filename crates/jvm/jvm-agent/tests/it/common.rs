//! Programs with the agent, and an HQ that receives their events.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use runtap_bytefrog::Report;
use runtap_bytefrog::hq::{AgentId, Event, Hq, Options};
use runtap_bytefrog_proto::{Configuration, Dialect, JavaString};
use runtap_testkit::{Finished, Jdk, Running, Skip};

/// Returns the library that cargo has built with these tests, or the one that `RUNTAP_JVM_AGENT` names.
pub(crate) fn library() -> PathBuf {
    if let Some(path) = std::env::var_os("RUNTAP_JVM_AGENT") {
        return path.into();
    }
    let tests = std::env::current_exe().unwrap();
    let library = tests.parent().unwrap().join("libruntap_jvm_agent.so");
    assert!(library.is_file(), "{} was built with the tests", library.display());
    library
}

/// Returns the folder of the compiled programs of `tests/java`.
pub(crate) fn programs() -> Result<&'static Path, Skip> {
    static FOLDER: OnceLock<Result<tempfile::TempDir, Skip>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let jdk = Jdk::with_compiler()?;
        let folder = tempfile::tempdir().unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java/demo");
        let sources = std::fs::read_dir(sources).unwrap().map(|entry| entry.unwrap().path());
        jdk.compile(sources, folder.path());
        Ok(folder)
    });
    folder.as_ref().map(tempfile::TempDir::path).map_err(Clone::clone)
}

/// HQ's events.
type Heard = Vec<(Option<AgentId>, Event)>;

/// An HQ, and its events.
pub(crate) struct Listening {
    pub(crate) hq: Hq,
    pub(crate) heard: Arc<Mutex<Heard>>,
}

/// Returns a configuration that traces the programs of these tests.
pub(crate) fn demo() -> Configuration {
    Configuration {
        inclusions: vec![JavaString::from("^demo/")],
        exclusions: vec![JavaString::from(".*")],
        heartbeat_interval: 100,
        ..Configuration::default()
    }
}

impl Listening {
    pub(crate) fn new(options: Options) -> Self {
        let heard: Arc<Mutex<Heard>> = Arc::default();
        let tell = Arc::clone(&heard);
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        // A machine that is stopped for seconds loses nothing.
        let options = Options { gap_timeout: Duration::from_mins(5), ..options };
        let hq = Hq::listen(any, options, move |agent, event| tell.lock().unwrap().push((agent, event)));
        Self { hq: hq.unwrap(), heard }
    }

    pub(crate) fn with(configuration: Configuration) -> Self {
        Self::new(Options { configuration, ..Options::default() })
    }

    /// Returns the report of the first agent, once it is complete.
    pub(crate) fn report(&self) -> Report {
        let agent = AgentId(0);
        let over = || self.heard.lock().unwrap().contains(&(Some(agent), Event::Finished));
        let end = std::time::Instant::now() + Duration::from_secs(30);
        while !over() {
            assert!(
                std::time::Instant::now() < end,
                "the agent has not ended: {:?}",
                self.heard.lock().unwrap()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        self.hq.report(agent).unwrap()
    }

    pub(crate) fn dialect(&self) -> Option<Dialect> {
        self.heard.lock().unwrap().iter().find_map(|(_, event)| match event {
            Event::Connected { dialect, .. } => Some(*dialect),
            _ => None,
        })
    }
}

/// Returns the command of a program with the agent.
pub(crate) fn traced(jdk: &Jdk, port: u16, options: &str, arguments: &[&str]) -> Result<Command, Skip> {
    let mut java = jdk.java();
    let library = library();
    let library = library.to_str().unwrap();
    java.arg(format!("-agentpath:{library}=host=127.0.0.1,port={port}{options}"));
    java.args(["-Xverify:all", "-XX:-UsePerfData", "-Xshare:auto", "-cp"]).arg(programs()?).args(arguments);
    Ok(java)
}

/// Runs a program with the agent and without it; the outputs have to be equal.
pub(crate) fn run_both(jdk: &Jdk, port: u16, options: &str, arguments: &[&str]) -> Result<Finished, Skip> {
    let plain = printed(jdk, arguments)?;
    let finished = Running::start(traced(jdk, port, options, arguments)?).wait();
    finished.expect_code(0);
    assert!(finished.stdout == plain, "{finished}");
    Ok(finished)
}

/// A JDK's version and the arguments, with what was printed.
type Printed = Vec<((u32, Vec<String>), Vec<u8>)>;

/// Returns the output of a program without the agent, which is run once for each.
fn printed(jdk: &Jdk, arguments: &[&str]) -> Result<Vec<u8>, Skip> {
    static PRINTED: Mutex<Printed> = Mutex::new(Vec::new());
    let of = (jdk.major(), arguments.iter().map(ToString::to_string).collect());
    let mut known = PRINTED.lock().unwrap();
    if let Some((_, printed)) = known.iter().find(|(known, _)| *known == of) {
        return Ok(printed.clone());
    }
    let mut plain = jdk.java();
    plain.arg("-cp").arg(programs()?).args(arguments);
    let plain = runtap_testkit::run(plain);
    plain.expect_code(0);
    known.push((of, plain.stdout.clone()));
    Ok(plain.stdout)
}
