//! Who owns a pipe, and visitors that are not allowed to use it.

use anyhow::{Result, bail};

use super::{contains, serve};
use crate::wine::program::Wine;

/// `FILE_FLAG_FIRST_PIPE_INSTANCE`.
const FIRST_INSTANCE: u32 = 0x0008_0000;

pub(super) fn hostile(wine: &Wine) -> Result<()> {
    let (_target, pid) = serve(wine)?;
    let pipe = format!(r"\\.\pipe\dotnet-diagnostic-{pid}");
    let mut visitors = Vec::new();
    for what in ["silent", "garbage", "garbage", "silent"] {
        visitors.push((wine.start("../visitor.exe", &[what, &pipe], "begun")?.0, what));
    }
    contains(&wine.works(&["info", &pid])?, &["demo"])?;
    for (visitor, what) in &mut visitors {
        if *what == "silent" && !visitor.runs()? {
            bail!("the silent client ended before it could block others");
        }
    }
    drop(visitors);
    contains(&wine.works(&["info", &pid])?, &["demo"])
}

pub(super) fn squatter(wine: &Wine) -> Result<()> {
    // No process has an odd id.
    let _squatter = wine.start("../visitor.exe", &["squat", r"\\.\pipe\dotnet-diagnostic-4243"], "begun")?;
    let said = wine.runtap(&["info", "4243"])?;
    if said.code == Some(0) || !said.err.contains("not 4243") {
        bail!("info: {:?}: {}", said.code, said.err);
    }
    Ok(())
}

/// Which options the system is asked for, and which rights the pipe has. Wine 8 accepts every program as the first
/// instance of a name, so the behaviour itself cannot be tested.
pub(super) fn first(wine: &Wine) -> Result<()> {
    let said = wine.traced("sync", &["demo", "serve", "--seconds", "1"])?;
    let call =
        said.err.lines().find(|line| line.contains("CreateNamedPipeW") && line.contains("dotnet-diagnostic"));
    let mode = call.and_then(|call| {
        let (_, words) = call.split_once("\", 0x")?;
        u32::from_str_radix(words.split(',').next()?, 16).ok()
    });
    if mode.is_none_or(|mode| mode & FIRST_INSTANCE == 0) {
        bail!("not as the first instance: {call:?}");
    }
    let (_target, pid) = serve(wine)?;
    let pipe = format!(r"\\.\pipe\dotnet-diagnostic-{pid}");
    let (_visitor, rights) = wine.start("../visitor.exe", &["rights", &pipe], "D:P")?;
    let (count, users) = (rights.matches("(A;").count(), ["(A;;GA;;;SY)", "(A;;GA;;;BA)", "(A;;GA;;;S-1-5-"]);
    if count != users.len() || !users.iter().all(|user| rights.contains(user)) {
        bail!("other users may open it: {rights}");
    }
    Ok(())
}
