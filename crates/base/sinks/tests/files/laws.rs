//! What holds of every sink for any recording: well-formed, nothing lost, the same each time.

use crate::recordings::{any_name, any_trace, build, bytes, weights, written};
use proptest::prelude::*;
use runtap_model::View;
use runtap_sinks::{Format, Options};
use serde_json::Value;
use std::collections::BTreeMap;

proptest! {
    #[test]
    fn speedscope_is_json_and_keeps_every_nanosecond(trace in any_trace(), cpu in any::<bool>()) {
        let view = if cpu { View::Cpu } else { View::ThreadTime };
        let Some(text) = written(Format::Speedscope, &trace, &Options::new(view)) else {
            prop_assert!(weights(&trace, view).is_empty());
            return Ok(());
        };
        let json: Value = serde_json::from_str(&text).expect("the file is JSON");
        let frames = json["shared"]["frames"].as_array().expect("frames");
        let profiles = json["profiles"].as_array().expect("profiles");
        prop_assert!(json["activeProfileIndex"].as_u64().expect("an index") < profiles.len() as u64);
        let mut sums = BTreeMap::new();
        let mut used = vec![false; frames.len()];
        for profile in profiles {
            let weights: Vec<u64> = profile["weights"].as_array().expect("weights").iter()
                .map(|w| w.as_u64().expect("a whole number")).collect();
            let stacks = profile["samples"].as_array().expect("samples");
            prop_assert_eq!(stacks.len(), weights.len());
            for (i, stack) in stacks.iter().enumerate() {
                prop_assert!(i == 0 || *stack != stacks[i - 1], "equal neighbours are merged");
                let stack = stack.as_array().expect("a stack");
                prop_assert!(!stack.is_empty());
                for frame in stack {
                    used[usize::try_from(frame.as_u64().expect("an index")).expect("a small one")] = true;
                }
            }
            let sum: u64 = weights.iter().sum();
            let value = |key: &str| profile[key].as_u64().expect("a whole number");
            prop_assert_eq!(value("endValue") - value("startValue"), sum);
            sums.insert(profile["name"].as_str().expect("a name").to_owned(), sum);
        }
        prop_assert_eq!(sums, weights(&trace, view));
        prop_assert!(used.iter().all(|u| *u), "unused frames are left out");
    }

    #[test]
    fn folded_lines_keep_every_nanosecond(trace in any_trace(), cpu in any::<bool>()) {
        let view = if cpu { View::Cpu } else { View::ThreadTime };
        let text = written(Format::Folded, &trace, &Options::new(view)).unwrap_or_default();
        let mut total = 0;
        for line in text.split_terminator('\n') {
            prop_assert!(line.lines().count() == 1 && !line.contains(char::is_control), "{line:?}");
            let (stack, weight) = line.rsplit_once(' ').expect("a space before the weight");
            prop_assert!(stack.starts_with("Thread (1"), "{stack:?}");
            prop_assert!(stack.split(';').all(|frame| !frame.is_empty()), "{stack:?}");
            let second = stack.rsplit_once(' ').and_then(|(_, word)| word.parse::<f64>().ok());
            prop_assert!(second.is_none(), "a second number: {line:?}");
            total += weight.parse::<u64>().expect("a whole number");
        }
        prop_assert_eq!(total, weights(&trace, view).values().sum::<u64>());
    }

    #[test]
    fn a_flame_graph_is_as_wide_as_its_time(trace in any_trace(), cpu in any::<bool>()) {
        let view = if cpu { View::Cpu } else { View::ThreadTime };
        let Some(svg) = written(Format::Flamegraph, &trace, &Options::new(view)) else {
            prop_assert!(weights(&trace, view).is_empty());
            return Ok(());
        };
        let total: u64 = weights(&trace, view).values().sum();
        prop_assert!(svg.contains(&format!("total_samples=\"{total}\"")), "all time is in the picture");
        // What XML cannot hold, escaped or not.
        let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        prop_assert!(svg.chars().all(allowed));
        // Each thread is one box on `all`, so no time counts twice or is left over.
        let boxes = svg.matches("<g><title>Thread (1").count();
        let wide = weights(&trace, view).values().filter(|ns| **ns * 10_000 >= total).count();
        prop_assert_eq!(boxes, wide);
    }

    #[test]
    fn equal_traces_give_equal_bytes(
        names in proptest::collection::vec((proptest::option::of(any_name()), any_name()), 6),
        ticks in proptest::collection::vec(
            (0..3usize, 0..4000u64, 0..3u8, proptest::collection::vec(0..6usize, 0..6)), 1..60),
    ) {
        let threads = ["", "a 1", "b"].map(str::to_owned);
        let once = || build(&names, &threads, "app".to_owned(), &ticks);
        for format in Format::ALL {
            let (first, second) = (once(), once());
            let options = Options::new(View::ThreadTime);
            prop_assert!(bytes(format, &first, &options) == bytes(format, &second, &options), "{format:?}");
        }
    }
}
