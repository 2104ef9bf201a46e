//! Names beyond ASCII, commands that change a process, shell completions and manual pages.

use std::fs;

use anyhow::{Result, bail};

use super::{contains, serve};
use crate::wine::program::Wine;

/// Contains characters of two bytes and of three bytes, and one that is a surrogate pair in UTF-16.
const NAME: &str = "grün ✓ 🦀";

/// Names of folders and files, and of what is printed about them.
pub(super) fn names(wine: &Wine) -> Result<()> {
    let (_target, pid) = serve(wine)?;
    fs::create_dir_all(wine.files().join(NAME))?;
    let output = format!("{NAME}/{NAME}");
    let kinds = ["--providers", "Runtap-Demo:1:5", "--profile", "dotnet-sampled-thread-time"];
    let words = ["--duration", "1s", "--to", "nettrace", "--to", "speedscope"];
    wine.works(&[&["trace", "-p", &pid, "-o", &output][..], &kinds, &words].concat())?;
    for name in fs::read_dir(wine.files().join(NAME))? {
        let name = name?.file_name();
        if !name.to_string_lossy().starts_with(NAME) {
            bail!("unexpected file {}", name.display());
        }
    }
    let said = wine.works(&["inspect", &format!("{output}.nettrace"), "--format", "json"])?;
    contains(&said, &[NAME])?;
    let variable = format!("RUNTAP_NAME={NAME}");
    wine.works(&["set-env", &pid, &variable])?;
    contains(&wine.works(&["env", &pid])?, &[&variable])?;
    let said = wine.runtap(&["events", &format!("{NAME}.none")])?;
    if said.code == Some(0) || !said.err.contains(NAME) {
        bail!("events of a file that does not exist: {:?}, {}", said.code, said.err);
    }
    Ok(())
}

pub(super) fn change(wine: &Wine) -> Result<()> {
    let (_target, pid) = serve(wine)?;
    wine.works(&["resume", &pid])?;
    let said = wine.runtap(&["startup-hook", &pid, r"C:\hook.dll"])?;
    if said.code != Some(3) || !said.err.contains("nothing was sent") {
        bail!("startup-hook: {:?}, {}", said.code, said.err);
    }
    let id = "00000000-0000-0000-0000-000000000001";
    let words = ["profiler", "attach", &pid, "--clsid", id, "--path", r"C:\none.dll"];
    let said = wine.runtap(&words)?;
    // The request arrives: the built-in program does not support profilers.
    if said.code != Some(4) || !said.err.contains("AttachProfiler") {
        bail!("profiler attach: {:?}, {}", said.code, said.err);
    }
    // The process still works afterwards.
    contains(&wine.works(&["info", &pid])?, &["demo"])
}

pub(super) fn pages(wine: &Wine) -> Result<()> {
    for (shell, word) in [("powershell", "Register-ArgumentCompleter"), ("bash", "complete")] {
        contains(&wine.works(&["completions", shell])?, &[word, "runtap"])?;
    }
    contains(&wine.works(&["man"])?, &[".TH", "runtap"])?;
    wine.works(&["man", "--out-dir", "pages"])?;
    let page = fs::read_to_string(wine.files().join("pages").join("runtap-trace.1"))?;
    if page.contains("duration") { Ok(()) } else { bail!("the page of `trace` lacks its options") }
}
