//! The rules for covered, missed and uncounted code.

use std::collections::{BTreeMap, BTreeSet};

use runtap_bytefrog_proto::f1::{Count, CountRows, Hit, HitRows, Rows};
use runtap_bytefrog_proto::{Dialect, JavaStr, Location, Message};
use runtap_classfile::AccessFlags;
use runtap_jvm::coverage::inventory::{Class, Method};
use runtap_jvm::coverage::{ClassFate, Coverage, Filtered, Inventory, Observed, Options, Patterns};

use crate::trace::Trace;

pub(crate) fn method(name: &str, lines: &[u16]) -> Method {
    Method {
        name: name.to_owned(),
        descriptor: "()V".to_owned(),
        access: AccessFlags::PUBLIC,
        code: 10,
        lines: lines.to_vec(),
        filtered: None,
    }
}

pub(crate) fn class(source: Option<&str>, methods: Vec<Method>) -> Class {
    Class {
        path: "app.jar!/x.class".to_owned(),
        source_file: source.map(str::to_owned),
        access: AccessFlags::PUBLIC,
        filtered: None,
        methods,
    }
}

/// Returns an inventory of `a/A` with two methods and `a/B` with one.
pub(crate) fn inventory() -> Inventory {
    let mut inventory = Inventory::default();
    let a = class(Some("A.kt"), vec![method("run", &[3, 4, 5]), method("idle", &[8, 9])]);
    inventory.classes.insert("a/A".to_owned(), a);
    inventory.classes.insert("a/B$C".to_owned(), class(None, vec![method("run", &[2])]));
    inventory
}

/// Returns `class.method calls line:hits …` for each method.
fn shown(coverage: &Coverage) -> Vec<String> {
    let classes = coverage.packages.values().flat_map(|package| &package.classes);
    let methods = classes.flat_map(|(name, class)| class.methods.iter().map(move |method| (name, method)));
    let show = |(class, method): (&String, &runtap_jvm::coverage::model::Method)| {
        let lines: Vec<String> =
            method.lines.iter().map(|(number, hits)| format!(" {number}:{hits}")).collect();
        format!("{class}.{} {}{}", method.name, method.calls, lines.concat())
    };
    methods.map(show).collect()
}

fn of(observed: &Observed, options: &Options) -> Coverage {
    Coverage::of(observed, Some(&inventory()), options)
}

fn observed(dialect: Dialect, calls: &[(&str, &[u32])]) -> Observed {
    let mut trace = Trace::new(dialect);
    for (method, lines) in calls {
        trace.call(&format!("{method};1;()V"), lines);
    }
    Observed::of(&trace.report())
}

#[test]
fn lines_are_missed_only_where_lines_are_told() {
    let v1 = observed(Dialect::V1, &[("a/A.run", &[3, 4]), ("a/A.run", &[3])]);
    let coverage = of(&v1, &Options::default());
    assert_eq!(shown(&coverage), ["a/A.run 2", "a/A.idle 0", "a/B$C.run 0"]);
    assert!(!coverage.has_lines);
    let entry_lines = Options { entry_lines: true, ..Options::default() };
    assert_eq!(shown(&of(&v1, &entry_lines)), ["a/A.run 2 3:2", "a/A.idle 0 8:0", "a/B$C.run 0 2:0"]);

    for dialect in [Dialect::V3, Dialect::V4] {
        let seen = observed(dialect, &[("a/A.run", &[3, 4]), ("a/A.run", &[3])]);
        let expected = ["a/A.run 2 3:2 4:1 5:0", "a/A.idle 0 8:0 9:0", "a/B$C.run 0 2:0"];
        assert_eq!(shown(&of(&seen, &Options::default())), expected);
        assert_eq!(shown(&of(&seen, &entry_lines)), expected, "there are better lines than first ones");
    }
    // F1 reports each line once.
    let f1 = observed(Dialect::F1, &[("a/A.run", &[3, 4]), ("a/A.run", &[3])]);
    assert_eq!(shown(&of(&f1, &Options::default()))[0], "a/A.run 2 3:1 4:1 5:0");
}

#[test]
fn of_a_call_without_lines_nothing_is_missed() {
    let lines = observed(Dialect::V4, &[("a/A.idle", &[8])]);
    let blind = observed(Dialect::V1, &[("a/A.idle", &[]), ("a/B$C.run", &[])]);
    let mut both = lines.clone();
    both.add(blind.clone());
    assert_eq!((both.runs, both.lines), (2, true));
    let mut other = blind;
    other.add(lines);
    assert_eq!(both, other, "the order of runs does not matter");
    let coverage = of(&both, &Options::default());
    assert_eq!(shown(&coverage), ["a/A.run 0 3:0 4:0 5:0", "a/A.idle 2 8:1", "a/B$C.run 1"]);
    assert_eq!(coverage.notes.blind_methods, 2);
    // A call that has not ended reports no lines.
    let mut trace = Trace::new(Dialect::V4);
    trace.enter("a/A.run;1;()V");
    trace.call("a/A.idle;1;()V", &[8]);
    let coverage = of(&Observed::of(&trace.report()), &Options::default());
    assert_eq!(shown(&coverage)[0], "a/A.run 1");
}

