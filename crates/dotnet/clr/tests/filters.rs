//! Filters: which events they select, and how they report errors.

use runtap_clr::payload::Decoder;
use runtap_clr::{Filter, FilterError, Record};
use runtap_nettrace::{
    EventToWrite, Field, FieldType, Metadata, Observe, Reader, StreamItem, TraceHeader, Uuid, Writer,
};
use runtap_wire::Writer as Bytes;

/// One event with a field of every type, 1.5 s after the start of the session.
fn stream() -> Vec<u8> {
    let mut writer = Writer::new(&TraceHeader::new(1_700_000_000_000_000_000, 0, 1_000_000_000));
    let mut metadata = Metadata::new("My.Source", 7, "Request");
    (metadata.level, metadata.keywords, metadata.version) = (3, 0xf000_0000_0001, 2);
    let pair = vec![Field::new("Key", FieldType::String), Field::new("Value", FieldType::String)];
    metadata.fields = vec![
        Field::new("n", FieldType::I32),
        Field::new("big", FieldType::U64),
        Field::new("real", FieldType::F64),
        Field::new("yes", FieldType::Bool),
        Field::new("path", FieldType::String),
        Field::new("two words", FieldType::String),
        Field::new("o", FieldType::Object(vec![Field::new("p", FieldType::I32)])),
        Field::new("Arguments", FieldType::Array(Box::new(FieldType::Object(pair)))),
        Field::new("n", FieldType::I32),
    ];
    let metadata_id = writer.define_event(&metadata).unwrap();
    let mut w = Bytes::new();
    w.i32(-5).u64(u64::MAX).f64(2.5).u32(1).utf16z("/Api/Items").utf16z("x").i32(9);
    w.u16(2).utf16z("http.method").utf16z("GET").utf16z("n").utf16z("7").i32(6);
    let event = EventToWrite {
        metadata_id,
        thread_id: 42,
        capture_thread_id: 1,
        timestamp: 1_500_000_000,
        activity_id: Some(Uuid::from_u128(0xab)),
        payload: w.as_bytes(),
        ..Default::default()
    };
    writer.event(&event).unwrap();
    writer.finish()
}

fn matches(filter: &str) -> bool {
    let filter: Filter = filter.parse().unwrap_or_else(|error| panic!("{filter}: {error}"));
    let (mut reader, mut decoder, mut header) = (Reader::new(), Decoder::new(), None);
    reader.feed(&stream());
    reader.finish();
    let mut found = None;
    while let Some(item) = reader.next().unwrap() {
        match &item {
            StreamItem::Header(h) => {
                header = Some((*h).clone());
                decoder.item(&item);
            }
            StreamItem::Event(event) => {
                let record =
                    Record { header: header.as_ref().unwrap(), event, payload: decoder.payload(event) };
                let frames = ["app!Main()".to_owned(), "app!Work(int32)".to_owned()];
                assert!(found.replace(filter.matches(&record, &frames)).is_none(), "one event");
            }
            item => decoder.item(item),
        }
    }
    found.unwrap()
}

#[test]
fn comparisons() {
    for yes in [
        "provider = My.Source",
        "provider == 'My.Source'",
        "name ~ ^Req",
        "name != Other",
        "id = 7",
        "id = 0x7",
        "id >= 7 and id <= 7",
        "level = warning",
        "level < Informational",
        "version > 1.5",
        "keywords = 0xf00000000001",
        "ts_ns = 1500000000",
        "ts_ns > 1.4e9",
        "time = 2023-11-14T22:13:21.500000000Z",
        "time > 2023-11-14 and time < 2023-11-15",
        "thread = 42",
        "capture_thread=1",
        "opcode = null",
        "activity = 00000000-0000-0000-0000-0000000000ab",
        "activity != null",
        "related_activity = null",
        "payload.n = -5",
        "payload.n < 0",
        "payload.n_2 = 6",
        "payload.n != 5",
        "payload.n != five",
        "payload.big = 18446744073709551615",
        "payload.big > 0xfffffffffffffffe",
        "payload.real = 2.5",
        "payload.real < 3",
        "payload.yes = true",
        "payload.yes != False",
        "payload.path = /Api/Items",
        "payload.path ~ '^/Api/[A-Z]'",
        "payload.path ~ '(?i)items$'",
        "payload.\"two words\" = x",
        "payload.o.p = 9",
        "payload.o != null",
        "payload.Arguments.http.method = GET",
        "payload.Arguments.n >= 7",
        "payload.missing = null",
        "not payload.missing = 1",
        "stack ~ Work",
        "stack = 'app!Main()'",
        "id=7 and(level=3 or level=4)and not(name=x)",
        "id = 1 or id = 2 and id = 3 or id = 7",
        "NOT id = 1 AND id = 7",
        "name = Request and payload.path != null",
    ] {
        assert!(matches(yes), "{yes}");
        assert!(!matches(&format!("not ({yes})")), "not ({yes})");
    }
    for no in [
        "provider = my.source",
        "payload.missing = 1",
        "payload.missing != 1",
        "payload.missing ~ .",
        "payload.missing != null",
        "payload.n = five",
        "payload.n > five",
        "payload.o = 9",
        "payload.big = 18446744073709551614",
        "stack ~ Sleep",
        "id = 7 and id = 8 or id = 9",
        "not not id = 8",
    ] {
        assert!(!matches(no), "{no}");
    }
}

