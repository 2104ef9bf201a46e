//! Java virtual machines, beside which .NET runs.

use std::fs;

use runtap_testkit::{Jdk, Running, Skip, eventually};

use crate::common::{folder, runtap};

const SLEEPER: &str = "package shop;
public class Sleeper {
    public static void main(String[] words) throws Exception { Thread.sleep(60_000); }
}
";

fn each_version() -> Result<(), Skip> {
    let folder = folder();
    let source = folder.path().join("Sleeper.java");
    fs::write(&source, SLEEPER).unwrap();
    Jdk::with_compiler()?.compile([&source], folder.path());
    // The second has no counters: what is known of it is in its memory, its command line and its installation.
    let starts = ["-XX:+UsePerfData", "-XX:-UsePerfData"];
    let jdks = Jdk::all()?;
    for (jdk, counters) in jdks.iter().flat_map(|jdk| starts.map(|counters| (jdk, counters))) {
        let mut java = jdk.java();
        java.arg(counters).arg("-cp").arg(folder.path()).args(["shop.Sleeper", "--port", "80"]);
        let java = Running::start(java);
        let pid = java.id();
        let row = eventually("the machine is listed with what runs in it", || {
            let document = runtap(["ps", "--format", "json"]).expect_code(0).json();
            let rows = document["processes"].as_array().unwrap().clone();
            rows.into_iter().find(|row| row["pid"] == pid && row["name"] == "shop.Sleeper")
        });
        assert_eq!(row["kind"], "jvm");
        let version = row["runtime_version"].as_str().unwrap();
        assert_eq!(version.split('.').next(), Some(&*jdk.major().to_string()), "{row}");
        assert_eq!(row["reachable"], false, "it speaks none of our protocols");
    }
    Ok(())
}

#[test]
fn ps_names_what_runs_in_a_java_machine() {
    if let Err(skip) = each_version() {
        skip.report();
    }
}
