//! The tree of running processes. Independent of runtimes.

use runtap_model::order;
use runtap_transport::linux::ProcDir;

use super::System;
use super::proc_files::{self, ProcFiles as _};

/// The contents of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    /// Whether it has exited and its exit code has not been collected.
    ended: bool,
    pub parent: u32,
    /// The start time in clock ticks since boot.
    start_time: u64,
}

impl System {
    /// Whether the process with this id and start time is still running. A zombie does not count as running.
    pub fn is_running(&self, pid: u32, start_time: u64) -> bool {
        self.stat(pid).is_some_and(|stat| stat.start_time == start_time && !stat.ended)
    }

    /// Returns process `pid` and its running descendants, parents before their children. A process whose parent has exited belongs
    /// to another tree.
    pub fn tree(&self, pid: u32) -> Vec<u32> {
        let all = proc_files::pids(self.proc_root());
        let mut stats: Vec<(u32, Stat)> = all
            .into_iter()
            .filter_map(|pid| Some((pid, self.stat(pid)?)))
            .filter(|(_, stat)| !stat.ended)
            .collect();
        // A child is never older than its parent.
        order::sort_by_key(&mut stats, |(pid, stat)| (stat.start_time, *pid));
        let mut tree = vec![pid];
        // Process ids wrap around: of two processes started in one tick, the child may come first.
        let mut grown = true;
        while grown {
            grown = false;
            for (pid, stat) in &stats {
                if tree.contains(&stat.parent) && !tree.contains(pid) {
                    tree.push(*pid);
                    grown = true;
                }
            }
        }
        tree
    }

    /// Returns the processes that were started with `text` in their environment, as far as readable. Later changes of the
    /// environment are not seen. This process, and those for which `asked` returns false, are skipped: reading the environment of
    /// another user's process may take long.
    pub fn started_with(&self, text: &[u8], asked: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut found = proc_files::pids(self.proc_root());
        found.retain(|pid| {
            *pid != std::process::id()
                && asked(*pid)
                && ProcDir::open(self.proc_root(), pid)
                    .and_then(|dir| dir.environ())
                    .is_ok_and(|environment| contains(&environment, text))
        });
        found
    }

    fn stat(&self, pid: u32) -> Option<Stat> {
        parse(&ProcDir::open(self.proc_root(), pid).ok()?.read("stat").ok()?)
    }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    !text.is_empty() && bytes.windows(text.len()).any(|window| window == text)
}

/// Parses fields 3, 4 and 22. Field 2 is in parentheses and may contain any characters.
pub(super) fn parse(stat: &[u8]) -> Option<Stat> {
    let close = stat.iter().rposition(|b| *b == b')')?;
    let text = str::from_utf8(stat.get(close + 1..)?).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let start_time = fields.nth(22 - 5)?.parse().ok()?;
    Some(Stat { ended: matches!(state, "Z" | "X" | "x"), parent, start_time })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_fields_of_stat() {
        let stat = b"42 (a) b (c) S 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 987654 1 2 3";
        assert_eq!(parse(stat), Some(Stat { ended: false, parent: 7, start_time: 987_654 }));
        let zombie = b"42 (x) Z 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 1 1 2 3";
        assert_eq!(parse(zombie).map(|stat| stat.ended), Some(true));
        assert_eq!(parse(b"42 (cut) S 1 2 3"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn a_child_is_in_the_tree_until_it_exits() {
        let system = System::current();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let start = system.start_time(child.id()).unwrap();
        assert!(system.is_running(child.id(), start));
        assert!(!system.is_running(child.id(), start + 1));
        let tree = system.tree(std::process::id());
        assert_eq!(tree.first(), Some(&std::process::id()));
        assert!(tree.contains(&child.id()), "{tree:?}");
        assert_eq!(system.tree(child.id()), [child.id()]);
        child.wait().unwrap();
        assert!(!system.is_running(child.id(), start));
    }

    #[test]
    fn processes_are_found_by_their_initial_environment() {
        let system = System::current();
        let mark = format!("mark-of-{}", std::process::id());
        assert_eq!(system.started_with(mark.as_bytes(), |_| true), [0; 0]);
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo up; read line"]).env("RUNTAP_TEST", &mark);
        let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // The environment is available some time after the kernel has resumed the parent.
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut String::new()).unwrap();
        assert_eq!(system.started_with(mark.as_bytes(), |_| true), [child.id()]);
        assert_eq!(system.started_with(mark.as_bytes(), |pid| pid != child.id()), [0; 0]);
        child.wait().unwrap();
        assert_eq!(system.started_with(mark.as_bytes(), |_| true), [0; 0]);
    }
}
