//! `top` on real runtimes: the methods and threads of the program `spin` are named, although they were compiled before.

use runtap_testkit::{RealRuntime, Skip};
use serde_json::Value;

use crate::common::{Target, runtap};

on_each_runtime!(the_hottest_methods_and_threads_are_named);
on_the_newest_runtime!(tables_are_printed_into_a_pipe);

fn spin(runtime: &RealRuntime) -> Result<Target, Skip> {
    Ok(Target::start(runtime.program("spin", &["600"])?))
}

fn the_hottest_methods_and_threads_are_named(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = spin(runtime)?;
    // .NET 9 marks nearly all running threads as waiting.
    let view = ["--view", "thread-time", "--format", "json"];
    let done = runtap(["top", &target.p(), "--duration", "4s", "--window", "2s"].iter().chain(&view));
    done.expect_code(0);
    let lines: Vec<Value> = done.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Names arrive while the first updates are shown.
    let line = lines.iter().rfind(|line| line["names_complete"] == true).unwrap_or_else(|| panic!("{done}"));
    assert_eq!(
        (&line["type"], &line["pid"], &line["view"]),
        (&"top".into(), &target.pid().into(), &"thread-time".into())
    );
    let hottest = &line["methods"][0];
    assert_eq!(
        (hottest["name"].as_str(), &hottest["module"]),
        (Some("Burn.Cycles(int32)"), &"spin".into()),
        "{line:#}"
    );
    // The main thread sleeps.
    assert!(hottest["self_percent"].as_f64() > Some(50.0), "{hottest:#}");
    let total = |name: &str| {
        let methods = line["methods"].as_array().unwrap();
        let found = methods.iter().find(|method| method["name"].as_str().unwrap().starts_with(name));
        found.unwrap_or_else(|| panic!("{name} is not in {line:#}"))["total"].as_u64().unwrap()
    };
    // A thread spends 60% of its time there; the exact shares are those of `report cpu` (real_spin).
    assert!(total("A.Heavy") < total("A.Round") && 3 * total("A.Heavy") > total("A.Round"), "{line:#}");
    let threads = line["threads"].as_array().unwrap();
    for name in ["spin-A", "spin-B", "spin-C"] {
        let thread =
            threads.iter().find(|thread| thread["name"] == name).unwrap_or_else(|| panic!("{line:#}"));
        assert!(thread["samples"].as_u64() > Some(0), "{thread:#}");
    }
    target.still_answers();
    Ok(())
}

fn tables_are_printed_into_a_pipe(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = spin(runtime)?;
    let done = runtap(["top", &target.p(), "--duration", "3s", "--number", "2"]);
    done.expect_code(0);
    let tables = done.text().matches("TOTAL  METHOD").count();
    assert!(tables >= 2 && done.text().contains("spin!Burn.Cycles(int32)"), "{done}");
    assert!(!done.text().contains('\u{1b}') && done.text().contains("(--number shows more)"), "{done}");
    Ok(())
}
