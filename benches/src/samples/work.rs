//! Typical work of programs, in pieces of a few milliseconds.

use std::hint::black_box;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

/// Text that is compressed.
pub(super) struct Compress(Vec<u8>);

/// A document that is parsed, and serialized again.
pub(super) struct Parse(String);

impl Compress {
    pub(super) fn new() -> Self {
        Self(document().into_bytes())
    }

    pub(super) fn piece(&self) {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        // Writing to a vector never fails.
        let _ = encoder.write_all(&self.0);
        black_box(encoder.finish().map_or(0, |bytes| bytes.len()));
    }
}

impl Parse {
    pub(super) fn new() -> Self {
        Self(document())
    }

    pub(super) fn piece(&self) {
        let value: Result<Value, _> = serde_json::from_str(&self.0);
        black_box(value.map_or(0, |value| value.to_string().len()));
    }
}

/// Makes a document of distinct orders.
fn document() -> String {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let orders: Vec<Value> = (0..1_500)
        .map(|id| {
            let (a, b) = (next(), next());
            json!({"id": id, "customer": format!("customer {:x}", a % 500), "price": b % 10_000,
                "paid": a % 3 == 0, "items": [a % 40, b % 40, {"name": format!("item {}", b % 90)}]})
        })
        .collect();
    Value::from(orders).to_string()
}
