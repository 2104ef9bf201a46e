//! Compares every file made from a recording byte by byte, so that any change is noticed: two recordings of the
//! original agents that are small enough to read. Compressed files are unpacked, binary ones shown in hexadecimal; the
//! SVG's script, which is inferno's, is omitted. `INSTA_UPDATE=always` updates the snapshots.

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use runtap_testkit::{Skip, require, shared_data, shared_dir};

use crate::common::{folder, runtap};

/// Returns the path of a recording of the original agents.
fn recording(name: &str) -> Result<String, Skip> {
    shared_data(format!("bytefrog/{name}.json"))?;
    let path = shared_dir().expect("it was read").join("data/bytefrog").join(name);
    Ok(path.display().to_string())
}

/// Returns the output of `jvm report` on a recording with these arguments.
fn report_of(recording: &str, words: &[&str]) -> Vec<u8> {
    let folder = folder();
    let file: PathBuf = folder.path().join("made");
    let target = file.to_str().unwrap();
    let words: Vec<String> = words.iter().map(|word| word.replace("FILE", target)).collect();
    let all = ["jvm", "report", recording].into_iter().map(str::to_owned).chain(words);
    runtap(all).expect_code(0);
    fs::read(file).unwrap()
}

/// Converts an output to text that can be compared and read.
fn shown(bytes: Vec<u8>) -> String {
    let mut plain = Vec::new();
    if GzDecoder::new(&bytes[..]).read_to_end(&mut plain).is_err() {
        plain = bytes;
    }
    match String::from_utf8(plain) {
        Ok(text) if !text.contains('\0') => unversioned(&text),
        Ok(text) => hexadecimal(text.as_bytes()),
        Err(error) => hexadecimal(error.as_bytes()),
    }
}

/// Removes values that change with each version of the program, or with each run.
fn unversioned(text: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = text
        .replace(&format!("runtap {version}"), "runtap VERSION")
        .replace(&format!("version=\"{version}\" timestamp="), "version=\"VERSION\" timestamp=");
    for (from, until, instead) in
        [("timestamp=\"", "\"", "TIME"), ("<style", "</style>", ""), ("<script", "</script>", "")]
    {
        if let Some(begin) = text.find(from).map(|at| at + from.len())
            && let Some(size) = text.get(begin..).and_then(|rest| rest.find(until))
        {
            text.replace_range(begin..begin + size, instead);
        }
    }
    text
}

/// Formats 32 bytes per line, with their printable characters.
fn hexadecimal(bytes: &[u8]) -> String {
    let row = |row: &[u8]| {
        let mut hex = String::new();
        for byte in row {
            write!(hex, "{byte:02x}").unwrap();
        }
        let text: String =
            row.iter().map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' }).collect();
        format!("{hex:<64} {text}\n")
    };
    bytes.chunks(32).map(row).collect()
}

#[test]
fn files_for_viewers_to_the_byte() {
    let recording = require!(recording("v1_lambda"));
    for format in ["speedscope", "folded", "flamegraph", "pprof", "chrome", "perfetto", "firefox"] {
        let of = |view| shown(report_of(&recording, &["--to", format, "--view", view, "-o", "FILE"]));
        insta::assert_snapshot!(format!("jvm-{format}-time"), of("time"));
        if ["speedscope", "folded", "flamegraph", "pprof"].contains(&format) {
            insta::assert_snapshot!(format!("jvm-{format}-calls"), of("calls"));
        }
    }
}

/// Of version 4, which has line visits.
#[test]
fn coverage_files_to_the_byte() {
    let recording = require!(recording("v4_suspend"));
    for format in ["lcov", "jacoco", "cobertura"] {
        let file = shown(report_of(&recording, &["--coverage", &format!("{format}=FILE")]));
        insta::assert_snapshot!(format!("jvm-{format}"), file);
    }
}
