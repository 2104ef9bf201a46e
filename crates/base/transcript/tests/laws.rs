//! Properties of the format: written entries can be read in any pieces, and every prefix of a transcript is a transcript.

use proptest::collection::vec;
use proptest::prelude::*;
use runtap_transcript::{
    Close, Decoder, Entry, Error, Exit, Field, Frame, Header, Limits, Located, More, Open, Problem, Reader,
    Writer,
};
use serde_json::Value;

fn time() -> impl Strategy<Value = f64> {
    // As written: whole microseconds.
    (0u64..1 << 50).prop_map(|micros| runtap_transcript::seconds(std::time::Duration::from_micros(micros)))
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| vec(inner, 0..3).prop_map(Value::from))
}

fn more() -> impl Strategy<Value = More> {
    vec(("x_[a-z]{1,4}", value()), 0..3).prop_map(|pairs| pairs.into_iter().collect())
}

fn maybe<T: std::fmt::Debug>(inner: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    proptest::option::of(inner)
}

fn entry() -> impl Strategy<Value = Entry> {
    let field = (any::<i64>(), ".{0,6}", value()).prop_map(|(id, name, value)| Field { id, name, value });
    prop_oneof![
        (time(), maybe(".{0,6}"), maybe(vec(".{0,6}", 0..3)), more())
            .prop_map(|(t, role, cmd, more)| Entry::Header(Header { t, role, cmd, more })),
        (time(), ".{0,6}", more()).prop_map(|(t, conn, more)| Entry::Open(Open { t, conn, more })),
        (
            (time(), ".{0,6}", "[a-z]{3}", maybe(any::<i64>())),
            (maybe(".{0,6}"), maybe(vec(any::<u8>(), 0..40)), maybe(vec(field, 0..3)), more())
        )
            .prop_map(|((t, conn, dir, id), (name, hex, fields, more))| {
                Entry::Frame(Frame { t, conn, dir, id, name, hex, fields, more })
            }),
        (time(), ".{0,6}", maybe(".{0,6}"), maybe(".{0,6}"), more())
            .prop_map(|(t, conn, side, error, more)| Entry::Close(Close { t, conn, side, error, more })),
        (time(), maybe(any::<i64>()), more()).prop_map(|(t, code, more)| Entry::Exit(Exit { t, code, more })),
        ("x[a-z-]{0,6}", more()).prop_map(|(kind, more)| Entry::Other { kind, more }),
    ]
}

fn written(entries: &[Entry]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    for entry in entries {
        writer.write(entry).unwrap();
    }
    writer.into_inner()
}

/// Returns all entries, and whether the last line was incomplete.
fn in_pieces(bytes: &[u8], step: usize) -> (Vec<Entry>, bool) {
    let (mut decoder, mut entries) = (Decoder::default(), Vec::new());
    for piece in bytes.chunks(step.max(1)) {
        decoder.feed(piece);
        while let Some(Located { line, entry, .. }) = decoder.poll().unwrap() {
            entries.push(entry);
            assert_eq!(line, entries.len() as u64);
        }
    }
    let last = decoder.finish().unwrap();
    let cut = last.is_err();
    entries.extend(last.ok().flatten().map(|located| located.entry));
    (entries, cut)
}

