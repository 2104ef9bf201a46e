//! HQ's machine disappears without closing its connections: two networks with a cable between them, which is cut.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use runtap_bytefrog::hq::{Hq, Options};
use runtap_testkit::{Jdk, Skip, eventually, require};

use crate::common::{demo, traced};
use crate::faults::agent_threads;
use crate::gate::{MANY, Turns};

/// The variable that is set for the process that is HQ.
const HQ: &str = "RUNTAP_VANISHED_HQ";
const ADDRESSES: [&str; 2] = ["192.0.2.1", "192.0.2.2"];

/// Not a test: runs HQ in a network of its own.
#[test]
#[ignore = "the other one starts it"]
fn hq() {
    if std::env::var_os(HQ).is_none() {
        return;
    }
    let options = Options { configuration: demo(), ..Options::default() };
    let hq = Hq::listen(SocketAddr::from(([0, 0, 0, 0], 0)), options, |_, _| {}).unwrap();
    println!("\nport {}", hq.address().port());
    // HQ ends with the process that started it.
    let _ = std::io::stdin().read(&mut [0]);
}

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A network namespace that exists as long as this value.
struct Network(Ends);

impl Network {
    fn new() -> Result<Self, Skip> {
        let own = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let tried = Command::new("unshare").args(["--net", "true"]).stderr(Stdio::null()).status();
        if !tried.is_ok_and(|status| status.success()) {
            return Err(Skip::because("only root can make a network namespace"));
        }
        let mut sleep = Command::new("unshare");
        let child = Ends(sleep.args(["--net", "sleep", "1000"]).spawn().unwrap());
        let pid = child.0.id().to_string();
        eventually("it has its own", || own(&pid).filter(|theirs| own("self").as_ref() != Some(theirs)));
        Ok(Self(child))
    }

    fn id(&self) -> String {
        self.0.0.id().to_string()
    }

    /// Returns a command that runs another command in the network.
    fn inside(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &self.id(), "--"]);
        command
    }

    fn ip(&self, words: &[&str]) -> Result<(), Skip> {
        let done = self.inside().arg("ip").args(words).status();
        let is_done = done.is_ok_and(|status| status.success());
        is_done.then_some(()).ok_or_else(|| Skip::because("ip (iproute2) is not here, or may not do this"))
    }
}

#[test]
fn the_program_goes_on_when_hq_is_out_of_reach() {
    let jdk = require!(Jdk::with_compiler());
    let (ours, theirs) = (require!(Network::new()), require!(Network::new()));
    let link = ["link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", &theirs.id()];
    require!(ours.ip(&link));
    for (network, address) in [&ours, &theirs].into_iter().zip(ADDRESSES) {
        require!(network.ip(&["address", "add", &format!("{address}/30"), "dev", "cable"]));
        require!(network.ip(&["link", "set", "cable", "up"]));
    }
    let mut command = theirs.inside();
    command.arg(std::env::current_exe().unwrap()).args([
        "--exact",
        "vanished::hq",
        "--ignored",
        "--nocapture",
    ]);
    command.env(HQ, "1").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut hq = Ends(command.spawn().unwrap());
    let mut lines = BufReader::new(hq.0.stdout.as_mut().unwrap()).lines();
    let port = lines.find_map(|line| line.unwrap().strip_prefix("port ")?.parse().ok()).unwrap();

    let options = format!(",host={},silence=2,when-slow=block", ADDRESSES[1]);
    let java = require!(traced(&jdk, port, &options, &["demo.Turns"]));
    let mut command = ours.inside();
    command.arg(java.get_program()).args(java.get_args());
    let mut turns = Turns::spawn(command);
    turns.turn("run 1000");
    assert!(!agent_threads(turns.id()).is_empty(), "it is traced");
    require!(theirs.ip(&["link", "set", "cable", "down"]));
    // Far more than there is room for, so the agent waits until HQ counts as lost. The system's own time-out is a
    // quarter of an hour.
    turns.say(&format!("run {MANY}"));
    eventually("the agent has given up", || agent_threads(turns.id()).is_empty().then_some(()));
    turns.hear(&format!("run {MANY}"));
    turns.end();
}
