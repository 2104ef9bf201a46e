//! Dumps of a program that writes the file it is told to write.

use std::fs;

use anyhow::{Result, bail};

use super::contains;
use crate::wine::program::{Said, Wine};

/// Dumps a program that writes this content.
fn dump(wine: &Wine, what: &str, words: &[&str]) -> Result<Said> {
    let (_target, pid) = wine.start("../writer.exe", &[what], "pid ")?;
    wine.runtap(&[&["dump", &pid, "--type", "mini"][..], words].concat())
}

fn ends(said: &Said, code: i32, why: &str) -> Result<()> {
    if said.code != Some(code) || !said.err.contains(why) {
        bail!("it ended with {:?}, without `{why}` in its output: {}{}", said.code, said.out, said.err);
    }
    Ok(())
}

/// Which files are kept, which are removed, and what is reported about them.
pub(super) fn written(wine: &Wine) -> Result<()> {
    let folder = wine.files().join("dumps 100%");
    fs::create_dir_all(&folder)?;
    let path = "dumps 100%/grün.dmp";
    let said = dump(wine, "whole", &["-o", path, "--format", "json"])?;
    ends(&said, 0, "")?;
    contains(&said, &["\"verified\": true", "\"threads\": 1", "\"bytes\": 120"])?;
    if !fs::read(wine.files().join(path))?.starts_with(b"MDMP") {
        bail!("the file is not a minidump");
    }
    // An existing file is not changed.
    ends(&dump(wine, "whole", &["-o", path])?, 2, "is not replaced")?;
    ends(&dump(wine, "whole", &["-o", "dumps 100%"])?, 0, "")?;
    ends(&dump(wine, "cut", &["-o", "dumps 100%/cut.dmp"])?, 5, "can't be used")?;
    let there = fs::read_dir(&folder)?.count();
    ends(&dump(wine, "text", &["-o", "dumps 100%/text.dmp"])?, 1, "not a minidump")?;
    ends(&dump(wine, "nothing", &["-o", "dumps 100%/nothing.dmp"])?, 1, "can't be copied")?;
    ends(&dump(wine, "refuse", &["-o", "dumps 100%/refused.dmp"])?, 4, "made of cheese")?;
    if there != 3 || fs::read_dir(&folder)?.count() != there {
        bail!("a file was left behind or is missing: there were {there}");
    }
    Ok(())
}

/// Places where a dump is never written; no process is asked for one.
pub(super) fn refused(wine: &Wine) -> Result<()> {
    for path in [r"\\server\share\x.dmp", r"\\.\pipe\x", "NUL", "nul.dmp", r"C:\windows\com1"] {
        ends(&dump(wine, "whole", &["-o", path])?, 2, "is not on a disk of this machine")?;
    }
    ends(&dump(wine, "whole", &["-o", "x.dmp:stream"])?, 2, "is not the name of a file")?;
    ends(&dump(wine, "whole", &["-o", "x.dmp", "--crashreport"])?, 2, "no crash reports")?;
    ends(&dump(wine, "whole", &["-o", "nowhere/x.dmp"])?, 2, "nowhere")
}
