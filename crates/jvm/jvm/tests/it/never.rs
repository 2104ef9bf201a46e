//! Methods that were never called, and the certainty of that.

use runtap_bytefrog_proto::Dialect;
use runtap_jvm::coverage::never::{Caveat, ClassState, Size};
use runtap_jvm::coverage::{
    ClassFate, Coverage, Filtered, Inventory, NeverCalled, NeverOptions, Observed, Options, Patterns,
    TracedClasses, Unknown,
};

use crate::builds::{class, inventory, method};
use crate::trace::Trace;

/// Returns `class state method …` for each class.
fn shown(never: &NeverCalled<'_>) -> Vec<String> {
    let show = |class: &runtap_jvm::coverage::never::NeverClass<'_>| {
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
    let no_reason = Unknown::Failed("no reason was given".to_owned());
    assert_eq!(never.untraced, [("b/Broken", no_reason), ("b/Excluded", Unknown::Ignored)]);
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

/// Returns the methods that the coverage counts as missed.
fn missed(observed: &Observed, inventory: &Inventory) -> Vec<String> {
    let coverage = Coverage::of(observed, Some(inventory), &Options::default());
    let classes = coverage.packages.values().flat_map(|package| &package.classes);
    let methods = classes.flat_map(|(name, class)| class.methods.iter().map(move |method| (name, method)));
    let missed = methods.filter(|(_, method)| !method.is_covered());
    missed.map(|(name, method)| format!("{name}.{}", method.name)).collect()
}

#[test]
fn methods_that_could_not_be_traced_are_not_dead() {
    let inventory = more();
    for (told, dead) in [
        ("b/Cold (x()V: too long; z(I)V: too long)", &["a/A.idle", "a/B$C.run", "b/Cold.y"][..]),
        ("b/Cold (x()V: lines not known: too long; y()V: too long)", &["a/A.idle", "a/B$C.run", "b/Cold.x"]),
        ("b/Cold (y()V: the code: is; odd)", &["a/A.idle", "a/B$C.run"]),
        ("b/Cold (x()V: too long; y()V: too lo", &["a/A.idle", "a/B$C.run"]),
        ("b/Cold (unexpected end)", &["a/A.idle", "a/B$C.run"]),
        ("b/Cold (z(I)V: too long)", &["a/A.idle", "a/B$C.run", "b/Cold.x", "b/Cold.y"]),
        ("a/B$C (run()V: too long)", &["a/A.idle", "b/Cold.x", "b/Cold.y"]),
    ] {
        let mut seen = two_calls();
        seen.class("a/A", ClassFate::Traced);
        seen.class("a/B$C", ClassFate::Traced);
        seen.class("b/Excluded", ClassFate::Ignored);
        seen.class("b/Broken", ClassFate::Ignored);
        seen.class(told, ClassFate::Failed);
        let never = NeverCalled::of(&seen, &inventory, &NeverOptions::default());
        let listed = never
            .classes
            .iter()
            .flat_map(|class| class.methods.iter().map(|method| format!("{}.{}", class.name, method.name)));
        assert_eq!(listed.collect::<Vec<_>>(), dead, "{told}");
        assert_eq!(missed(&seen, &inventory), dead, "{told}");
    }
    // Also if other methods of the class ran, or if the class was traced in another class loader.
    let mut seen = two_calls();
    seen.class("a/A", ClassFate::Traced);
    seen.class("a/A (idle()V: too long)", ClassFate::Failed);
    let never = NeverCalled::of(&seen, &inventory, &NeverOptions::default());
    let [unknown] = &never.unknown[..] else { panic!("{:?}", never.unknown) };
    assert_eq!((unknown.class, &*unknown.method.name), ("a/A", "idle"));
    assert_eq!(unknown.why.to_string(), "the agent could not trace it: too long");
    assert!(never.caveats.contains(&Caveat::UnknownMethods(1)));
}

/// A main method that runs all the time is on the stack when an agent attaches, so its call is not seen.
#[test]
fn methods_that_ran_when_the_trace_began_are_not_dead() {
    let inventory = more();
    let mut seen = two_calls();
    seen.class("a/A", ClassFate::Traced);
    seen.class("b/Cold", ClassFate::Traced);
    seen.class("b/Cold (y()V: already running when the trace began)", ClassFate::Failed);
    seen.class("b/Broken", ClassFate::Traced);
    seen.class("b/Broken (x()V: already running when the trace began)", ClassFate::Failed);
    let never = NeverCalled::of(&seen, &inventory, &NeverOptions::default());
    let rows = ["a/A Called idle", "a/B$C NotLoaded run", "b/Cold Loaded x", "b/Excluded NotLoaded x"];
    assert_eq!(shown(&never), rows, "classes that were loaded when the trace had begun");
    assert_eq!(never.untraced, [("b/Broken", Unknown::AlreadyRunning)]);
    let [unknown] = &never.unknown[..] else { panic!("{:?}", never.unknown) };
    assert_eq!(
        (unknown.class, &*unknown.method.name, &unknown.why),
        ("b/Cold", "y", &Unknown::AlreadyRunning)
    );
    assert_eq!(never.caveats, [Caveat::AlreadyRunning(1), Caveat::UnknownMethods(1)]);
    assert_eq!(missed(&seen, &inventory), ["a/A.idle", "a/B$C.run", "b/Cold.x", "b/Excluded.x"]);
}

/// For a class loaded before the agent was attached, earlier calls are unknown; for a class loaded later, all are known.
#[test]
fn what_ran_before_an_attach_is_not_dead() {
    let inventory = more();
    let mut attached = two_calls();
    attached.class("a/A (loaded before the trace began)", ClassFate::Traced);
    attached.class("a/B$C", ClassFate::Traced);
    attached.class("b/Broken (loaded before the trace began)", ClassFate::Traced);
    // The class of another loader came later, which tells nothing about the first one.
    attached.class("b/Broken", ClassFate::Traced);
    attached.class("b/Cold (loaded before the trace began; x()V: too long)", ClassFate::Failed);
    attached.end_of_classes();
    let never = NeverCalled::of(&attached, &inventory, &NeverOptions::default());
    assert_eq!(shown(&never), ["a/B$C Loaded run", "b/Excluded NotLoaded x"]);
    assert_eq!(
        never.untraced,
        [("b/Broken", Unknown::NotSinceAttach), ("b/Cold", Unknown::NotSinceAttach)],
        "of 'b/Cold', a method was not traced, and the other may have run before"
    );
    let [unknown] = &never.unknown[..] else { panic!("{:?}", never.unknown) };
    assert_eq!(
        (unknown.class, &*unknown.method.name, &unknown.why),
        ("a/A", "idle", &Unknown::NotSinceAttach)
    );
    assert_eq!(never.not_called_since_attach, 3);
    assert_eq!(never.caveats, [Caveat::NotSinceAttach(3)]);
    assert_eq!(missed(&attached, &inventory), ["a/B$C.run", "b/Excluded.x"]);
    let notes = Coverage::of(&attached, Some(&inventory), &Options::default()).notes;
    assert_eq!((notes.not_called_since_attach, notes.unknown_methods, notes.untraced_classes), (3, 1, 2));
    // A run that was traced from its start has certain results for these classes, in either order of combination.
    let mut started = two_calls();
    started.class("a/A", ClassFate::Traced);
    started.class("b/Broken", ClassFate::Ignored);
    for runs in [[&attached, &started], [&started, &attached]] {
        let mut both = Observed::default();
        for run in runs {
            both.add(run.clone());
        }
        assert_eq!(missed(&both, &inventory), ["a/A.idle", "a/B$C.run", "b/Excluded.x"]);
        assert_eq!(both.loaded_before.iter().collect::<Vec<_>>(), ["b/Broken", "b/Cold"]);
    }
}

/// For agents that do not report which classes were loaded before, a running method shows that they were attached.
#[test]
fn every_class_of_an_agent_that_was_attached_may_have_run_before() {
    let inventory = more();
    let mut seen = two_calls();
    for class in ["a/A", "a/B$C", "b/Cold"] {
        seen.class(class, ClassFate::Traced);
    }
    seen.class("a/A (main()V: already running when the trace began)", ClassFate::Failed);
    seen.class("b/Excluded", ClassFate::Ignored);
    seen.end_of_classes();
    assert_eq!(seen.loaded_before.iter().collect::<Vec<_>>(), ["a/A", "a/B$C", "b/Cold"]);
    assert_eq!(missed(&seen, &inventory), ["b/Broken.x"], "a class that was never loaded");
}

/// A line that has not run since the trace began may have run before.
#[test]
fn lines_of_a_class_that_was_loaded_before_are_not_missed() {
    let mut inventory = Inventory::default();
    inventory
        .classes
        .insert("a/A".to_owned(), class(None, vec![method("run", &[1, 2]), method("idle", &[5])]));
    let lines = |report: &str| {
        let mut trace = Trace::new(Dialect::V4);
        trace.call("a/A.run;1;()V", &[1]);
        let mut seen = Observed::of(&trace.report());
        seen.class(report, ClassFate::Traced);
        let coverage = Coverage::of(&seen, Some(&inventory), &Options::default());
        let lines = coverage.packages["a"].classes["a/A"].lines();
        (lines.into_iter().collect::<Vec<_>>(), coverage.notes.partly_seen_methods)
    };
    assert_eq!(lines("a/A"), (vec![(1, 1), (2, 0), (5, 0)], 0));
    assert_eq!(lines("a/A (loaded before the trace began)"), (vec![(1, 1)], 1));
}

#[test]
fn classes_that_no_agent_was_told_to_trace_are_not_dead() {
    let inventory = more();
    let traced = |inclusion: &str| TracedClasses {
        inclusions: vec![inclusion.to_owned()],
        exclusions: vec![".*".to_owned()],
    };
    let mut seen = two_calls();
    seen.traced.insert(traced("^a/A"));
    let never = NeverCalled::of(&seen, &inventory, &NeverOptions::default());
    assert_eq!(shown(&never), ["a/A Called idle"]);
    assert!(never.untraced.iter().all(|(_, why)| *why == Unknown::Outside), "{:?}", never.untraced);
    assert!(never.caveats.contains(&Caveat::Outside(4)), "{:?}", never.caveats);
    assert_eq!(missed(&seen, &inventory), ["a/A.idle"]);
    // Another run has traced another part.
    seen.traced.insert(traced("^b/C"));
    assert_eq!(missed(&seen, &inventory), ["a/A.idle", "b/Cold.x", "b/Cold.y"]);
    // A run for which the traced part is unknown.
    seen.traced.insert(TracedClasses::default());
    assert_eq!(missed(&seen, &inventory).len(), 6);
}

/// With patterns that only Java supports, or too many patterns, it is unknown whether unseen classes were traced.
#[test]
fn what_an_unreadable_filter_may_have_left_out_is_not_dead() {
    let inventory = more();
    let everything = vec![".*".to_owned()];
    let many = (0..20_001).map(|number| format!("^other/C{number}$")).collect();
    for inclusions in [vec!["^(?=a)".to_owned()], many] {
        let mut seen = two_calls();
        seen.class("b/Cold", ClassFate::Traced);
        seen.traced.insert(TracedClasses { inclusions, exclusions: everything.clone() });
        let never = NeverCalled::of(&seen, &inventory, &NeverOptions::default());
        assert_eq!(shown(&never), ["a/A Called idle", "b/Cold Loaded x y"]);
        assert!(
            never.untraced.iter().all(|(_, why)| *why == Unknown::UnreadableFilter),
            "{:?}",
            never.untraced
        );
        assert!(never.caveats.contains(&Caveat::UnreadableFilter(3)), "{:?}", never.caveats);
        assert_eq!(missed(&seen, &inventory), ["a/A.idle", "b/Cold.x", "b/Cold.y"]);
        // Another run has certainly traced a class of them.
        let of_b = TracedClasses { inclusions: vec!["^b/Broken".to_owned()], exclusions: everything.clone() };
        seen.traced.insert(of_b);
        assert_eq!(missed(&seen, &inventory), ["a/A.idle", "b/Broken.x", "b/Cold.x", "b/Cold.y"]);
    }
    // The maximum number that an agent accepts is supported.
    let mut seen = two_calls();
    let inclusions = (0..10_000).map(|number| format!("^other/C{number}$")).collect();
    seen.traced.insert(TracedClasses { inclusions, exclusions: everything });
    let never = NeverCalled::of(&seen, &inventory, &NeverOptions::default());
    assert!(never.untraced.iter().all(|(_, why)| *why == Unknown::Outside), "{:?}", never.untraced);
}

#[test]
fn nothing_is_dead_by_what_a_killed_agent_has_sent() {
    let inventory = more();
    let mut seen = two_calls();
    let mut killed = two_calls();
    killed.unsent = 1;
    seen.add(killed);
    let never = NeverCalled::of(&seen, &inventory, &NeverOptions::default());
    assert_eq!(never.classes, []);
    assert_eq!((never.unknown.len(), never.untraced.len()), (1, 4));
    assert!(never.caveats.contains(&Caveat::Unsent(1)), "{:?}", never.caveats);
    assert_eq!(never.total().methods, 0);
    assert_eq!(missed(&seen, &inventory), [""; 0]);
}
