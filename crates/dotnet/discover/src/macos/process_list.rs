//! Lists processes with `ps`, for macOS. Every Unix has the required columns, so this is tested on Linux too. Malformed lines are
//! skipped.
//!
//! Source: POSIX `ps`; `lstart` is common to macOS, the BSDs and Linux.

use std::process::Command;

#[cfg(test)]
use runtap_testkit::Skip;

/// A process as listed by `ps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub pid: u32,
    pub uid: u32,
    pub user: String,
    /// The start time in seconds since 1970, which is the key in the name of its socket.
    pub start: u64,
    /// The executable and its arguments, joined by spaces.
    pub command: String,
}

/// Lists all processes. Empty without `ps`.
pub(super) fn all() -> Vec<Listed> {
    let mut ps = Command::new("ps");
    // The start time is printed in local time and in the user's language.
    ps.env("TZ", "UTC").env("LC_ALL", "C");
    ps.args(["-axww", "-o", "pid=,uid=,user=,lstart=,command="]);
    ps.output().map(|output| parse(&String::from_utf8_lossy(&output.stdout))).unwrap_or_default()
}

/// Returns the processes whose line contains `text` if `ps` shows environments too. Empty without `ps`.
pub(super) fn with_environment(text: &[u8]) -> Vec<u32> {
    let mut ps = Command::new("ps");
    // All BSDs and Linux accept the options without a hyphen.
    ps.args(["axeww", "-o", "pid=,command="]);
    ps.output().map(|output| lines_with(&output.stdout, text)).unwrap_or_default()
}

/// Linux systems without the package `procps` have no `ps`.
#[cfg(test)]
pub(crate) fn is_there() -> Result<(), Skip> {
    let version = Command::new("ps").args(["-p", "1"]).output();
    version.map(drop).map_err(|_missing| Skip::because("ps is missing, which lists processes"))
}

fn lines_with(list: &[u8], text: &[u8]) -> Vec<u32> {
    let pid = |line: &[u8]| {
        let digits = line.trim_ascii_start().split(|byte| *byte == b' ').next()?;
        str::from_utf8(digits).ok()?.parse().ok()
    };
    let has = |line: &&[u8]| !text.is_empty() && line.windows(text.len()).any(|part| part == text);
    list.split(|byte| *byte == b'\n').filter(has).filter_map(pid).collect()
}

fn parse(list: &str) -> Vec<Listed> {
    list.lines().filter_map(parse_line).collect()
}

/// Parses `  501   501 ann  Sat Nov 21 16:05:31 2026 /usr/bin/dotnet app.dll`.
fn parse_line(line: &str) -> Option<Listed> {
    let mut rest = line;
    let mut field = || {
        rest = rest.trim_start();
        let end = rest.find(' ').unwrap_or(rest.len());
        let (field, after) = rest.split_at_checked(end)?;
        rest = after;
        Some(field).filter(|field| !field.is_empty())
    };
    let pid = field()?.parse().ok()?;
    let uid = field()?.parse().ok()?;
    let user = field()?.to_owned();
    let _weekday = field()?;
    let (month, day, time, year) = (field()?, field()?, field()?, field()?);
    let start = seconds(year.parse().ok()?, month, day.parse().ok()?, time)?;
    Some(Listed { pid, uid, user, start, command: rest.trim().to_owned() })
}

/// Returns the seconds since 1970 of a time in UTC.
fn seconds(year: u64, month: &str, day: u64, time: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    const LENGTHS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let month = MONTHS.iter().position(|name| *name == month)?;
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let years: u64 = (1970..year).map(|year| if leap(year) { 366 } else { 365 }).sum();
    let months: u64 = LENGTHS.iter().take(month).sum::<u64>() + u64::from(month > 1 && leap(year));
    let mut clock = time.split(':').map(|part| part.parse::<u64>().ok());
    let (hours, minutes, seconds) = (clock.next()??, clock.next()??, clock.next()??);
    Some((((years + months + day.checked_sub(1)?) * 24 + hours) * 60 + minutes) * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    use runtap_testkit::require;

    use super::*;

    #[test]
    fn lines_of_ps() {
        let list = "  501   502 ann  Sat Nov 21 16:05:31 2026 /usr/local/share/dotnet/dotnet my app.dll -x\n\
            1 0 root     Thu Jan  1 00:00:00 1970 /sbin/launchd\n\
            7 0 root     Thu Feb 29 23:59:59 2024\n\
            broken\n\
            8 0 root     Sam Nov Xx 16:05:31 2026 x\n";
        let expected = [
            (501, 502, "ann", 1_795_277_131, "/usr/local/share/dotnet/dotnet my app.dll -x"),
            (1, 0, "root", 0, "/sbin/launchd"),
            (7, 0, "root", 1_709_251_199, ""),
        ];
        let expected = expected.map(|(pid, uid, user, start, command)| Listed {
            pid,
            uid,
            user: user.to_owned(),
            start,
            command: command.to_owned(),
        });
        assert_eq!(parse(list), expected);
    }

    #[test]
    fn processes_by_what_is_in_their_environment() {
        let list = b"  7 /bin/a A=1 PORT=/tmp/p,suspend\n 18 /bin/b PORT=/tmp/q\nx /tmp/p\n\n";
        assert_eq!(lines_with(list, b"/tmp/p"), [7]);
        assert_eq!(lines_with(list, b"/tmp/"), [7, 18]);
        assert_eq!(lines_with(list, b""), [0; 0]);
    }

    #[test]
    fn a_process_by_what_is_in_its_environment() {
        require!(is_there());
        let mark = format!("mark-of-ps-{}", std::process::id());
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo up; read line"]).env("RUNTAP_TEST", &mark);
        let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // The environment is available some time after the kernel has resumed the parent.
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut String::new()).unwrap();
        assert_eq!(with_environment(mark.as_bytes()), [child.id()]);
        child.wait().unwrap();
    }

    #[test]
    fn this_process_is_among_them() {
        require!(is_there());
        let all = all();
        let me = all.iter().find(|listed| listed.pid == std::process::id()).expect("ps lists this process");
        assert_eq!(me.uid, rustix::process::geteuid().as_raw());
        assert!(!me.command.is_empty() && !me.user.is_empty());
        // It was started before now, but recently.
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        assert!(me.start <= now + 2 && me.start + 24 * 3600 > now, "{} is not a time before {now}", me.start);
    }
}
