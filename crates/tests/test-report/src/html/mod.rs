//! An HTML page in one file, which works offline.
//!
//! | on the page | from |
//! |---|---|
//! | headline, bar, counts | the run and the totals |
//! | notices | interruption; broken modules, with the end of their output |
//! | list | tests: failures, then failures in quarantine, flaky, skipped and passed ones |
//! | an opened test | exceptions, expected and actual, output, earlier attempts, traits, artifacts |
//! | modules | counts, time, exit code, messages, artifacts |
//!
//! The data is JSON in elements that browsers do not execute: first the index of the list, then the details of
//! [`CHUNK`] tests at a time, which the page parses when a test is opened. Texts of tests are only used as text nodes;
//! `<` never occurs in the data, and a content security policy allows only the page's own script and style, by their
//! hashes. `page.js` renders rows as they are scrolled into view. Omissions because of the size are marked on the page.

mod data;

use std::fmt::Write as _;
use std::io::{self, Write};

use sha2::{Digest as _, Sha256};

use crate::{Source, text, time};

/// The number of tests whose details are in one element.
pub const CHUNK: usize = 128;

const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");
const BODY: &str = include_str!("page.html");

/// Limits on the texts in the page, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The maximum size of a text of a test that passed or was skipped.
    pub passed: usize,
    /// The maximum size of a text of any other test.
    pub failed: usize,
    /// The maximum size of all texts together; failures come first.
    pub total: usize,
}

impl Default for Options {
    /// Returns limits of 2 KiB, 64 KiB and 32 MiB.
    fn default() -> Self {
        Self { passed: 2 << 10, failed: 64 << 10, total: 32 << 20 }
    }
}

/// Writes the page.
///
/// Returns errors of the writer and of the source.
pub fn write(source: &impl Source, mut w: impl Write, options: &Options) -> io::Result<()> {
    let run = source.run();
    let totals = source.all_totals()?;
    let title = if totals.failures() > 0 {
        format!("{} of {} failed", totals.failures(), text::plural(totals.total(), "test"))
    } else if run.interrupted.is_some() {
        "test run was interrupted".to_owned()
    } else if run.exit_code == 0 {
        format!("{} passed", text::plural(totals.passed, "test"))
    } else {
        format!("test run ended with {}", run.exit_code)
    };
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
        csp_hash(SCRIPT),
        csp_hash(STYLE)
    );
    write!(
        w,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"{} {}\">\n\
         <title>{} · {}</title>\n<style>{STYLE}</style>\n</head>\n{BODY}\n",
        escape(&run.runner),
        escape(&run.version),
        escape(&title),
        time::timestamp(run.started),
    )?;
    data::write(source, &mut w, options)?;
    writeln!(w, "<script>{SCRIPT}</script>\n</body>\n</html>")?;
    w.flush()
}

/// Returns the source expression of a content security policy that allows only this text.
fn csp_hash(text: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(text.as_bytes())))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let bits =
            group.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = (bits >> (18 - 6 * place) & 63) as usize;
            out.push(if place > group.len() { '=' } else { char::from(DIGITS[digit]) });
        }
    }
    out
}

fn escape(value: &str) -> String {
    let mut out = String::new();
    for c in text::line(value).chars() {
        match c {
            '<' | '>' | '&' | '"' | '\'' => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        let texts = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes())); // typos: on purpose
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }

    #[test]
    fn the_page_loads_nothing_from_outside() {
        for part in [SCRIPT, STYLE, BODY] {
            for word in ["http:", "https:", "@import", "url(", "innerHTML", "eval(", "</script", "</style"] {
                assert!(!part.contains(word), "{word}");
            }
        }
        assert!(!BODY.contains("style=") && !BODY.contains("onclick"), "the policy would block it");
    }
}
