//! What is written of two traces, where the difference can be counted by hand, and as a law for any two.

use crate::recordings::{any_trace, weights};
use proptest::prelude::*;
use runtap_model::{Comparison, SampleKind, Trace, TraceBuilder, View};
use runtap_sinks::Error;
use runtap_sinks::difference::{Options, write_flamegraph, write_folded};

/// One thread, one tick a nanosecond; each entry is a stack from the root, and how often it was seen.
fn trace(ticks: &[(&str, u64)]) -> Trace {
    let mut builder = TraceBuilder::new();
    let thread = builder.thread(1);
    let mut now = 0;
    for (names, times) in ticks {
        let frames: Vec<_> = names.split_whitespace().map(|n| builder.frame(Some("app"), n)).collect();
        let stack = builder.stack_of(frames);
        for _ in 0..*times {
            builder.add_sample(thread, now, SampleKind::MANAGED, stack);
            now += 1;
        }
    }
    builder.finish()
}

fn options(absolute: bool) -> Options {
    let mut options = Options::default();
    options.absolute = absolute;
    options.names = ["old; 1".to_owned(), "new".to_owned()];
    options
}

fn folded(comparison: &Comparison, absolute: bool) -> String {
    let mut bytes = Vec::new();
    write_folded(comparison, &mut bytes, &options(absolute)).expect("a Vec takes all");
    String::from_utf8(bytes).expect("UTF-8")
}

fn two() -> Comparison {
    let before = trace(&[("main parse", 60), ("main gone", 10), ("main", 20), ("", 10)]);
    let after = trace(&[("main new", 50), ("main parse", 100), ("main", 50)]);
    Comparison::new(&before, &after, View::Cpu)
}

#[test]
fn lines_have_two_numbers_that_are_scaled_to_each_other() {
    assert_eq!(
        folded(&two(), false),
        "app!main 40 50\napp!main;app!gone 20 0\napp!main;app!new 0 50\napp!main;app!parse 120 100\n[no stack] 20 0\n"
    );
    assert_eq!(
        folded(&two(), true),
        "app!main 20 50\napp!main;app!gone 10 0\napp!main;app!new 0 50\napp!main;app!parse 60 100\n[no stack] 10 0\n"
    );
}

#[test]
fn the_picture_is_red_for_more_and_blue_for_less() {
    let mut bytes = Vec::new();
    write_flamegraph(&two(), &mut bytes, &options(false)).expect("a Vec takes all");
    let svg = String::from_utf8(bytes).expect("UTF-8");
    assert!(svg.contains("old: 1 → new<"), "the title");
    assert!(svg.contains("cpu · 100 → 200 samples · shares of each recording · red: more, blue: less"));
    let colour = |name: &str| {
        let (_, from) = svg.split_once(&format!("<title>{name} (")).expect("the box is there");
        let (_, from) = from.split_once("fill=\"rgb(").expect("a colour");
        let rgb: Vec<u8> = from
            .split(')')
            .next()
            .expect("its end")
            .split(',')
            .map(|n| n.parse().expect("a number"))
            .collect();
        match rgb[0].cmp(&rgb[2]) {
            std::cmp::Ordering::Less => "blue",
            std::cmp::Ordering::Equal => "white",
            std::cmp::Ordering::Greater => "red",
        }
    };
    assert_eq!([colour("app!new"), colour("app!parse")], ["red", "blue"]);
    // Of 90 in 100 to 100 in 100, with all that it called.
    assert_eq!(colour("app!main"), "red");
    let title = |name: &str| {
        let (_, from) = svg.split_once(&format!("<title>{name} (")).expect("the box is there");
        from.split_once("; ").and_then(|(_, to)| to.split_once(")</title>")).expect("a title").0
    };
    assert_eq!([title("app!main"), title("app!new"), title("app!parse")], ["+10.00%", "+25.00%", "-10.00%"]);
    assert!(!svg.contains("app!gone"), "what is gone has no width");
}

#[test]
fn nothing_in_both_is_an_error_and_nothing_in_one_is_not() {
    let nothing = TraceBuilder::new().finish();
    let none = Comparison::new(&nothing, &nothing, View::Cpu);
    let mut bytes = Vec::new();
    let error = write_folded(&none, &mut bytes, &options(false)).expect_err("nothing to write");
    assert!(matches!(error, Error::NoSamples { .. }), "{error}");
    let some = trace(&[("main", 3)]);
    assert_eq!(folded(&Comparison::new(&nothing, &some, View::Cpu), false), "app!main 0 3\n");
    let gone = Comparison::new(&some, &nothing, View::Cpu);
    assert_eq!(folded(&gone, false), "app!main 3 0\n");
    let error = write_flamegraph(&gone, &mut bytes, &options(false)).expect_err("no width");
    assert!(matches!(error, Error::NoSamples { .. }), "{error}");
    assert!(bytes.is_empty());
}

proptest! {
    #[test]
    fn both_sums_are_kept(before in any_trace(), after in any_trace(), cpu in any::<bool>()) {
        let view = if cpu { View::Cpu } else { View::ThreadTime };
        let [of_before, of_after] = [&before, &after].map(|t| weights(t, view).values().sum::<u64>());
        prop_assume!(of_before + of_after > 0);
        let (mut first, mut second) = (0, 0);
        for line in folded(&Comparison::new(&before, &after, view), true).lines() {
            let mut words = line.rsplitn(3, ' ');
            let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).expect("a whole number");
            (second, first) = (second + number(), first + number());
            prop_assert!(words.next().is_some_and(|stack| !stack.is_empty()), "{line:?}");
        }
        prop_assert_eq!([first, second], [of_before, of_after]);
    }
}
