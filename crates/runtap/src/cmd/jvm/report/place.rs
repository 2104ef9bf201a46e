//! The default names of files that are derived from a recording.

use std::path::{Path, PathBuf};

use super::load::Operand;

/// Returns the path without an extension: beside the recording, never inside, and distinct for each of its parts and agents.
pub(super) fn base(operand: &Operand) -> PathBuf {
    let path = &operand.path;
    // Removes a trailing slash: `run/` and `run` are the same recording.
    let trimmed: PathBuf = path.components().collect();
    let mut base = if path.is_dir() { with_file_name(&trimmed) } else { agent_base(&trimmed) };
    if let Some(part) = &operand.part {
        base.as_mut_os_string().push(format!("-{}", sanitize(&part.to_string())));
    }
    base
}

/// Returns a path that ends with a file name, which `.` lacks.
fn with_file_name(path: &Path) -> PathBuf {
    if path.file_name().is_some() {
        return path.to_owned();
    }
    let there = path.canonicalize().ok();
    there.filter(|there| there.file_name().is_some()).unwrap_or_else(|| PathBuf::from("recording"))
}

/// Returns the path for an agent or stream in a directory, beside the directory: `run-agent0` for `run/agent0` and for
/// `run/agent0.ctl.a2h.bin`.
fn agent_base(path: &Path) -> PathBuf {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let agent = runtap_jvm::recording::StreamName::parse(&name).map_or(name, |stream| stream.agent);
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut base = with_file_name(folder);
    base.as_mut_os_string().push(format!("-{agent}"));
    base
}

/// Converts the name of a part to a piece of a file name.
fn sanitize(part: &str) -> String {
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
        assert_eq!(sanitize("a/b c"), "a_b_c");
    }
}
