//! What files that are made of a recording are named after, where nobody has named them.

use std::path::{Path, PathBuf};

use super::load::Operand;

/// The name without its extension: beside the recording, never in it, and another one for each part and agent of it.
pub(super) fn base(operand: &Operand) -> PathBuf {
    let path = &operand.path;
    // `run/` and `run` are one.
    let whole: PathBuf = path.components().collect();
    let mut base = if path.is_dir() { named(&whole) } else { of_agent(&whole) };
    if let Some(part) = &operand.part {
        base.as_mut_os_string().push(format!("-{}", harmless(&part.to_string())));
    }
    base
}

/// A path that ends in a name: `.` has none.
fn named(path: &Path) -> PathBuf {
    if path.file_name().is_some() {
        return path.to_owned();
    }
    let there = path.canonicalize().ok();
    there.filter(|there| there.file_name().is_some()).unwrap_or_else(|| PathBuf::from("recording"))
}

/// Of an agent or a stream in a folder, beside the folder: `run-agent0` of `run/agent0` and of `run/agent0.ctl.a2h.bin`.
fn of_agent(path: &Path) -> PathBuf {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let agent = runtap_jvm::recording::StreamName::parse(&name).map_or(name, |stream| stream.agent);
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut base = named(folder);
    base.as_mut_os_string().push(format!("-{agent}"));
    base
}

/// A part as a piece of a file's name.
fn harmless(part: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._-=".contains(c);
    part.replace("..", "-").chars().map(|c| if is_plain(c) { c } else { '_' }).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_and_each_agent_has_a_name_beside_the_recording() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run.dir");
        std::fs::create_dir(&run).unwrap();
        let of = |given: &str| {
            let operand = Operand::parse(&format!("{}{given}", run.display())).unwrap();
            base(&operand).strip_prefix(dir.path()).unwrap().display().to_string()
        };
        for (given, base) in [
            ("", "run.dir"),
            ("/", "run.dir"),
            ("#log in", "run.dir-log_in"),
            ("#0s..1s", "run.dir-0ns-1000000000ns"),
            ("#request=7", "run.dir-request=7"),
            ("/agent0", "run.dir-agent0"),
            ("/agent0.data1.a2h.bin#x", "run.dir-agent0-x"),
        ] {
            assert_eq!(of(given), base, "{given}");
        }
        assert_eq!(harmless("a/b c"), "a_b_c");
    }
}
