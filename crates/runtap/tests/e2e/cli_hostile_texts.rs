//! Texts of a recording that have an effect where they are displayed: terminal sequences, control characters,
//! bidirectional marks, commands of build servers, and terminators of strings in JSON or XML. No output passes them on,
//! and every output is valid in its format.

use std::fs;
use std::path::Path;

use quick_xml::Reader as XmlReader;
use quick_xml::events::Event as Xml;
use runtap_testkit::{Finished, Skip, shared_data};
use serde_json::Value;

use crate::common::{beside_others, folder, runtap};

/// Sequences that replace two UTF-16 units of a text.
const HOSTILE: [[u16; 2]; 11] = [
    [0x1b, b'[' as u16],
    [0x202e, 0x9b],
    [b'\n' as u16, b'\r' as u16],
    [0x85, 0x2028],
    [0x07, 0xd800],
    [b'<' as u16, b'"' as u16],
    [b'&' as u16, b'\'' as u16],
    [0xffff, 0xfeff],
    [b'#' as u16, b'#' as u16],
    [b';' as u16, b'\t' as u16],
    [b'\\' as u16, 0x200b],
];

/// Shorter runs of letters may not be texts, and are left unchanged.
const MIN_TEXT_LENGTH: usize = 6;

/// Inserts a hostile sequence into every text of these bytes, after its second letter.
fn make_hostile(bytes: &mut [u8], next: &mut usize) {
    let is_letter = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 2).is_some_and(|unit| unit[1] == 0 && (b' '..=b'~').contains(&unit[0]))
    };
    let mut at = 0;
    while at < bytes.len() {
        let letters = (0..bytes.len()).take_while(|n| is_letter(bytes, at + 2 * n)).count();
        if letters >= MIN_TEXT_LENGTH {
            let place = at + 4..at + 8;
            let units = HOSTILE[*next % HOSTILE.len()];
            bytes[place].copy_from_slice(&units.map(u16::to_le_bytes).concat());
            *next += 1;
        }
        at += (2 * letters).max(1);
    }
}

/// Returns a copy of a recording with hostile texts in the blocks of these names.
fn hostile_copy(recording: &[u8], blocks: &[&str]) -> Vec<u8> {
    let mut copy = recording.to_vec();
    let (mut next, mut changed) = (0, 0);
    for name in blocks {
        let name = [name.as_bytes(), &[6]].concat();
        let mut from = 0;
        while let Some(found) = copy[from..].windows(name.len()).position(|window| window == name) {
            let size_at = from + found + name.len();
            let size = u32::from_le_bytes(copy[size_at..size_at + 4].try_into().unwrap());
            let start = (size_at + 4).next_multiple_of(4);
            from = start + usize::try_from(size).unwrap();
            make_hostile(&mut copy[start..from], &mut next);
            changed += 1;
        }
    }
    assert!(changed > 1 && next > HOSTILE.len(), "{next} texts in {changed} blocks");
    copy
}