#[test]
fn what_is_not_traced_is_not_missed() {
    let mut seen = observed(Dialect::V4, &[("a/A.run", &[3])]);
    seen.class("a/B$C", ClassFate::Failed);
    let coverage = of(&seen, &Options::default());
    assert_eq!((coverage.packages["a"].classes.len(), coverage.notes.untraced_classes), (1, 1));
    // A class of this name was traced in another class loader.
    seen.class("a/B$C", ClassFate::Traced);
    seen.class("a/B$C", ClassFate::Ignored);
    assert_eq!(seen.classes["a/B$C"], ClassFate::Traced);
    assert_eq!(of(&seen, &Options::default()).packages["a"].classes.len(), 2);
}

#[test]
fn lines_of_another_version_are_not_those_of_the_class() {
    let other: &[&[(&str, &[u32])]] =
        &[&[("a/A.run", &[3, 8])], &[("a/A.run", &[3]), ("a/A.gone", &[9])], &[("a/A.run", &[70_000])]];
    for calls in other {
        let mut seen = observed(Dialect::V4, calls);
        let coverage = of(&seen, &Options::default());
        assert_eq!(shown(&coverage), ["a/A.run 1", "a/A.idle 0", "a/B$C.run 0 2:0"], "{calls:?}");
        assert_eq!((coverage.notes.other_versions, coverage.notes.blind_methods), (1, 0));
        // The right class ran too, in another loader or run.
        seen.add(observed(Dialect::V4, &[("a/A.run", &[3, 4])]));
        let entry_lines = Options { entry_lines: true, ..Options::default() };
        assert_eq!(shown(&of(&seen, &entry_lines))[..2], ["a/A.run 2", "a/A.idle 0"], "{calls:?}");
    }
    // A method that an agent has added is not in the source.
    let mut trace = Trace::new(Dialect::V4);
    trace.call("a/A.run;1;()V", &[3]);
    trace.call("a/A.$jacocoInit;4106;()[Z", &[]);
    let coverage = of(&Observed::of(&trace.report()), &Options::default());
    assert_eq!(shown(&coverage)[0], "a/A.run 1 3:1 4:0 5:0");
    assert_eq!((coverage.notes.other_versions, coverage.notes.foreign_methods), (0, 1));
}

#[test]
fn a_place_of_several_lines_may_have_some_without_code() {
    let place = |lines: (u32, u32)| {
        let mut trace = Trace::new(Dialect::V4);
        trace.enter("a/A.run;1;()V");
        trace.leave("a/A.run;1;()V", &[lines].into());
        of(&Observed::of(&trace.report()), &Options::default())
    };
    let coverage = place((4, 7));
    assert_eq!(shown(&coverage)[0], "a/A.run 1 3:0 4:1 5:1");
    assert_eq!((coverage.notes.other_versions, coverage.notes.foreign_lines), (0, 0));
    assert_eq!(shown(&place((6, 7)))[0], "a/A.run 1", "it begins in no line of the class");
}

#[test]
fn what_the_jars_do_not_have_is_counted() {
    let calls: &[(&str, &[u32])] =
        &[("a/A.run", &[3, 99]), ("a/A.gone", &[1]), ("b/New.run", &[]), ("b/New.more", &[]), ("c d", &[])];
    let mut seen = observed(Dialect::V4, calls);
    seen.add(observed(Dialect::V1, &[("a/A.run", &[])]));
    let coverage = of(&seen, &Options::default());
    let notes = &coverage.notes;
    assert_eq!((notes.foreign_classes, notes.foreign_methods, notes.foreign_lines), (1, 1, 1));
    assert_eq!((notes.unparsed_methods, notes.assumed_sources), (1, 1));
    assert_eq!(seen.unparsed, BTreeMap::from([("c d;1;()V".to_owned(), 1)]), "kept by its name");
    assert_eq!(shown(&coverage)[..2], ["a/A.run 2", "a/A.idle 0"]);
    let sources: Vec<(&str, bool)> = coverage.packages["a"]
        .classes
        .values()
        .map(|class| (&*class.source, class.source_is_known))
        .collect();
    assert_eq!(sources, [("A.kt", true), ("B.java", false)]);
}

#[test]
fn without_jars_what_ran_is_all_there_is() {
    let seen = observed(Dialect::V4, &[("a/A$1.run", &[7, 5]), ("b/B.run", &[]), ("Plain.main", &[1])]);
    let exclude = Options { patterns: Patterns::new(&[], &["b/"]).unwrap(), ..Options::default() };
    let coverage = Coverage::of(&seen, None, &exclude);
    assert_eq!(shown(&coverage), ["Plain.main 1 1:1", "a/A$1.run 1 5:1 7:1"]);
    assert_eq!(coverage.notes.excluded_classes, 1);
    assert_eq!(coverage.packages["a"].classes["a/A$1"].source, "A.java");
    assert_eq!(coverage.packages["a"].classes["a/A$1"].methods[0].line, Some(5));
}

