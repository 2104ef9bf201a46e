//! A small reader of XML, and the content models of both DTDs.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// An element.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) children: Vec<Self>,
}

impl Element {
    pub(crate) fn read(xml: &str) -> Self {
        let mut reader = Reader::from_str(xml);
        let mut open = vec![Self::default()];
        loop {
            match reader.read_event().expect("well formed") {
                Event::Start(start) => open.push(Self::of(&start)),
                Event::Empty(start) => open.last_mut().unwrap().children.push(Self::of(&start)),
                Event::End(_) => {
                    let element = open.pop().unwrap();
                    open.last_mut().unwrap().children.push(element);
                }
                Event::Eof => break,
                _ => {}
            }
        }
        assert_eq!(open.len(), 1, "everything is closed");
        let mut roots = open.remove(0).children;
        assert_eq!(roots.len(), 1, "one root");
        roots.remove(0)
    }

    fn of(start: &BytesStart<'_>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let attributes = start.attributes().map(|attribute| {
            let attribute = attribute.unwrap();
            let value = text(&attribute.value);
            (text(attribute.key.as_ref()), quick_xml::escape::unescape(&value).unwrap().into_owned())
        });
        let (name, attributes) = (text(start.name().as_ref()), attributes.collect());
        Self { name, attributes, children: Vec::new() }
    }

    #[track_caller]
    pub(crate) fn get(&self, name: &str) -> &str {
        self.find(name).unwrap_or_else(|| panic!("{} has no {name}", self.name))
    }

    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    #[track_caller]
    pub(crate) fn one(&self, name: &str) -> &Self {
        self.children
            .iter()
            .find(|child| child.name == name)
            .unwrap_or_else(|| panic!("{} has no {name}", self.name))
    }

    /// Returns `missed covered` of a JaCoCo counter.
    pub(crate) fn counter(&self, kind: &str) -> Option<(u64, u64)> {
        let counter = self.all("counter").find(|counter| counter.get("type") == kind)?;
        Some((counter.get("missed").parse().unwrap(), counter.get("covered").parse().unwrap()))
    }
}

/// The rule of a DTD for an element: its children, as ordered groups; required attributes; optional attributes.
type Rule<'a> = (&'a str, &'a [&'a [&'a str]], &'a [&'a str], &'a [&'a str]);

/// JaCoCo DTD Report 1.1, without groups.
pub(crate) const JACOCO: &[Rule<'_>] = &[
    ("report", &[&["sessioninfo"], &["package"], &["counter"]], &["name"], &[]),
    ("package", &[&["class", "sourcefile"], &["counter"]], &["name"], &[]),
    ("class", &[&["method"], &["counter"]], &["name"], &["sourcefilename"]),
    ("method", &[&["counter"]], &["name", "desc"], &["line"]),
    ("sourcefile", &[&["line"], &["counter"]], &["name"], &[]),
    ("line", &[], &["nr"], &["mi", "ci", "mb", "cb"]),
    ("counter", &[], &["type", "missed", "covered"], &[]),
];

const RATES: [&str; 3] = ["line-rate", "branch-rate", "complexity"];

/// coverage-04.dtd, without conditions.
pub(crate) const COBERTURA: &[Rule<'_>] = &[
    (
        "coverage",
        &[&["sources"], &["packages"]],
        &[
            RATES[0],
            RATES[1],
            "lines-covered",
            "lines-valid",
            "branches-covered",
            "branches-valid",
            RATES[2],
            "version",
            "timestamp",
        ],
        &[],
    ),
    ("sources", &[&["source"]], &[], &[]),
    ("source", &[], &[], &[]),
    ("packages", &[&["package"]], &[], &[]),
    ("package", &[&["classes"]], &["name", RATES[0], RATES[1], RATES[2]], &[]),
    ("classes", &[&["class"]], &[], &[]),
    ("class", &[&["methods"], &["lines"]], &["name", "filename", RATES[0], RATES[1], RATES[2]], &[]),
    ("methods", &[&["method"]], &[], &[]),
    ("method", &[&["lines"]], &["name", "signature", RATES[0], RATES[1], RATES[2]], &[]),
    ("lines", &[&["line"]], &[], &[]),
    ("line", &[], &["number", "hits"], &["branch", "condition-coverage"]),
];

/// Checks an element and its descendants against a DTD.
#[track_caller]
pub(crate) fn obeys(element: &Element, rules: &[Rule<'_>]) {
    let found = rules.iter().find(|(name, ..)| *name == element.name);
    let (name, groups, required, optional) = found.unwrap_or_else(|| panic!("no element {}", element.name));
    for attribute in *required {
        assert!(element.find(attribute).is_some(), "{name} without {attribute}");
    }
    for (attribute, _) in &element.attributes {
        assert!(
            required.contains(&&**attribute) || optional.contains(&&**attribute),
            "{name} with {attribute}"
        );
    }
    let mut group = 0;
    for child in &element.children {
        while groups.get(group).is_some_and(|group| !group.contains(&&*child.name)) {
            group += 1;
        }
        assert!(group < groups.len(), "{} is at a wrong place in {name}", child.name);
        obeys(child, rules);
    }
}
