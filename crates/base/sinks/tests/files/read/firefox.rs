//! Reads what is written of a Firefox profile, and checks that its tables fit each other.

use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::Read;

/// A thread of a profile.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) name: String,
    pub(crate) weight_type: String,
    pub(crate) rows: Vec<Row>,
}

/// A row of the table of samples. Times are nanoseconds.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) time: u64,
    /// The outermost first; `None` where there is no sample.
    pub(crate) stack: Option<Vec<String>>,
    pub(crate) weight: u64,
    pub(crate) cpu: Option<u64>,
}

/// The whole file as JSON.
pub(crate) fn json(file: &[u8]) -> Value {
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).expect("the file is gzip");
    serde_json::from_str(&text).expect("the file is JSON")
}

pub(crate) fn read(file: &[u8]) -> Vec<Thread> {
    let profile = json(file);
    assert_eq!(profile["meta"]["preprocessedProfileVersion"], 55);
    let threads = list(&profile["threads"]);
    assert_eq!(threads.iter().filter(|thread| thread["isMainThread"] == true).count(), 1);
    let selected = profile["meta"]["initialSelectedThreads"][0].as_u64().expect("an index");
    assert!(selected < threads.len() as u64);
    let categories = list(&profile["meta"]["categories"]).len();
    threads.iter().map(|thread| read_thread(thread, categories)).collect()
}

fn read_thread(thread: &Value, categories: usize) -> Thread {
    for (name, table) in thread.as_object().expect("an object") {
        let Some(length) = table.get("length").map(index) else { continue };
        for (column, values) in table.as_object().expect("a table") {
            let fits = values.as_array().is_none_or(|values| values.len() == length);
            assert!(fits, "{name}.{column} has {length} values");
        }
    }
    let strings = list(&thread["stringArray"]);
    let below = |table: &str, column: &str, limit: usize| {
        assert!(list(&thread[table][column]).iter().all(|i| index(i) < limit), "{table}.{column}");
    };
    let length = |table: &str| index(&thread[table]["length"]);
    below("funcTable", "name", strings.len());
    below("frameTable", "func", length("funcTable"));
    below("frameTable", "category", categories);
    below("stackTable", "frame", length("frameTable"));
    let prefixes = list(&thread["stackTable"]["prefix"]);
    assert!(prefixes.iter().enumerate().all(|(i, prefix)| prefix.is_null() || index(prefix) < i));

    let frames = list(&thread["stackTable"]["frame"]);
    let stack_of = |mut at: usize| {
        let mut stack = Vec::new();
        loop {
            let function = index(&thread["frameTable"]["func"][index(&frames[at])]);
            let name = &strings[index(&thread["funcTable"]["name"][function])];
            stack.push(name.as_str().expect("a text").to_owned());
            if prefixes[at].is_null() {
                stack.reverse();
                return stack;
            }
            at = index(&prefixes[at]);
        }
    };
    let samples = &thread["samples"];
    let weight_type = samples["weightType"].as_str().expect("a text").to_owned();
    let rows = (0..length("samples")).map(|i| Row {
        time: nanoseconds(&samples["time"][i]),
        stack: samples["stack"][i].as_u64().map(|stack| stack_of(usize::try_from(stack).expect("small"))),
        weight: if weight_type == "tracing-ms" {
            nanoseconds(&samples["weight"][i])
        } else {
            samples["weight"][i].as_u64().expect("a number")
        },
        cpu: samples.get("threadCPUDelta").map(|deltas| deltas[i].as_u64().expect("a number")),
    });
    let rows: Vec<Row> = rows.collect();
    assert!(rows.iter().zip(rows.iter().skip(1)).all(|(row, next)| row.time <= next.time), "time goes on");
    Thread { name: thread["name"].as_str().expect("a name").to_owned(), weight_type, rows }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn index(value: &Value) -> usize {
    value.as_u64().and_then(|number| usize::try_from(number).ok()).expect("an index")
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
fn nanoseconds(milliseconds: &Value) -> u64 {
    (milliseconds.as_f64().expect("a number") * 1e6).round() as u64
}
