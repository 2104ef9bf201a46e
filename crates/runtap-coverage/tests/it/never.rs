//! What was never called, and how sure that is.

use runtap_bytefrog_proto::Dialect;
use runtap_coverage::never::{Caveat, ClassState, Size};
use runtap_coverage::{ClassFate, Filtered, Inventory, NeverCalled, NeverOptions, Observed, Patterns};

use crate::builds::{class, inventory, method};
use crate::trace::Trace;

/// `class state method …` for each class.
fn shown(never: &NeverCalled<'_>) -> Vec<String> {
    let show = |class: &runtap_coverage::never::NeverClass<'_>| {
        let methods: Vec<&str> = class.methods.iter().map(|method| &*method.name).collect();
        format!("{} {:?} {}", class.name, class.state, methods.join(" "))
    };
    never.classes.iter().map(show).collect()
}

fn two_calls() -> Observed {
    let mut trace = Trace::new(Dialect::V1);
    trace.call("a/A.run;1;()V", &[]);
    trace.call("a/A.run;1;()V", &[]);
    Observed::of(&trace.report())
}

fn more() -> Inventory {
    let mut inventory = inventory();
    inventory.classes.insert("b/Cold".to_owned(), class(None, vec![method("x", &[1]), method("y", &[2])]));
    inventory.classes.insert("b/Excluded".to_owned(), class(None, vec![method("x", &[1])]));
    inventory.classes.insert("b/Broken".to_owned(), class(None, vec![method("x", &[1])]));
    inventory.classes.insert("b/Shape".to_owned(), class(None, Vec::new()));
    inventory
}

#[test]
fn classes_that_were_never_loaded_are_told_from_those_that_were_not_called() {
    let mut seen = two_calls();
    seen.class("a/A", ClassFate::Traced);
    seen.class("a/B$C", ClassFate::Traced);
    seen.class("b/Excluded", ClassFate::Ignored);
    seen.class("b/Broken", ClassFate::Failed);
    let inventory = more();
    let never = NeverCalled::of(&seen, &inventory, &NeverOptions::default());
    assert_eq!(shown(&never), ["a/A Called idle", "a/B$C Loaded run", "b/Cold NotLoaded x y"]);
    assert_eq!(never.untraced, [("b/Broken", ClassFate::Failed), ("b/Excluded", ClassFate::Ignored)]);
    assert_eq!(never.caveats, [Caveat::Ignored(1), Caveat::Failed(1)]);
    let a = Size { classes: 1, all_classes: 2, methods: 2, all_methods: 3, code: 20, all_code: 30 };
    let b = Size { classes: 1, all_classes: 1, methods: 2, all_methods: 2, code: 20, all_code: 20 };
    assert_eq!((never.packages["a"], never.packages["b"], never.total()), (a, b, a.plus(b)));
    assert_eq!((never.classes[0].called, never.classes[2].code()), (1, 20));
}

#[test]
fn without_the_word_of_an_agent_it_is_not_known_what_was_loaded() {
    let inventory = more();
    let seen = two_calls();
    let never = NeverCalled::of(&seen, &inventory, &NeverOptions::default());
    assert_eq!(never.classes[1].state, ClassState::Unknown);
    assert_eq!(never.caveats, [Caveat::NoClassReports]);
}

#[test]
fn a_class_that_was_called_was_traced_whatever_is_said() {
    let mut seen = two_calls();
    seen.class("a/A", ClassFate::Ignored);
    let inventory = inventory();
    let never = NeverCalled::of(&seen, &inventory, &NeverOptions::default());
    assert_eq!(shown(&never), ["a/A Called idle", "a/B$C NotLoaded run"]);
    assert_eq!(never.untraced, []);
}

#[test]
fn what_is_missing_is_said() {
    let mut trace = Trace::new(Dialect::V1);
    trace.call("a/A.run;1;()V", &[]);
    trace.lose(7);
    trace.call("no signature", &[]);
    trace.call("a/A.gone;1;()V", &[]);
    let mut seen = Observed::of(&trace.report());
    seen.losses.unknown = 1;
    seen.losses.suspensions = 2;
    seen.losses.beyond = 3;
    seen.losses.nameless = 4;
    seen.losses.class_reports = 6;
    let mut inventory = inventory();
    inventory.duplicates = 5;
    inventory.add_class("x.class", b"not a class");
    let never = NeverCalled::of(&seen, &inventory, &NeverOptions::default());
    let expected = [
        Caveat::Events(7),
        Caveat::UncountedDrops(1),
        Caveat::Suspensions(2),
        Caveat::Beyond(3),
        Caveat::Nameless(4),
        Caveat::Unparsed(1),
        Caveat::ClassReports(6),
        Caveat::NoClassReports,
        Caveat::Unread(1),
        Caveat::Duplicates(5),
        Caveat::OtherVersion(1),
    ];
    assert_eq!(never.caveats, expected);
    for caveat in never.caveats {
        assert!(caveat.to_string().len() > 40, "{caveat}");
    }
}

#[test]
fn patterns_and_methods_of_the_compiler() {
    let mut inventory = more();
    inventory.classes.get_mut("a/A").unwrap().methods[1].filtered = Some(Filtered::Enum);
    inventory.classes.get_mut("b/Broken").unwrap().filtered = Some(Filtered::Synthetic);
    let seen = two_calls();
    let patterns = Patterns::new(&["b/(Cold|Broken)"], &["b/"]).unwrap();
    let mut options = NeverOptions { patterns, compiler_methods: false };
    let never = NeverCalled::of(&seen, &inventory, &options);
    assert_eq!(shown(&never), ["a/B$C Unknown run", "b/Cold Unknown x y"]);
    options.compiler_methods = true;
    let never = NeverCalled::of(&seen, &inventory, &options);
    assert_eq!(
        shown(&never),
        ["a/A Called idle", "a/B$C Unknown run", "b/Broken Unknown x", "b/Cold Unknown x y"]
    );
}
