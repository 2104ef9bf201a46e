//! The commit that a release is built from: its hash, its time (or `SOURCE_DATE_EPOCH` if set, see
//! reproducible-builds.org), and the compiler. The current time is not used.

use std::env;

use anyhow::{Context as _, Result};
use rawzip::time::UtcDateTime;

use xtask::workspace::Workspace;

/// Properties that are equal in two builds that must be identical.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) version: String,
    /// Twelve digits, as in `runtap version`.
    pub(super) commit: String,
    /// Seconds since 1970, the time of every file in every archive.
    pub(super) time: i64,
    /// For example `rustc 1.95.0 (…)`.
    pub(super) compiler: String,
    /// The compiler's host target.
    pub(super) host: String,
    /// Hash of the compiler's commit.
    pub(super) compiler_commit: String,
    /// Versions of what is linked besides crates, or `unknown`.
    pub(super) gcc: String,
    pub(super) glibc: String,
    pub(super) mingw: String,
}

impl Source {
    pub(super) fn of(ws: &Workspace) -> Result<Self> {
        let git =
            |args: &[&str]| ws.tool("git").args(args).quiet().capture().map(|text| text.trim().to_owned());
        let time = match env::var("SOURCE_DATE_EPOCH") {
            Ok(given) => given,
            Err(_) => git(&["log", "-1", "--format=%ct"])?,
        };
        let said = ws.tool("rustc").arg("-vV").quiet().capture()?;
        let field = |name: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            Ok::<_, anyhow::Error>(line.with_context(|| format!("rustc names no {name}"))?.to_owned())
        };
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: git(&["rev-parse", "--short=12", "HEAD"])?,
            time: time.parse().with_context(|| format!("not a time in seconds: {time}"))?,
            compiler: said.lines().next().unwrap_or_default().to_owned(),
            host: field("host")?,
            compiler_commit: field("commit-hash")?,
            gcc: said_by(ws, "cc", &["-dumpfullversion"], ""),
            glibc: said_by(ws, "getconf", &["GNU_LIBC_VERSION"], "glibc "),
            mingw: said_by(ws, "dpkg-query", &["-W", "-f=${Version}", "mingw-w64-x86-64-dev"], ""),
        })
    }

    /// Returns the time in ISO 8601 format.
    pub(super) fn iso_time(&self) -> String {
        let time = UtcDateTime::from_unix(self.time);
        format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
            time.year(),
            time.month(),
            time.day(),
            time.hour(),
            time.minute(),
            time.second()
        )
    }

    /// Returns the time in RFC 5322 format, for Debian's changelog.
    pub(super) fn mail_time(&self) -> String {
        const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let time = UtcDateTime::from_unix(self.time);
        let day = usize::try_from(self.time.div_euclid(86_400).rem_euclid(7)).unwrap_or_default();
        let month = usize::from(time.month()).saturating_sub(1);
        format!(
            "{}, {:02} {} {:04} {:02}:{:02}:{:02} +0000",
            DAYS.get(day).unwrap_or(&"Thu"),
            time.day(),
            MONTHS.get(month).unwrap_or(&"Jan"),
            time.year(),
            time.hour(),
            time.minute(),
            time.second()
        )
    }
}

/// Returns the version that a tool prints after `before`.
fn said_by(ws: &Workspace, tool: &str, args: &[&str], before: &str) -> String {
    let said = ws.tool(tool).args(args).quiet().capture().unwrap_or_default();
    let version = said.trim();
    let version = version.strip_prefix(before).unwrap_or(version);
    if version.is_empty() { "unknown".to_owned() } else { version.to_owned() }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::dist) fn sample() -> Source {
        Source {
            version: "0.1.0".to_owned(),
            commit: "0123456789ab".to_owned(),
            time: 1_700_000_000,
            compiler: "rustc 1.95.0".to_owned(),
            host: "x86_64-unknown-linux-gnu".to_owned(),
            compiler_commit: "0".repeat(40),
            gcc: "12.2.0".to_owned(),
            glibc: "2.36".to_owned(),
            mingw: "unknown".to_owned(),
        }
    }

    #[test]
    fn times_are_formatted() {
        assert_eq!(sample().iso_time(), "2023-11-14T22:13:20Z");
        assert_eq!(sample().mail_time(), "Tue, 14 Nov 2023 22:13:20 +0000");
        let first = Source { time: 0, ..sample() };
        assert_eq!(first.mail_time(), "Thu, 01 Jan 1970 00:00:00 +0000");
    }
}
