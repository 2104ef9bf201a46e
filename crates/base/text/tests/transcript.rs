//! How recorded conversations are shown.

use runtap_text::document::{DifferenceRow, ExchangeRow, RecordDocument, ReplayDocument};
use runtap_text::{Print, TextOptions, TranscriptRow, TranscriptText};
use serde_json::{Value, json};

fn row(line: u64, conn: &str, kind: &str, fields: Vec<(&str, Value)>) -> TranscriptRow {
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    TranscriptRow {
        line,
        t: Some(0.5),
        conn: Some(conn.to_owned()),
        kind: kind.to_owned(),
        fields,
        ..TranscriptRow::default()
    }
}

fn part(line: u64, conn: &str, bytes: u64) -> TranscriptRow {
    let file = Some(format!("t.jsonl.{conn}.nettrace"));
    TranscriptRow {
        dir: Some("r2c".into()),
        bytes: Some(bytes),
        file,
        name: Some("Stream".into()),
        ..row(line, conn, "stream", Vec::new())
    }
}

#[test]
fn a_message_is_a_line_and_its_fields_and_a_stream_is_one_line() {
    let mut text = TranscriptText::new(6);
    let request = TranscriptRow {
        dir: Some("c2r".into()),
        id: Some("0x0203".into()),
        name: Some("CollectTracing2".into()),
        bytes: Some(213),
        ..row(3, "c1", "request", vec![("buffer_mb", json!(256)), ("path", json!("a\u{1b}[2J"))])
    };
    let rows = [
        row(2, "c1", "open", vec![("client_pid", json!(7))]),
        request,
        part(4, "c1", 100),
        row(5, "c2", "open", Vec::new()),
        part(6, "c2", 1),
        part(7, "c1", 50),
        row(8, "c1", "close", vec![("how", json!("closed"))]),
    ];
    let options = TextOptions::default();
    let mut shown: String = rows.into_iter().map(|row| text.row(row, &options)).collect();
    shown.push_str(&text.finish());
    assert_eq!(text.finish(), "");
    let indented = |line: &str| format!("{:46}{line}\n", "");
    let expected = [
        "     2     0.500000  c1                      open\n".to_owned(),
        indented("client_pid = 7"),
        "     3     0.500000  c1      c2r        213  request CollectTracing2 (0x0203)\n".to_owned(),
        indented("buffer_mb = 256"),
        // Nothing that a terminal would obey.
        indented("path = a\\u{1b}[2J"),
        "     5     0.500000  c2                      open\n".to_owned(),
        "     4     0.500000  c1      r2c        150  stream: 2 parts in t.jsonl.c1.nettrace\n".to_owned(),
        "     8     0.500000  c1                      close\n".to_owned(),
        indented("how = closed"),
        "     6     0.500000  c2      r2c          1  stream: 1 part in t.jsonl.c2.nettrace\n".to_owned(),
    ];
    assert_eq!(shown, expected.concat());
}

#[test]
fn fields_are_members_in_their_order() {
    let document = serde_json::to_string(&row(1, "c1", "reply", vec![("z", json!(1)), ("a", json!(null))]));
    assert!(document.unwrap().ends_with(r#""fields":{"z":1,"a":null}}"#));
}

#[test]
fn a_replay_shows_what_is_different() {
    let exchange = |verdict, differences, reason| ExchangeRow {
        conn: Some("c1".into()),
        line: Some(3),
        id: Some("0x0403".into()),
        name: Some("SetEnvironmentVariable"),
        verdict,
        differences,
        offset: Some(32),
        reason,
        bytes: Some(24),
        recorded_bytes: 24,
    };
    let difference = |field: &str, identity| DifferenceRow {
        field: field.to_owned(),
        recorded: Some(json!("x")),
        now: None,
        identity,
    };
    let exchanges = vec![
        exchange("differs", vec![difference("name", false), difference("process_id", true)], None),
        exchange("not-sent", Vec::new(), Some("it could crash a runtime".to_owned())),
    ];
    let document = ReplayDocument::new("t.jsonl".into(), "runtime", false, exchanges);
    let mut text = Vec::new();
    document.print(&mut text, &TextOptions::default()).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].ends_with("name: nothing was x; from byte 32 on"), "{text}");
    assert!(lines[2].ends_with("it could crash a runtime"), "{text}");
    let document = serde_json::to_value(&document).unwrap();
    assert_eq!((&document["schema"], &document["same"]), (&json!("runtap.replay/1"), &json!(false)));
}

#[test]
fn what_was_recorded_is_said_in_a_line() {
    let mut document = RecordDocument::new("t.jsonl".into(), vec!["t.jsonl.c1.nettrace".into()]);
    (document.connections, document.frames, document.bytes) = (1, 1200, 2048);
    assert_eq!(document.remark(), "t.jsonl: 1 connection, 1,200 messages and parts of streams, 2.0 kB");
    let document = serde_json::to_value(&document).unwrap();
    assert_eq!((&document["schema"], &document["partial"]), (&json!("runtap.record/1"), &json!(false)));
}
