//! Virtual threads that are in calls when the agent is attached.

use std::io::Read as _;
use std::process::Stdio;

use runtap_bytefrog::hq::{AgentId, Event};
use runtap_bytefrog_proto::ClassOutcome;
use runtap_testkit::{Jdk, eventually, require};

use crate::common::{Listening, demo, programs};
use crate::losses::load;

/// Running methods are reported as running, so that no report lists them as never called; their callees are counted.
#[test]
fn what_virtual_threads_are_in_is_not_dead() {
    let tools = require!(Jdk::with_compiler());
    for jdk in require!(Jdk::all()).iter().filter(|jdk| jdk.major() >= 21) {
        let mut java = jdk.java();
        java.args(["-XX:+EnableDynamicAgentLoading", "-Xverify:all", "-cp"]);
        java.arg(require!(programs())).arg("demo.Parked");
        let mut child = java.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = [0; 6];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        let hq = Listening::with(demo());
        let said = load(&tools, child.id(), &format!("host=127.0.0.1,port={}", hq.hq.address().port()));
        assert!(said.contains("return code: 0"), "{said}");
        let steps = || {
            let report = hq.hq.report(AgentId(0)).ok()?;
            let step = report.methods.iter().find(|method| method.signature.contains(".step;"))?;
            (step.entries > 10).then_some(())
        };
        eventually("calls of a virtual thread are counted", steps);
        assert!(load(&tools, child.id(), "detach").contains("return code: 0"));
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "JDK {}", jdk.major());
        let report = hq.report();
        assert_eq!(report.counters.orphans, 0, "JDK {}: {:?}", jdk.major(), report.findings);
        let heard = hq.heard.lock().unwrap();
        let told: Vec<String> = heard
            .iter()
            .filter_map(|(_, event)| match event {
                Event::Class { outcome: ClassOutcome::Failed, name } => Some(name.to_string()),
                _ => None,
            })
            .collect();
        let [parked] = &told[..] else { panic!("JDK {}: {told:?}", jdk.major()) };
        for method in [
            "waits()V",
            "waits(Ljava/lang/String;)Ljava/lang/String;",
            "works()V",
            "main([Ljava/lang/String;)V",
        ] {
            let running = format!("{method}: already running when the trace began");
            assert!(parked.contains(&running), "JDK {}: {parked}", jdk.major());
        }
        assert!(!parked.contains("never()V"), "JDK {}: {parked}", jdk.major());
    }
}