/// Returns whether a character has an effect when displayed. Deliberately not the product's list.
fn has_effect(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The syntax of an output.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Syntax {
    Text,
    Csv,
    Json,
    JsonLines,
    Svg,
}

#[track_caller]
fn judge(bytes: &[u8], syntax: Syntax, what: &str) {
    let text = str::from_utf8(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    let text = if syntax == Syntax::Csv { text.replace("\r\n", "\n") } else { text.to_owned() };
    if let Some((at, c)) = text.char_indices().find(|(_, c)| *c != '\n' && has_effect(*c)) {
        let before: String = text.get(..at).unwrap_or_default().chars().rev().take(60).collect();
        panic!("{what}: {c:?} behind {:?}", before.chars().rev().collect::<String>());
    }
    if let Some(at) = text.find("##") {
        let command: String = text.get(at..).unwrap_or_default().chars().take(40).collect();
        panic!("{what}: a command of a build server: {command:?}");
    }
    let json = |json: &str| match serde_json::from_str::<Value>(json) {
        Ok(_) => {}
        Err(error) => panic!("{what}: {error}: {json}"),
    };
    match syntax {
        Syntax::Json => json(&text),
        Syntax::JsonLines => text.lines().for_each(json),
        Syntax::Svg => {
            let mut reader = XmlReader::from_str(&text);
            loop {
                match reader.read_event() {
                    Ok(Xml::Eof) => break,
                    Ok(Xml::Start(element) | Xml::Empty(element)) => {
                        for attribute in element.attributes() {
                            let attribute = attribute.unwrap_or_else(|error| panic!("{what}: {error}"));
                            assert!(!attribute.value.contains(&b'<'), "{what}: {attribute:?}");
                        }
                    }
                    Ok(_) => {}
                    Err(error) => panic!("{what}: {error}"),
                }
            }
            let is_allowed = |c: char| !matches!(c, '\u{fffe}' | '\u{ffff}');
            assert!(text.chars().all(is_allowed), "{what}: no characters of XML");
        }
        Syntax::Text | Syntax::Csv => {}
    }
}

/// Checks the output of a command that succeeds or finds a recording to be partial.
#[track_caller]
fn judge_printed(words: &[&str], syntax: Syntax) -> Finished {
    let finished = runtap(words);
    assert!(matches!(finished.code(), Some(0 | 5)), "{words:?}: {finished}");
    judge(finished.text().as_bytes(), syntax, &format!("{words:?}"));
    judge(finished.stderr.as_bytes(), Syntax::Text, &format!("messages of {words:?}"));
    finished
}

/// Checks the output of `events` and `tail` in one of their formats.
#[track_caller]
pub(crate) fn judge_lines(printed: &str, format: &str) {
    let syntax = match format {
        "json" => Syntax::JsonLines,
        "document" => Syntax::Json,
        "csv" => Syntax::Csv,
        _ => Syntax::Text,
    };
    judge(printed.as_bytes(), syntax, format);
}

const REPORTS: [&str; 12] = [
    "cpu",
    "gc",
    "alloc",
    "exceptions",
    "contention",
    "jit",
    "threadpool",
    "http",
    "events",
    "loss",
    "counters",
    "logs",
];

/// Checks every command that prints events, or the structure, of a recording.
#[track_caller]
pub(crate) fn judge_events(file: &str) {
    for stacks in [&[][..], &["--stacks"]] {
        for (format, syntax) in [("json", Syntax::JsonLines), ("text", Syntax::Text), ("csv", Syntax::Csv)] {
            judge_printed(&[&["events", file, "--format", format], stacks].concat(), syntax);
        }
    }
    for (format, syntax) in [("json", Syntax::Json), ("text", Syntax::Text)] {
        for words in [
            &["events", file, "--count"][..],
            &["report", file, "events"],
            &["inspect", file],
            &["diff", file, file],
        ] {
            judge_printed(&[words, &["--format", format]].concat(), syntax);
        }
    }
}

/// Checks every command that summarizes or converts a recording.
#[track_caller]
pub(crate) fn judge_meaning(folder: &Path, file: &str) {
    for kind in REPORTS {
        judge_printed(&["report", file, kind], Syntax::Text);
        judge_printed(&["report", file, kind, "--format", "json"], Syntax::Json);
    }
    let mut written = 0;
    for (format, syntax) in [
        ("speedscope", Syntax::Json),
        ("chrome", Syntax::Json),
        ("folded", Syntax::Text),
        ("flamegraph", Syntax::Svg),
    ] {
        for view in ["thread-time", "alloc", "exceptions"] {
            let output = folder.join("output");
            let words = ["convert", file, "--to", format, "--view", view, "-o", output.to_str().unwrap()];
            let finished = runtap(words);
            judge(finished.stderr.as_bytes(), Syntax::Text, &format!("messages of {words:?}"));
            // Some recordings have no samples for a view, and some formats do not support a view.
            if matches!(finished.code(), Some(0 | 5)) {
                judge(&fs::read(&output).unwrap(), syntax, &format!("{words:?}"));
                fs::remove_file(&output).unwrap();
                written += 1;
            }
        }
    }
    assert!(written > 0 || !file.contains("spin"), "no file was written");
}

fn test(name: &str) -> Result<(), Skip> {
    let recording = shared_data(format!("nettrace/net10/{name}.nettrace.zst"))?;
    let folder = folder();
    let file = folder.path().join(format!("{name}.nettrace"));
    let path = file.to_str().unwrap();
    // The names of well-known providers are kept: the meaning of their events depends on them.
    fs::write(&file, hostile_copy(&recording, &["EventBlock"])).unwrap();
    judge_events(path);
    judge_meaning(folder.path(), path);
    fs::write(&file, hostile_copy(&recording, &["EventBlock", "MetadataBlock"])).unwrap();
    judge_events(path);
    Ok(())
}

macro_rules! recordings {
    ($($test:ident: $name:literal),+ $(,)?) => {$(
        #[test]
        fn $test() {
            let _machine = beside_others();
            if let Err(skip) = test($name) {
                skip.report();
            }
        }
    )+};
}

recordings!(
    texts_of_log_messages_do_not_act: "logs",
    texts_of_meters_do_not_act: "meters",
    texts_of_event_counters_do_not_act: "eventcounters",
    texts_of_allocations_and_exceptions_do_not_act: "allocs",
    texts_of_methods_do_not_act: "cpu-spin",
);
