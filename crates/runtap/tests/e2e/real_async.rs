//! `stack --async` on real runtimes: the chains of async methods are those of programs that state them.

use std::collections::BTreeMap;
use std::process::Stdio;

use runtap_testkit::{Jdk, Program, RealRuntime, Skip, eventually, require, run, workspace_root};
use serde_json::Value;

use crate::common::{Target, command, folder, json, runtap};

on_each_runtime!(stuck_methods_are_shown_as_chains, all_ways_to_wait_are_known);
on_the_newest_runtime!(several_programs_are_shown_one_after_another);

/// Returns the chains: `kind: innermost < outermost`, each with its count.
fn chains(document: &Value) -> BTreeMap<String, u64> {
    let name = |frame: &Value| frame["name"].as_str().unwrap().to_owned();
    let line = |chain: &Value| {
        let frames: Vec<String> = chain["frames"].as_array().unwrap().iter().map(name).collect();
        let kind = chain["waits_for"]["kind"].as_str().unwrap();
        let blocks = if chain["blocks_thread"] == true { " blocks" } else { "" };
        (format!("{kind}{blocks}: {}", frames.join(" < ")), chain["count"].as_u64().unwrap())
    };
    document["async"]["chains"].as_array().unwrap().iter().map(line).collect()
}

const LEVELS: &str = "Never.Level3Async < Never.Level2Async < Never.Level1Async";

fn stuck_methods_are_shown_as_chains(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.program("async", &["all", "600"])?);
    // Everything is stuck 300 ms after the program is ready. Its loop runs or waits for its delay every 20 ms.
    let document = eventually("the stuck methods", || {
        let document = json(["stack", &target.p(), "--async", "--format", "json"]);
        let text = document.to_string();
        // The threads are determined before the methods.
        let parts = [r#""blocks_thread":true"#, "SyncOverAsync.BlockOnResult()"];
        parts.iter().all(|part| text.contains(part)).then_some(document)
    });
    assert_eq!(document["schema"], "runtap.stack/1");
    assert_eq!(document["async"]["incomplete_reason"], Value::Null);
    let mut chains = chains(&document);
    for stuck in [format!("completion_source: {LEVELS}"), format!("completion_source blocks: {LEVELS}")] {
        assert_eq!(chains.remove(&stuck), Some(1), "{chains:#?}");
    }
    // The consumer of the channel has ended with its producer.
    assert!(chains.keys().all(|chain| chain.contains("Values.")), "{chains:#?}");
    let frame =
        &document["async"]["chains"].as_array().unwrap().iter().find(|it| it["blocks_thread"] == true);
    assert_eq!(frame.unwrap()["frames"][0]["module"], "async");
    let without = json(["stack", &target.p(), "--format", "json"]);
    assert_eq!(without["async"], Value::Null);
    let text = runtap(["stack", "-p", &target.p(), "--merge", "--async"]);
    let text =
        text.expect_code(0).says("the runtime collected all garbage and described its heap of ").text();
    assert!(text.contains("LockOrder.EnterInner") && text.contains(" pending async methods, in "), "{text}");
    assert!(
        text.contains(
            "    async!Never.Level3Async\n    async!Never.Level2Async\n    async!Never.Level1Async\n"
        )
    );
    target.still_answers();
    Ok(())
}