proptest! {
    #[test]
    fn written_entries_can_be_read_in_any_pieces(entries in vec(entry(), 0..6), step in 1usize..200) {
        let bytes = written(&entries);
        prop_assert_eq!(in_pieces(&bytes, bytes.len()), (entries.clone(), false));
        prop_assert_eq!(in_pieces(&bytes, step), (entries, false));
    }

    #[test]
    fn a_prefix_is_a_transcript_with_an_incomplete_last_line(entries in vec(entry(), 1..5), at in any::<prop::sample::Index>()) {
        let bytes = written(&entries);
        let at = at.index(bytes.len());
        let beginning = &bytes[..at];
        let complete_lines = beginning.split(|byte| *byte == b'\n').count() - 1;
        let (read, cut) = in_pieces(beginning, 7);
        let has_partial_line = beginning.last().is_some_and(|byte| *byte != b'\n');
        // A line that lacks only its line feed is complete.
        let complete = has_partial_line && bytes[at] == b'\n';
        prop_assert_eq!(&read[..], &entries[..complete_lines + usize::from(complete)]);
        prop_assert_eq!(cut, has_partial_line && !complete);
    }

    #[test]
    fn arbitrary_input_neither_panics_nor_is_skipped(bytes in vec(any::<u8>(), 0..300), step in 1usize..50) {
        let (mut decoder, mut lines) = (Decoder::new(Limits { line: 100, total: 250, values: 20, ..Limits::default() }), 0);
        for piece in bytes.chunks(step) {
            decoder.feed(piece);
            loop {
                match decoder.poll() {
                    Ok(Some(located)) => {
                        prop_assert!(located.line > lines);
                        lines = located.line;
                    }
                    Ok(None) => break,
                    Err(
                        Error::Line { line, problem: Problem::TooLong { .. } } | Error::TooMuch { line, .. },
                    ) => {
                        prop_assert!(line > lines);
                        return Ok(());
                    }
                    Err(Error::Line { line, .. }) => {
                        prop_assert!(line > lines);
                        lines = line;
                    }
                    Err(other) => prop_assert!(false, "{other}"),
                }
            }
        }
        let _ = decoder.finish();
    }
}

#[test]
fn golden_lines() {
    let lines = concat!(
        r#"{"kind":"header","t":0.0,"role":"recorder","cmd":["a","b"],"protocol":"diagnostic-ipc"}"#,
        "\n",
        r#"{"kind":"open","t":0.5,"conn":"c1"}"#,
        "\n",
        r#"{"kind":"frame","t":0.500031,"conn":"c1","dir":"c2r","id":1024,"name":"ProcessInfo","hex":"444f","fields":[[0,"pid",7]],"note":null}"#,
        "\n",
        r#"{"kind":"close","t":1.25,"conn":"c1","side":"runtime","error":"reset"}"#,
        "\n",
        r#"{"kind":"exit","t":2.0,"code":-9}"#,
        "\n",
        r#"{"kind":"closed-by-server","conn":"c1"}"#,
        "\n",
    );
    let entries: Vec<Entry> = Reader::new(lines.as_bytes()).map(|located| located.unwrap().entry).collect();
    assert_eq!(
        entries[2],
        Entry::Frame(Frame {
            t: 0.500_031,
            conn: "c1".into(),
            dir: "c2r".into(),
            id: Some(1024),
            name: Some("ProcessInfo".into()),
            hex: Some(b"DO".to_vec()),
            fields: Some(vec![Field { id: 0, name: "pid".into(), value: 7.into() }]),
            more: [("note".to_owned(), Value::Null)].into_iter().collect(),
        })
    );
    assert_eq!(entries[5].kind(), "closed-by-server");
    assert_eq!(String::from_utf8(written(&entries)).unwrap(), lines);
}

#[test]
fn errors_have_the_line_and_the_field() {
    let first_error = |text: &str| {
        let error = Reader::new(text.as_bytes()).find_map(Result::err).expect(text);
        error.to_string()
    };
    let cases = [
        ("{\"kind\":\"exit\",\"t\":1}\n{}\n", "line 2: field 'kind': is missing"),
        ("\n\n{\"kind\":\"open\",\"t\":1}\n", "line 3: field 'conn': is missing"),
        (
            "{\"kind\":\"open\",\"t\":-1,\"conn\":\"c\"}\n",
            "line 1: field 't': is another number, not a time in seconds",
        ),
        ("{\"kind\":\"exit\",\"t\":1,\"code\":\"x\"}\n", "line 1: field 'code': is a string, not an integer"),
        (
            "{\"kind\":\"frame\",\"t\":1,\"conn\":\"c\",\"dir\":\"c2r\",\"hex\":\"00q0\"}\n",
            "line 1: field 'hex': is not an even number of hexadecimal digits (the first 2 are valid)",
        ),
        (
            "{\"kind\":\"frame\",\"t\":1,\"conn\":\"c\",\"dir\":\"c2r\",\"fields\":[[0,\"a\"]]}\n",
            "line 1: field 'fields': is another list, not a list of [number, name, value]",
        ),
        ("[1]\n", "line 1: not a JSON object: invalid type: sequence, expected a map"),
        ("{\"kind\":\"exit\" 1}\n", "line 1: not a JSON object: expected `,` or `}` at column 16"),
        ("{\"kind\":7,\"t\":1}", "line 1: field 'kind': is another number, not a string"),
    ];
    for (text, expected) in cases {
        assert_eq!(first_error(text), expected, "{text}");
    }
}

