//! HQs are killed at any moment: the program never stops for longer than the policy allows.
//!
//! With `drop` and `counts` it does not wait for HQ at all; with `block` only while HQ runs. An untraced thread runs
//! beside the traced one: a stop of both is not caused by the agent.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::{Configuration, Extension, JavaString, WhenSlow};
use runtap_jvm_attach::AttachError;
use runtap_jvm_attach::codec::LoadError;
use runtap_testkit::{Jdk, Signal, Skip, eventually, require};

use super::{Attached, Dice, Part};
use crate::common::{Listening, demo};

/// The variable with the policy, set for the process that is HQ.
const POLICY: &str = "RUNTAP_SWEEP_HQ";
/// The tolerance on a busy machine.
const MARGIN: Duration = Duration::from_secs(1);

#[test]
fn a_tenth_of_fifty_moments() {
    require!(sweep(Part::Tenth));
}

#[test]
#[ignore = "minutes"]
fn fifty_moments() {
    require!(sweep(Part::Whole));
}

/// Not a test: the HQ of the other tests, in a process so that it can be killed.
#[test]
#[ignore = "the others start it"]
fn hq() {
    let Ok(policy) = std::env::var(POLICY) else { return };
    let when_slow = match policy.as_str() {
        "Block" => WhenSlow::Block,
        "Drop" => WhenSlow::Drop,
        _ => WhenSlow::Counts,
    };
    let inclusions = vec![JavaString::from("^demo/Steady\\$Traced$")];
    let extension = Extension { when_slow, ..Extension::default() };
    let hq = Listening::with(Configuration { extension, inclusions, ..demo() });
    println!("\nport {}", hq.hq.address().port());
    // HQ ends with the process that started it.
    let _ = std::io::stdin().read(&mut [0]);
}

struct Killable {
    child: Child,
    port: u16,
}

impl Killable {
    fn start(when_slow: WhenSlow) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "sweep::killed::hq", "--ignored", "--nocapture"]);
        command.env(POLICY, format!("{when_slow:?}")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        let port = lines.find_map(|line| line.unwrap().strip_prefix("port ")?.parse().ok()).unwrap();
        Self { child, port }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Killable {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sweep(part: Part) -> Result<(), Skip> {
    for jdk in part.jdks()? {
        for when_slow in [WhenSlow::Block, WhenSlow::Drop, WhenSlow::Counts] {
            moments(&jdk, when_slow, part.of(50))?;
        }
    }
    Ok(())
}

/// When an HQ is stopped and killed, in milliseconds after attaching started.
#[derive(Debug, Clone, Copy)]
struct Moment {
    stop: Option<u64>,
    kill: u64,
}

impl Moment {
    /// One of three is stopped for a while before it is killed, so that data for it piles up.
    fn any(dice: &mut Dice) -> Self {
        let first = dice.below(500);
        if dice.below(3) == 0 {
            Self { stop: Some(first), kill: first + 100 + dice.below(400) }
        } else {
            Self { stop: None, kill: first }
        }
    }
}

fn moments(jdk: &Jdk, when_slow: WhenSlow, count: usize) -> Result<(), Skip> {
    let (mut program, _) = Attached::start(jdk, &["-XX:+UseSerialGC"], &["demo.Steady"])?;
    let major = jdk.major();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ u64::from(major));
    let [mut longest, mut beside, mut alive, mut traced] = [0; 4];
    for number in 0..count {
        let moment = Moment::any(&mut dice);
        program.ask("gap");
        let hq = Killable::start(when_slow);
        let (attached, lived) = std::thread::scope(|scope| {
            let port = hq.port;
            let began = Instant::now();
            let killer = scope.spawn(move || {
                let at = |ms| std::thread::sleep(Duration::from_millis(ms).saturating_sub(began.elapsed()));
                if let Some(stop) = moment.stop {
                    at(stop);
                    hq.signal(Signal::STOP);
                }
                at(moment.kill);
                hq.signal(Signal::KILL);
                // Its connections are closed after it has exited, which takes a while on a busy machine.
                drop(hq);
                began.elapsed()
            });
            let attached = program.load(&format!("port={port},wait=1"));
            (attached, killer.join().unwrap())
        });
        match attached {
            Ok(()) => traced += 1,
            // HQ was killed before it had sent its configuration.
            Err(AttachError::NotLoaded(LoadError::Failed { code: -1 })) => {}
            Err(error) => panic!("{major} {when_slow:?} {number} {moment:?}: {error}"),
        }
        // The agent still tries to connect, if HQ was killed that early.
        program.load("detach").unwrap();
        eventually("no thread of the agent is left", || (!program.has_agent_threads()).then_some(()));
        let gaps = program.ask("gap");
        let (ours, control) = (Duration::from_micros(gaps[0]), Duration::from_micros(gaps[1]));
        let may = control + MARGIN + if when_slow == WhenSlow::Block { lived } else { Duration::ZERO };
        assert!(ours <= may, "{major} {when_slow:?} {number} {moment:?}: {ours:?} of {may:?}");
        assert!(gaps[2] > 0, "{major} {when_slow:?} {number} {moment:?}: it does not go on");
        longest = longest.max(gaps[0]);
        beside = beside.max(gaps[1]);
        alive = alive.max(u64::try_from(lived.as_micros()).unwrap());
    }
    println!(
        "JDK {major}, {when_slow:?}: {count} HQs killed, {traced} of them while it was traced; longest stop of the traced \
         thread {} ms, of the one beside it {} ms; each HQ lived for up to {} ms",
        longest / 1000,
        beside / 1000,
        alive / 1000
    );
    program.end();
    Ok(())
}
