//! What connects tools and runtimes, and runtimes that connect to a tool.

use std::fs;

use anyhow::{Context as _, Result, bail};

use super::{PATIENCE, contains, serve};
use crate::wine::program::{TOKEN, Wine};

/// The arguments for a recording that contains only ticks.
const TICKS: [&str; 4] = ["--duration", "1s", "--providers", "Runtap-Demo:1:5"];
const RUNTAP: &str = "../runtap.exe";

fn with_ticks<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().copied().chain(TICKS).collect()
}

fn has_ticks(wine: &Wine, name: &str) -> Result<()> {
    contains(&wine.works(&["events", name])?, &["Tick"])
}

/// A pipe with a name of our choice, the names that tools look for, and all runtimes over TCP.
pub(super) fn route(wine: &Wine) -> Result<()> {
    let (_target, pid) = serve(wine)?;
    let words = ["router", "server-client", "--ipc-server", "runtap-router", "-p", &pid];
    let (_named, _) = wine.start(RUNTAP, &words, "Connect tools to ")?;
    contains(&wine.works(&["info", "--diagnostic-port", "runtap-router,connect"])?, &["demo", &pid])?;
    let (_usual, router) =
        wine.start(RUNTAP, &["router", "server-client", "-p", &pid], "dotnet-trace collect -p ")?;
    contains(&wine.works(&["ps"])?, &[&pid, &router])?;
    contains(&wine.works(&["info", &router])?, &["demo", &router])?;
    wine.works(&with_ticks(&["trace", "-p", &router, "-o", "routed.nettrace"]))?;
    has_ticks(wine, "routed.nettrace")?;
    if TOKEN.1.len() < 16 {
        bail!("the token is too short");
    }
    let (_offer, address) = wine.start(RUNTAP, &["router", "listen", "127.0.0.1:0"], "runtap://")?;
    let address = format!("runtap://{}", address.split(' ').next().unwrap_or_default());
    contains(&wine.works(&["ps", &address])?, &[&pid])?;
    contains(&wine.works(&["info", &format!("{address}/{pid}")])?, &["demo"])
}

/// Records what a tool and a runtime send, compares it with the original, and replays each side without the other.
pub(super) fn record(wine: &Wine) -> Result<()> {
    let (_target, pid) = serve(wine)?;
    let tool =
        |output| with_ticks(&["--", RUNTAP, "trace", "--diagnostic-port", "{socket},connect", "-o", output]);
    let words = [&["record", "-p", &pid, "-o", "talk.jsonl"][..], &tool("heard.nettrace")].concat();
    wine.works(&words)?;
    has_ticks(wine, "heard.nettrace")?;
    contains(&wine.works(&["inspect", "talk.jsonl"])?, &["CollectTracing", "StopTracing", "open"])?;
    let words = [&["replay", "talk.jsonl", "--fast"][..], &tool("played.nettrace")].concat();
    contains(&wine.works(&words)?, &["CollectTracing", "same"])?;
    let read = |name: &str| fs::read(wine.files().join(name)).with_context(|| name.to_owned());
    if read("heard.nettrace")? != read("played.nettrace")? {
        bail!("the replayed recording differs from the original");
    }
    contains(
        &wine.works(&["replay", "talk.jsonl", "--as", "client", "-p", &pid])?,
        &["CollectTracing", "same"],
    )
}

/// A router connects to the tool's port in place of the runtime.
pub(super) fn connect_to_port(wine: &Wine) -> Result<()> {
    let (_target, pid) = serve(wine)?;
    let words =
        with_ticks(&["trace", "--diagnostic-port", "runtap-port-ü,listen", "-o", "connected.nettrace"]);
    let (mut tool, port) = wine.start(RUNTAP, &words, "DOTNET_DiagnosticPorts=")?;
    if port.contains("pipe") {
        bail!("runtimes can't use {port}: they prepend the folder of pipes");
    }
    let words = ["router", "client-client", "--ipc-client", "runtap-port-ü", "-p", &pid];
    let (_router, _) = wine.start(RUNTAP, &words, "Routing to ")?;
    if tool.ended(PATIENCE)? != Some(0) {
        bail!("the recording failed");
    }
    has_ticks(wine, "connected.nettrace")
}

/// The built-in program waits for its port, as a runtime does.
pub(super) fn launch(wine: &Wine) -> Result<()> {
    let words = ["trace", "-o", "launched.nettrace", "--providers", "Runtap-Demo:1:5", "--"];
    let demo = [RUNTAP, "demo", "serve", "--seconds", "2"];
    wine.works(&[&words[..], &demo].concat())?;
    has_ticks(wine, "launched.nettrace")?;
    let said = wine.runtap(&[&words[..2], &["never.x", "--", RUNTAP, "events", "no-such-file"]].concat())?;
    let own = wine.runtap(&["events", "no-such-file"])?;
    if said.code != own.code || own.code == Some(0) {
        bail!("the command's exit code {:?} has become {:?}: {}", own.code, said.code, said.err);
    }
    let said = wine.runtap(&["trace", "-o", "never.x", "--", "no-such-program.exe"])?;
    if said.code != Some(125) {
        bail!("a command that does not exist: {:?}, {}", said.code, said.err);
    }
    Ok(())
}