#[test]
fn limits_are_checked_before_memory_is_allocated() {
    let mut decoder = Decoder::new(Limits { line: 10, total: 1000, ..Limits::default() });
    decoder.feed(&[b' '; 11]);
    assert_eq!(decoder.poll().unwrap_err().to_string(), "line 1: is longer than 10 bytes");
    let endless = std::io::repeat(b'\n');
    let mut reader = Reader::with_limits(endless, Limits { line: 10, total: 100_000, ..Limits::default() });
    let error = std::iter::from_fn(|| reader.next()).find_map(Result::err).unwrap();
    assert!(error.to_string().ends_with("the transcript has more than 100000 bytes"), "{error}");
    assert!(reader.next().is_none());
}

/// A value of two bytes may take hundreds of bytes in memory, so the number of values has its own limit.
#[test]
fn a_line_of_many_small_values_is_rejected_before_it_is_parsed() {
    let line = |values: &str| format!("{{\"kind\":\"x\",\"more\":[{values}]}}\n");
    let read = |text: &str, values| {
        let mut decoder = Decoder::new(Limits { values, ..Limits::default() });
        decoder.feed(text.as_bytes());
        decoder.poll().map(|found| found.is_some()).map_err(|error| error.to_string())
    };
    // Counts the line itself, the kind, the list, and its elements.
    let objects = line("{},{},{}");
    assert_eq!(read(&objects, 10), Ok(true));
    assert_eq!(read(&objects, 5), Err("line 1: has more than 5 values".to_owned()));
    // Characters within a string do not count.
    assert_eq!(read(&line(r#""a,b[{\",{,[,\\""#), 5), Ok(true));
    // The last line has no line feed, and is not parsed either.
    let mut decoder = Decoder::new(Limits { values: 5, ..Limits::default() });
    decoder.feed(objects.trim_end().as_bytes());
    assert!(matches!(decoder.poll(), Ok(None)));
    let error = decoder.finish().unwrap_err();
    assert_eq!(error.to_string(), "line 1: has more than 5 values");
    // The default limit rejects megabytes of values but accepts a message with a large environment.
    let many = |number: usize| line(&vec!["[]"; number].join(","));
    let mut reader = Reader::new(std::io::Cursor::new(many(1 << 20)));
    assert!(reader.read().unwrap_err().to_string().ends_with("has more than 131072 values"));
    assert!(Reader::new(std::io::Cursor::new(many(20_000))).read().unwrap().is_some());
}

/// A writer that accepts only a limited number of bytes.
struct Small(Vec<u8>, usize);

impl std::io::Write for Small {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = self.1.saturating_sub(self.0.len()).min(bytes.len());
        self.0.extend_from_slice(&bytes[..room]);
        Ok(room)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_leaves_a_readable_transcript() {
    let entry = Entry::Open(Open { t: 1.0, conn: "c1".into(), more: More::new() });
    let line = entry.to_line().len();
    let mut writer = Writer::new(Small(Vec::new(), line + 5));
    writer.write(&entry).unwrap();
    assert!(matches!(writer.write(&entry), Err(Error::Io(_))));
    // No line follows an incomplete one, even if there is space again.
    assert!(matches!(writer.write(&entry), Err(Error::Broken)));
    let bytes = writer.into_inner().0;
    let mut reader = Reader::new(&bytes[..]);
    assert_eq!(reader.next().unwrap().unwrap().entry, entry);
    assert!(reader.next().is_none());
    let cut = reader.cut().unwrap();
    assert_eq!((cut.line, cut.offset, cut.bytes), (2, line as u64, 5));
}

#[cfg(unix)]
#[test]
fn a_file_is_private_and_appears_immediately() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.jsonl");
    let (file, made) = runtap_transcript::create(&path).unwrap();
    assert_eq!(made, path);
    let mut writer = Writer::new(file);
    let entry = Entry::Exit(Exit { t: 0.5, code: Some(0), more: More::new() });
    writer.write(&entry).unwrap();
    // While it is still open for writing.
    assert_eq!(std::fs::read(&path).unwrap(), entry.to_line());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}
