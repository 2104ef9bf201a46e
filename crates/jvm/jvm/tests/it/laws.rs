//! Properties that hold for any input.

use std::collections::BTreeMap;

use proptest::prelude::*;
use runtap_jvm::coverage::model::{Class, Method};
use runtap_jvm::coverage::{Coverage, Format, Signature};

use crate::written;
use crate::xml::{COBERTURA, Element, JACOCO, obeys};

fn method() -> impl Strategy<Value = Method> {
    let lines = prop::collection::btree_map(1..60u32, 0..4u64, 0..6);
    let name = prop_oneof![Just("<init>".to_owned()), "[a-z,%\"&' \\t\\n\u{1}é]{1,6}"];
    (name, "\\((I|J|La/B;){0,2}\\)V", prop::option::of(1..60u32), 0..5u64, lines)
        .prop_map(|(name, descriptor, line, calls, lines)| Method { name, descriptor, line, calls, lines })
}

fn coverage() -> impl Strategy<Value = Coverage> {
    let class = (prop::collection::vec(method(), 1..5), "[A-C]\\.java").prop_map(|(mut methods, source)| {
        // A class has each method once.
        methods.sort_by(|a, b| (&a.name, &a.descriptor).cmp(&(&b.name, &b.descriptor)));
        methods.dedup_by(|a, b| (&a.name, &a.descriptor) == (&b.name, &b.descriptor));
        Class { source, source_is_known: true, methods }
    });
    let classes = prop::collection::btree_map("[A-C<&\"](\\$[a-c])?", class, 1..4);
    prop::collection::btree_map("([a-c](/[a-c])?)?", classes, 0..4).prop_map(|packages| {
        let mut coverage = Coverage { has_lines: true, ..Coverage::default() };
        for (package, classes) in packages {
            for (name, class) in classes {
                let name = if package.is_empty() { name } else { format!("{package}/{name}") };
                coverage.packages.entry(package.clone()).or_default().classes.insert(name, class);
            }
        }
        coverage
    })
}

/// The hits of each line, by source file.
type Lines = BTreeMap<String, BTreeMap<u32, u64>>;

fn lines_of(coverage: &Coverage) -> Lines {
    let mut all = Lines::new();
    for (name, package) in &coverage.packages {
        for (file, source) in package.sources() {
            let path = if name.is_empty() { file.to_owned() } else { format!("{name}/{file}") };
            all.insert(path, source.lines());
        }
    }
    all
}