/// As with jars: a bridge is no second method of the source, and the body of a lambda is one.
#[test]
fn without_jars_bridges_are_left_out() {
    for dialect in [Dialect::V1, Dialect::F1] {
        let mut trace = Trace::new(dialect);
        for signature in [
            "a/A.compareTo;1;(La/A;)I",
            "a/A.compareTo;4161;(Ljava/lang/Object;)I",
            "a/A.access$000;4104;()V",
            "a/A.lambda$run$0;4106;()V",
            "a/A.$anonfun$run$1;4106;()V",
            "a/A.$anonfun$run$1$adapted;4106;()V",
        ] {
            trace.call(signature, &[]);
        }
        let seen = Observed::of(&trace.report());
        let coverage = Coverage::of(&seen, None, &Options::default());
        let expected = ["a/A.$anonfun$run$1 1", "a/A.compareTo 1", "a/A.lambda$run$0 1"];
        assert_eq!(shown(&coverage), expected, "{dialect}");
        assert_eq!(coverage.notes.filtered_methods, 3);
        let all = Options { compiler_methods: true, ..Options::default() };
        assert_eq!(shown(&Coverage::of(&seen, None, &all)).len(), 6);
    }
}

#[test]
fn patterns_and_methods_of_the_compiler() {
    let mut inventory = inventory();
    inventory.classes.get_mut("a/A").unwrap().methods[1].filtered = Some(Filtered::Synthetic);
    let seen = observed(Dialect::V4, &[("a/A.run", &[3]), ("a/A.idle", &[8])]);
    let coverage = Coverage::of(&seen, Some(&inventory), &Options::default());
    assert_eq!(shown(&coverage), ["a/A.run 1 3:1 4:0 5:0", "a/B$C.run 0 2:0"]);
    assert_eq!(coverage.notes.filtered_methods, 1);
    let options = Options {
        patterns: Patterns::new(&["a/A$"], &[".*"]).unwrap(),
        compiler_methods: true,
        ..Options::default()
    };
    let coverage = Coverage::of(&seen, Some(&inventory), &options);
    assert_eq!(shown(&coverage), ["a/A.run 1 3:1 4:0 5:0", "a/A.idle 1 8:1 9:0"]);
    assert_eq!(coverage.notes.excluded_classes, 1);
}

#[test]
fn counts_coverage_and_ends_are_calls_too() {
    let mut trace = Trace::new(Dialect::F1);
    let (run, idle) = (trace.method("a/A.run;1;()V"), trace.method("a/A.idle;1;()V"));
    let rows = [Count { method: run, calls: 40, thrown: 1, nanoseconds: 5 }.to_bytes()];
    let counts = CountRows { snapshot: 0, time: 1, last: true, reset: false, rows: Rows::new(&rows) };
    trace.take(&Message::Counts(counts));
    let rows = [Hit { method: idle, location: None }.to_bytes()];
    trace.take(&Message::Coverage(HitRows { time: 0, rows: Rows::new(&rows) }));
    let seen = Observed::of(&trace.report());
    let calls: Vec<u64> = seen.methods.values().map(|seen| seen.calls).collect();
    assert_eq!((calls, seen.lines), (vec![1, 40], false));
    // After a break: the end of a call whose start was not recorded.
    let mut trace = Trace::new(Dialect::V1);
    trace.lose(2);
    trace.leave("a/A.run;1;()V", &BTreeSet::new());
    let seen = Observed::of(&trace.report());
    assert_eq!((seen.methods.values().next().unwrap().calls, seen.losses.events), (1, 2));
}

#[test]
fn places_of_several_lines_and_of_none() {
    let mut trace = Trace::new(Dialect::V4);
    trace.enter("a/A.run;1;()V");
    trace.leave("a/A.run;1;()V", &[(3, 5), (0, 9), (7, 6), (10, 1_000_000)].into());
    let method = trace.method("a/A.run;1;()V");
    let name = JavaStr::from_bytes(b"a/A.never;1;()V");
    trace.take(&Message::MapMethod { method: 77, signature: name });
    let at = runtap_bytefrog_proto::Stamp { time: 9, sequence: 6, thread: 0 };
    trace.take(&Message::Visit { at, method, location: 12_345 });
    let place = Location {
        location: 5,
        method,
        start_line: u32::MAX,
        end_line: u32::MAX,
        start_char: 0,
        end_char: 0,
    };
    trace.take(&Message::MapLocation(place));
    let report = trace.report();
    let seen = Observed::of(&report).methods.into_values().next().unwrap();
    assert_eq!(seen.lines.keys().copied().collect::<Vec<_>>(), [3, 4, 5, 7, 10]);
    assert_eq!((seen.unplaced, seen.calls), (2, 1));
}