fn all_ways_to_wait_are_known(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.awaits_program("200")?);
    let document = json(["stack", &target.p(), "--async", "--format", "json"]);
    let mut found = chains(&document);
    let many = "completion_source: Many.InnerAsync < Many.MiddleAsync < Many.OuterAsync";
    assert_eq!(found.remove(many), Some(200), "{found:#?}");
    // Either of two methods may be the first one that awaits.
    let shared = ["First", "Second"].map(|name| {
        let whole = format!("completion_source: Several.TwiceAsync < Several.{name}Async");
        (found.remove(&whole), found.remove(&format!("method: Several.{name}Async")))
    });
    assert!(
        matches!(shared, [(Some(1), None), (None, Some(1))] | [(None, Some(1)), (Some(1), None)]),
        "{shared:?}"
    );
    let expected = [
        "channel: System.Threading.Channels.ChannelReader`1.ReadAllAsync[System.Int32] < Leaves.ChannelAsync",
        "completion_source: Generic`1.RunAsync[System.String,System.Int32]",
        "completion_source: Leaves.ValueAsync",
        "completion_source: Program.<Main>g__LocalAsync|3_0",
        "completion_source: Program.<Main>g__LocalAsync|3_0 < Program+<>c.<Main>b__3_1",
        "completion_source: Program.Ended < Task.ContinueWith",
        "completion_source: Program.PostedInnerAsync < Program.PostedAsync",
        "completion_source: Several+<>c.<UnwrapAsync>b__10_0 < Task.Unwrap < Several.UnwrapAsync",
        "completion_source: Several.KeeperAsync",
        "completion_source: Several.TwiceAsync < Task.WaitAsync < Several.TimedAsync",
        "completion_source: Several.TwiceAsync < Task.WhenAll < Several.AllAsync",
        "completion_source: Several.TwiceAsync < Task.WhenAny < Several.AnyAsync",
        "cycle: Several.CircleInnerAsync < Several.CircleAsync",
        "delay: Leaves.DelayAsync",
        "delay: Leaves.DelayAsync < Task.WhenAll < Several.AllAsync",
        "delay: Leaves.DelayAsync < Task.WhenAny < Several.AnyAsync",
        "delay: Leaves.PooledAsync < Leaves.OverPooledAsync",
        "semaphore: Leaves.SemaphoreAsync",
        "semaphore: Leaves.SemaphoreAsync < Leaves.VoidAsync",
        "socket: Leaves.SocketAsync",
        "timer: Leaves.TimerAsync",
        "unknown: Leaves.RunningAsync",
    ];
    assert_eq!(found, expected.iter().map(|line| ((*line).to_owned(), 1)).collect());
    assert_eq!(document["async"]["methods"], 3 * 200 + 35);
    target.still_answers();
    Ok(())
}

fn several_programs_are_shown_one_after_another(runtime: &RealRuntime) -> Result<(), Skip> {
    let targets = [Target::start(runtime.awaits_program("1")?), Target::start(runtime.awaits_program("2")?)];
    let [first, second] = &targets;
    let text = runtap(["stack", "-n", "awaits", "--all", "--async", "--format", "json"]);
    let counts = text.expect_code(0).text().lines().map(|line| {
        let document: Value = serde_json::from_str(line).unwrap();
        (document["pid"].as_u64().unwrap(), document["async"]["methods"].as_u64().unwrap())
    });
    let counts: BTreeMap<u64, u64> = counts.collect();
    assert_eq!(counts[&first.pid().into()] + 3, counts[&second.pid().into()], "{counts:?}");
    Ok(())
}

fn java_has_virtual_threads() -> Result<(), Skip> {
    let classes = folder();
    let source = workspace_root().join("crates/jvm/jvm-attach/testdata/thread_dumps/Stuck.java");
    let jdk = Jdk::with_compiler()?;
    jdk.compile([&source], classes.path());
    let mut java = jdk.java();
    java.args(["-XX:+UseSerialGC", "-Xmx128m", "-cp"]).arg(classes.path()).args(["Stuck", "0"]);
    java.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(java);
    program.wait_for("stuck");
    let p = program.id().to_string();
    let shown = run(command(["stack", &p, "--no-virtual", "--async", "--format", "json"]));
    shown.expect_code(0).says("--async applies only to .NET programs").says("without --no-virtual");
    assert_eq!(shown.json()["async"], Value::Null);
    Ok(())
}

#[test]
fn java_programs_are_told_to_have_virtual_threads() {
    require!(java_has_virtual_threads());
}