/// Returns a tracefile as a reader understands it: lines, and calls of functions by file.
fn read_lcov(text: &str) -> (Lines, BTreeMap<(String, String), u64>) {
    let (mut lines, mut calls, mut file) = (Lines::new(), BTreeMap::new(), String::new());
    let mut functions = 0;
    for line in text.lines() {
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        let pair = value.split_once(',');
        match (key, pair) {
            ("SF", _) => {
                value.clone_into(&mut file);
                functions = 0;
                assert!(lines.insert(file.clone(), BTreeMap::new()).is_none(), "a file comes once");
            }
            ("FN", Some((line, name))) => {
                line.parse::<u32>().unwrap();
                assert!(!name.contains(','));
                functions += 1;
            }
            ("FNDA", Some((hits, name))) => {
                calls.insert((file.clone(), name.to_owned()), hits.parse().unwrap());
            }
            ("FNF", _) => assert_eq!(value, functions.to_string()),
            ("DA", Some((number, hits))) => {
                let hits = hits.parse().unwrap();
                assert!(lines.get_mut(&file).unwrap().insert(number.parse().unwrap(), hits).is_none());
            }
            ("LF", _) => assert_eq!(value, lines[&file].len().to_string()),
            ("LH", _) => {
                let hit = lines[&file].values().filter(|hits| **hits > 0).count();
                assert_eq!(value, hit.to_string());
            }
            ("TN" | "FNH" | "end_of_record", _) => {}
            other => panic!("{other:?}"),
        }
    }
    (lines, calls)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tracefiles_come_back(coverage in coverage()) {
        let (lines, calls) = read_lcov(&written(Format::Lcov, &coverage));
        let mut expected = lines_of(&coverage);
        if expected.values().any(|lines| !lines.is_empty()) {
            expected.retain(|_, lines| !lines.is_empty());
        }
        prop_assert_eq!(&lines, &expected);
        let classes = || coverage.packages.iter().flat_map(|(name, package)| {
            package.classes.values().map(move |class| (name, class))
        });
        let path = |package: &str, source: &str| {
            if package.is_empty() { source.to_owned() } else { format!("{package}/{source}") }
        };
        let methods = || classes()
            .filter(|(package, class)| expected.contains_key(&path(package, &class.source)))
            .flat_map(|(_, class)| &class.methods).filter(|method| method.line.is_some());
        prop_assert_eq!(calls.len(), methods().count(), "names are unique in a file");
        prop_assert_eq!(calls.values().sum::<u64>(), methods().map(|method| method.calls).sum::<u64>());
    }

    #[test]
    fn reports_of_jacoco_come_back(coverage in coverage()) {
        let report = Element::read(&written(Format::Jacoco, &coverage));
        obeys(&report, JACOCO);
        let mut lines = Lines::new();
        let mut names = Vec::new();
        for package in report.all("package") {
            for file in package.all("sourcefile") {
                let of = file.all("line").map(|line| (line.get("nr").parse().unwrap(), line.get("ci").parse().unwrap()));
                let path = format!("{}/{}", package.get("name"), file.get("name"));
                lines.insert(path.trim_start_matches('/').to_owned(), of.collect());
            }
            for class in package.all("class") {
                let of = class.all("method").map(|m| (class.get("name").to_owned(), m.get("name").to_owned()));
                names.extend(of);
            }
        }
        let mut expected = lines_of(&coverage);
        expected.values_mut().flat_map(|lines| lines.values_mut()).for_each(|hits| *hits = (*hits).min(1));
        prop_assert_eq!(lines, expected);
        let classes = coverage.packages.values().flat_map(|package| &package.classes);
        // Characters that XML does not allow are replaced by U+FFFD.
        let expected: Vec<_> = classes
            .flat_map(|(name, class)| class.methods.iter().map(move |m| (name.clone(), m.name.replace('\u{1}', "\u{fffd}"))))
            .collect();
        prop_assert_eq!(names, expected);
    }

    #[test]
    fn reports_of_cobertura_come_back(coverage in coverage()) {
        let report = Element::read(&written(Format::Cobertura, &coverage));
        obeys(&report, COBERTURA);
        let mut lines = Lines::new();
        for class in report.one("packages").all("package").flat_map(|package| package.one("classes").all("class")) {
            let all = lines.entry(class.get("filename").to_owned()).or_default();
            for line in class.one("lines").all("line") {
                *all.entry(line.get("number").parse().unwrap()).or_default() += line.get("hits").parse::<u64>().unwrap();
            }
        }
        prop_assert_eq!(lines, lines_of(&coverage));
    }

    #[test]
    fn equal_coverage_gives_equal_bytes(coverage in coverage()) {
        for format in Format::ALL {
            prop_assert_eq!(written(format, &coverage), written(format, &coverage.clone()));
        }
    }

    #[test]
    fn signatures_come_back(
        class in "[A-Za-z$<>é]{1,4}(/[A-Za-z$]{1,4}){0,2}",
        name in "<init>|[a-z$é-]{1,5}",
        access: u32,
        descriptor in "\\((\\[{0,3}([IJDZ]|L[a-z]{1,3}(/[A-Z]{1,2})?;)){0,4}\\)(V|\\[?I|La/B;)",
    ) {
        let text = format!("{class}.{name};{access};{descriptor}");
        let parsed = Signature::parse(&text).unwrap();
        prop_assert_eq!((parsed.class, parsed.name, parsed.access), (class.as_str(), name.as_str(), access));
        prop_assert_eq!(&parsed.to_string(), &text);
        // No prefix of the file is valid.
        for (end, _) in text.char_indices() {
            let error = Signature::parse(text.get(..end).unwrap()).unwrap_err();
            prop_assert!(error.offset <= end, "{error}");
        }
    }

    #[test]
    fn what_parses_is_what_was_sent(text in "[aA.;/()\\[ILV<>01]{0,16}|\\PC{0,12}") {
        match Signature::parse(&text) {
            Ok(signature) => prop_assert_eq!(signature.to_string(), text),
            Err(error) => prop_assert!(error.offset <= text.len(), "{error}"),
        }
    }
}
