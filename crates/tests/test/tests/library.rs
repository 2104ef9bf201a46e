//! Filters on the tests that real frameworks have discovered: three applications with the same books, recorded.

use std::borrow::Cow;

use runtap_test::plan::{Filter, Test};
use runtap_testkit::{Skip, require, shared_data};
use serde_json::Value;

/// The tests of a recorded discovery.
fn discovered(application: &str) -> Result<Vec<Test<'static>>, Skip> {
    let bytes = shared_data(format!("mtp/transcripts/{application}.list-ide.jsonl"))?;
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let entries = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
    let messages = entries.filter(|entry| entry["name"] == "DiscoveredTestMessages");
    let tests = messages.flat_map(|message| {
        let list = field(&message["fields"], "DiscoveredTestMessageList").unwrap();
        list.as_array().unwrap().iter().map(test).collect::<Vec<_>>()
    });
    Ok(tests.collect())
}

/// A field of a message: each is a list of number, name and value.
fn field(fields: &Value, name: &str) -> Option<Value> {
    fields.as_array().unwrap().iter().find(|field| field[1] == name).map(|field| field[2].clone())
}

fn test(fields: &Value) -> Test<'static> {
    let text = |name| field(fields, name).map(|value| Cow::Owned(value.as_str().unwrap().to_owned()));
    let traits = field(fields, "Traits").unwrap_or_else(|| Value::Array(Vec::new()));
    let of_trait = |one: &Value, name| Cow::Owned(field(one, name).unwrap().as_str().unwrap().to_owned());
    Test {
        namespace: text("Namespace"),
        class: text("TypeName"),
        method: text("MethodName"),
        traits: traits
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (of_trait(one, "Key"), of_trait(one, "Value")))
            .collect(),
        file: text("FilePath"),
        ..Test::new(text("Uid").unwrap(), text("DisplayName").unwrap())
    }
}

#[track_caller]
fn selects(tests: &[Test<'_>], filter: &str, expected: usize) {
    let parsed: Filter = filter.parse().unwrap();
    let found: Vec<&str> = tests.iter().filter(|test| parsed.matches(test)).map(|test| &*test.name).collect();
    assert_eq!(found.len(), expected, "{filter}: {found:?}");
}

/// What selects the same tests, whatever the framework calls things.
fn common(tests: &[Test<'_>]) {
    selects(tests, "category = slow", 1);
    selects(tests, "TestCategory=SLOW&FullyQualifiedName~IsCatalogued", 1);
    selects(tests, "category = io and not category = slow", 0);
    selects(tests, "class = Library.Desk.Outer+Inner", 1);
    selects(tests, "FullyQualifiedName=Library.Shelves.BookTests.HasTitle", 1);
    selects(tests, "iscatalogued", 1);
    selects(tests, "namespace = Library.Desk or namespace = Library.Shelves", tests.len());
}

#[test]
fn mstest() {
    let tests = require!(discovered("library-mstest-4.5.2"));
    assert_eq!(tests.len(), 30);
    common(&tests);
    selects(&tests, "class = ShelfTests", 9);
    // MSTest 4.5 tells the argument of [TestMethod("…")] as the file of that test.
    selects(&tests, "file = Library.cs", 29);
    selects(&tests, "Priority=2|trait[shelf] = B12", 2);
    selects(&tests, "name ~ '^Divides \\('", 3);
    selects(&tests, r"DisplayName~divides \(", 3);
    selects(&tests, "größe", 1);
}

#[test]
fn nunit() {
    let tests = require!(discovered("library-nunit-5.0.0"));
    assert_eq!(tests.len(), 41);
    common(&tests);
    selects(&tests, "class = ShelfTests", 18);
    selects(&tests, "class = 'ShelfTests(\"oak\")'", 9);
    selects(&tests, "file ~ ''", 0);
    selects(&tests, "category = Explicit", 1);
}

#[test]
fn xunit() {
    let tests = require!(discovered("library-xunit-3.2.2"));
    assert_eq!(tests.len(), 28);
    common(&tests);
    selects(&tests, "class = ShelfTests", 9);
    selects(&tests, "trait[owner] = ann and trait[Category] = io", 1);
    selects(&tests, "method = Holds", 3);
    selects(&tests, "📚", 2);
}
