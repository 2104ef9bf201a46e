//! Reads what is written of a pprof profile, and checks the rules that its readers check.

use super::wire::{Field, fields, packed};
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::io::Read;

/// The content of a profile.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    /// Type and unit of each value.
    pub(crate) types: Vec<(String, String)>,
    pub(crate) default_type: String,
    /// Its type is empty where there is none.
    pub(crate) period: (String, u64),
    pub(crate) start_ns: u64,
    pub(crate) duration_ns: u64,
    pub(crate) comments: Vec<String>,
    pub(crate) mappings: Vec<String>,
    /// File and line of each location; empty and 0 where they are not known.
    pub(crate) places: Vec<(String, u64)>,
    pub(crate) samples: Vec<Sample>,
}

#[derive(Debug)]
pub(crate) struct Sample {
    /// The innermost first.
    pub(crate) stack: Vec<String>,
    pub(crate) values: Vec<u64>,
    pub(crate) labels: BTreeMap<String, Label>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Label {
    Text(String),
    Number(u64),
}

impl Sample {
    pub(crate) fn text(&self, key: &str) -> &str {
        let Label::Text(text) = &self.labels[key] else { panic!("{key} is a number") };
        text
    }
}

pub(crate) fn read(file: &[u8]) -> Profile {
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).expect("the file is gzip");
    let all = fields(&bytes);
    let each = |wanted| all.iter().filter(move |(number, _)| *number == wanted).map(|(_, field)| *field);
    let texts: Vec<&str> = each(6).map(Field::text).collect();
    assert_eq!(texts.first(), Some(&""), "text 0 is empty");
    let text = |index: u64| texts[usize::try_from(index).expect("small")].to_owned();
    let number = |wanted| each(wanted).next().map_or(0, Field::number);
    let get =
        |message: &BTreeMap<u64, Field<'_>>, wanted: u64| message.get(&wanted).map_or(0, |f| f.number());
    let value_type = |field: Field<'_>| {
        let message: BTreeMap<_, _> = fields(field.bytes()).into_iter().collect();
        (text(get(&message, 1)), text(get(&message, 2)))
    };

    let by_id = |wanted| {
        let mut map = BTreeMap::new();
        for field in each(wanted) {
            let message: BTreeMap<_, _> = fields(field.bytes()).into_iter().collect();
            let id = get(&message, 1);
            assert_ne!(id, 0, "0 is no id");
            assert!(map.insert(id, message).is_none(), "an id is used once");
        }
        map
    };
    let (mappings, locations, functions) = (by_id(3), by_id(4), by_id(5));
    let name = |location: u64| {
        let location = &locations[&location];
        let mapping = get(location, 2);
        assert!(mapping == 0 || mappings.contains_key(&mapping), "the mapping is there");
        let line: BTreeMap<_, _> = fields(location[&4].bytes()).into_iter().collect();
        let function = &functions[&get(&line, 1)];
        let (name, system_name) = (text(get(function, 2)), text(get(function, 3)));
        assert!(name.ends_with(&system_name) && name != system_name, "{name} is final");
        if let Some((module, _)) =
            name.split_once('!').filter(|(module, _)| !module.is_empty() && *module != "?")
            && mapping != 0
        {
            assert!(text(get(&mappings[&mapping], 5)).starts_with(module), "{name} is in its module");
        }
        name
    };

    let place = |location: &BTreeMap<u64, Field<'_>>| {
        let line: BTreeMap<_, _> = fields(location[&4].bytes()).into_iter().collect();
        (text(get(&functions[&get(&line, 1)], 4)), get(&line, 2))
    };

    let mut samples = Vec::new();
    for field in each(2) {
        let mut sample = Sample { stack: Vec::new(), values: Vec::new(), labels: BTreeMap::new() };
        for (number, field) in fields(field.bytes()) {
            match number {
                1 => sample.stack = packed(field).into_iter().map(name).collect(),
                2 => sample.values = packed(field),
                3 => {
                    let label: BTreeMap<_, _> = fields(field.bytes()).into_iter().collect();
                    let value = match label.get(&2) {
                        Some(index) => Label::Text(text(index.number())),
                        None => Label::Number(get(&label, 3)),
                    };
                    assert_eq!(sample.labels.insert(text(get(&label, 1)), value), None);
                }
                other => panic!("no such field: {other}"),
            }
        }
        samples.push(sample);
    }
    let types: Vec<_> = each(1).map(value_type).collect();
    assert!(samples.iter().all(|s| s.values.len() == types.len()));
    Profile {
        types,
        default_type: text(number(14)),
        period: (each(11).next().map(|field| value_type(field).0).unwrap_or_default(), number(12)),
        start_ns: number(9),
        duration_ns: number(10),
        comments: each(13).flat_map(packed).map(text).collect(),
        places: locations.values().map(place).collect(),
        mappings: mappings.values().map(|mapping| text(get(mapping, 5))).collect(),
        samples,
    }
}
