//! The Java commands: the collector, its control pipe, its recording and the reports made from it.

use std::fs;

use anyhow::{Result, bail};

use super::{LIFETIME, PATIENCE, contains, until};
use crate::wine::program::Wine;

pub(super) fn jvm(wine: &Wine) -> Result<()> {
    let said = wine.works(&["demo", "jvm", "--duration", "1s", "--format", "json"])?;
    contains(&said, &["\"entries\"", "shop/Main"])?;
    let words = [
        "jvm",
        "hq",
        "--listen",
        "127.0.0.1:0",
        "--once",
        "--plain",
        "--record",
        "calls",
        "--control",
        "hq-ü",
    ];
    let (mut hq, address) = wine.start("../runtap.exe", &words, "jvm attach PID --hq ")?;
    let address = address.split('\'').next().unwrap_or_default().to_owned();
    let agent = ["demo", "jvm-agent", "--connect", &address, "--seconds", LIFETIME];
    let (_agent, _) = wine.start("../runtap.exe", &agent, "pid ")?;
    let send = |order: &str| wine.works(&["jvm", "hq", "--control", "hq-ü", "--send", order]);
    until(|| Ok(send("status")?.out.contains("\"connected\":true")), "no agent has connected")?;
    until(|| Ok(!send("report")?.out.contains("\"entries\":0,")), "no call was reported")?;
    send("stop")?;
    if hq.ended(PATIENCE)? != Some(0) {
        bail!("the collector failed");
    }
    contains(&wine.works(&["jvm", "report", "calls"])?, &["shop.Main"])?;
    contains(&wine.works(&["jvm", "replay", "calls"])?, &["shop.Main"])?;
    wine.works(&["jvm", "report", "calls", "--to", "folded", "-o", "calls.folded"])?;
    if !fs::read_to_string(wine.files().join("calls.folded"))?.contains("shop") {
        bail!("the converted recording lacks the program's class");
    }
    for verb in ["run", "attach", "agent", "detach"] {
        let said = wine.runtap(&["jvm", verb, "1234"])?;
        if said.code != Some(2) || !said.err.contains("not there on Windows") {
            bail!("jvm {verb}: {:?}, {}", said.code, said.err);
        }
    }
    Ok(())
}
