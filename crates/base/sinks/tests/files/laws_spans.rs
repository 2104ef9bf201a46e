//! What holds of every file with begin and end events, for any recording: every frame that opens closes, the innermost
//! first; time never runs backwards; and each frame has the self time that the model gives it.

use crate::read::perfetto::{self, FURTHER};
use crate::recordings::{SelfTimes, any_events, any_trace, bytes, self_times, shown, written};
use proptest::prelude::*;
use runtap_model::View;
use runtap_model::text::acts_unseen;
use runtap_sinks::{Format, Options};
use serde_json::Value;
use std::collections::BTreeMap;

/// Plays the events of threads back.
#[derive(Default)]
struct Player {
    stacks: BTreeMap<String, (u64, Vec<String>)>,
    self_times: SelfTimes,
}

impl Player {
    fn advance(&mut self, thread: &str, now: u64) -> &mut Vec<String> {
        let (last, stack) = self.stacks.entry(thread.to_owned()).or_insert_with(|| (now, Vec::new()));
        let passed = now.checked_sub(*last).expect("time does not run backwards");
        *last = now;
        if let Some(top) = stack.last().filter(|_| passed > 0) {
            let thread = thread.split(FURTHER).next().unwrap_or_default();
            *self.self_times.entry((thread.to_owned(), top.clone())).or_default() += passed;
        }
        stack
    }

    fn open(&mut self, thread: &str, now: u64, name: &str) {
        self.advance(thread, now).push(name.to_owned());
    }

    fn close(&mut self, thread: &str, now: u64) -> String {
        self.advance(thread, now).pop().expect("something is open")
    }

    fn finish(self) -> SelfTimes {
        assert!(self.stacks.values().all(|(_, stack)| stack.is_empty()), "everything is closed");
        self.self_times
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn played_chrome(file: &str) -> SelfTimes {
    let json: Value = serde_json::from_str(file).expect("the file is JSON");
    let mut names = BTreeMap::new();
    let mut player = Player::default();
    for event in json["traceEvents"].as_array().expect("events") {
        assert_eq!(event["pid"], 1);
        let tid = event["tid"].as_u64();
        match text(&event["ph"]) {
            "M" if event["name"] == "thread_name" => {
                names.insert(tid, text(&event["args"]["name"]).to_owned());
            }
            "M" => {}
            phase => {
                let micros = event["ts"].as_f64().expect("a number");
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "small and positive"
                )]
                let now = (micros * 1000.0).round() as u64;
                let mut thread = names[&tid].clone();
                if let Some(id) = event["id"].as_str() {
                    thread = format!("{thread}{FURTHER}{id}");
                }
                match phase {
                    "B" | "b" => player.open(&thread, now, text(&event["name"])),
                    "E" | "e" => assert_eq!(player.close(&thread, now), text(&event["name"])),
                    other => panic!("no such event: {other}"),
                }
            }
        }
    }
    player.finish()
}

fn played_speedscope(file: &str, events_only: bool) -> SelfTimes {
    let json: Value = serde_json::from_str(file).expect("the file is JSON");
    let mut player = Player::default();
    for profile in json["profiles"].as_array().expect("profiles") {
        assert_eq!(profile["type"], "evented");
        let thread = text(&profile["name"]);
        // Threads of these recordings have no name of their own.
        let thread = &if events_only { thread.replace(" [", FURTHER) } else { thread.to_owned() };
        let events = profile["events"].as_array().expect("events");
        let at = |event: &Value| event["at"].as_u64().expect("a whole number");
        assert_eq!(events.first().map(at), profile["startValue"].as_u64());
        assert_eq!(events.last().map(at), profile["endValue"].as_u64());
        for event in events {
            let frame = usize::try_from(event["frame"].as_u64().expect("an index")).expect("a small one");
            let name = text(&json["shared"]["frames"][frame]["name"]);
            match text(&event["type"]) {
                "O" => player.open(thread, at(event), name),
                "C" => assert_eq!(player.close(thread, at(event)), name),
                other => panic!("no such event: {other}"),
            }
        }
    }
    player.finish()
}

fn played_perfetto(file: &[u8]) -> SelfTimes {
    let mut player = Player::default();
    for event in perfetto::read(file).events {
        match event.begin {
            Some(name) => player.open(&event.thread, event.time, &name),
            None => drop(player.close(&event.thread, event.time)),
        }
    }
    player.finish()
}

proptest! {
    #[test]
    fn perfetto_events_play_back_to_the_same_times(trace in any_trace(), cpu in any::<bool>()) {
        let view = if cpu { View::Cpu } else { View::ThreadTime };
        let file = bytes(Format::Perfetto, &trace, &Options::new(view));
        let times = file.map(|f| played_perfetto(&f)).unwrap_or_default();
        prop_assert!(!times.keys().any(|(thread, name)| [thread, name].iter().any(|text| text.contains(acts_unseen))));
        prop_assert_eq!(times, shown(self_times(&trace, view)));
    }

    #[test]
    fn chrome_events_play_back_to_the_same_times(trace in any_trace(), cpu in any::<bool>()) {
        let view = if cpu { View::Cpu } else { View::ThreadTime };
        let file = written(Format::Chrome, &trace, &Options::new(view));
        prop_assert_eq!(file.map(|f| played_chrome(&f)).unwrap_or_default(), self_times(&trace, view));
    }

    #[test]
    fn speedscope_events_play_back_to_the_same_times(trace in any_trace(), cpu in any::<bool>()) {
        let view = if cpu { View::Cpu } else { View::ThreadTime };
        let mut options = Options::new(view);
        options.evented = true;
        let file = written(Format::Speedscope, &trace, &options);
        prop_assert_eq!(file.map(|f| played_speedscope(&f, false)).unwrap_or_default(), self_times(&trace, view));
    }

    #[test]
    fn events_that_overlap_keep_their_times(trace in any_events()) {
        let expected = self_times(&trace, View::Async);
        let mut options = Options::new(View::Async);
        options.evented = true;
        let chrome = written(Format::Chrome, &trace, &options).map(|f| played_chrome(&f)).unwrap_or_default();
        prop_assert_eq!(&chrome, &expected);
        let perfetto = bytes(Format::Perfetto, &trace, &options).map(|f| played_perfetto(&f)).unwrap_or_default();
        prop_assert_eq!(&perfetto, &expected);
        let file = written(Format::Speedscope, &trace, &options);
        prop_assert_eq!(file.map(|f| played_speedscope(&f, true)).unwrap_or_default(), expected);
    }
}
