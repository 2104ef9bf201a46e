//! What a traced call costs. Not a gate: `cargo build -p runtap-jvm-agent --lib --profile agent`, then
//! `RUNTAP_JVM_AGENT=target/agent/libruntap_jvm_agent.so cargo test -p runtap-jvm-agent --test it bench -- --ignored --nocapture`.

use runtap_bytefrog::hq::Options;
use runtap_bytefrog_proto::{Configuration, Extension, JavaString, Mode, Record, WhenSlow};
use runtap_testkit::{Jdk, Running, require};

use crate::common::{Listening, demo, traced};

#[test]
#[ignore = "it measures"]
fn bench() {
    let cases = [
        ("coverage", Record::Coverage, true, WhenSlow::Block, Mode::Tracing),
        ("counts", Record::Counts, true, WhenSlow::Block, Mode::Tracing),
        ("full, ms, discarded", Record::Full, true, WhenSlow::Block, Mode::Suspended),
        ("full, ns, discarded", Record::Full, false, WhenSlow::Block, Mode::Suspended),
        ("full, ms, to HQ", Record::Full, true, WhenSlow::Block, Mode::Tracing),
        ("full, ns, to HQ", Record::Full, false, WhenSlow::Block, Mode::Tracing),
        ("full, ns, to HQ, drop", Record::Full, false, WhenSlow::Drop, Mode::Tracing),
    ];
    for jdk in require!(Jdk::all()).iter().filter(|jdk| [17, 25].contains(&jdk.major())) {
        for threads in ["1", "2"] {
            for (what, record, coarse_clock, when_slow, mode) in cases {
                let extension = Extension { record, coarse_clock, when_slow, ..Extension::default() };
                let inclusions = vec![JavaString::from("^demo/Bench$")];
                let configuration = Configuration { extension, inclusions, ..demo() };
                let options = Options { configuration, begin: Some(mode), ..Options::default() };
                let hq = Listening::new(options);
                let port = hq.hq.address().port();
                let java = require!(traced(jdk, port, "", &["demo.Bench", threads, "3000000"]));
                let finished = Running::start(java).wait();
                let said = String::from_utf8_lossy(&finished.stdout).into_owned();
                println!("JDK {} {threads} thread(s) {what:22} {}", jdk.major(), said.trim());
                assert!(finished.stderr.is_empty(), "{finished}");
            }
        }
    }
}