#[test]
fn errors_have_a_message_and_a_position() {
    for (filter, marked, said) in [
        ("", ">>><<<", "expected a field, but the filter ends (column 1)"),
        ("provder = X", ">>>provder<<< = X", "unknown field 'provder'; did you mean 'provider'? (column 1)"),
        ("id = 1 and payload. = 2", "id = 1 and >>>payload.<<< = 2", "unknown field 'payload.'"),
        ("colour = 1", ">>>colour<<< = 1", "valid fields: ts_ns, time, provider"),
        ("id 7", "id >>>7<<<", "expected an operator (= != < <= > >= ~), found '7' (column 4)"),
        (
            "id =",
            "id =>>><<<",
            "expected a value (quote it if it contains any of ()=<>!~), but the filter ends (column 5)",
        ),
        ("id = = 7", "id = >>>=<<< 7", "of ()=<>!~), found '='"),
        ("(id = 7", "(id = 7>>><<<", "expected 'and', 'or' or ')', but the filter ends"),
        ("id = 7)", "id = 7>>>)<<<", "expected 'and' or 'or', found ')'"),
        ("id = 7 id = 8", "id = 7 >>>id<<< = 8", "expected 'and' or 'or', found 'id'"),
        ("name = 'x", "name = >>>'x<<<", "missing closing '"),
        ("!id = 7", ">>>!<<<id = 7", "use 'not'"),
        ("id = seven", "id = >>>seven<<<", "'id' is a number, but 'seven' is not"),
        ("level > louder", "level > >>>louder<<<", "'level' is a number"),
        ("name < null", "name < >>>null<<<", "null can't be compared"),
        ("name ~ '['", "name ~ >>>'['<<<", "invalid regular expression '['"),
        ("name = ü and idd = 1", "name = ü and >>>idd<<< = 1", "did you mean 'id'? (column 14)"),
        ("name = x or", "name = x or>>><<<", "expected a field"),
    ] {
        let error = filter.parse::<Filter>().unwrap_err();
        assert_eq!(mark(&error), marked);
        assert!(error.to_string().contains(said), "{error}");
    }
    let deep = "(".repeat(5000) + "id = 1";
    assert!(deep.parse::<Filter>().unwrap_err().to_string().contains("fewer parentheses"));
    let deep = "not ".repeat(5000) + "id = 1";
    assert!(deep.parse::<Filter>().is_err());
}

proptest::proptest! {
    #[test]
    fn any_text_is_a_filter_or_an_error_with_a_position(text in "[a-z_.=!<>~()'\" ü\\\\0-9]{0,40}") {
        if let Err(error) = text.parse::<Filter>() {
            let marked = mark(&error);
            proptest::prop_assert_eq!(marked.replace(">>>", "").replace("<<<", ""), text.replace(">>>", "").replace("<<<", ""));
        }
    }
}

/// Returns the text with the invalid word marked: `provider >>>is<<< X`.
fn mark(error: &FilterError) -> String {
    let (before, wrong) = error.text.split_at(error.offset);
    let (wrong, after) = wrong.split_at(error.length);
    format!("{before}>>>{wrong}<<<{after}")
}
