//! What holds of pprof and Firefox profiles for any recording: no tick and no nanosecond is lost.

use crate::read::{firefox, pprof};
use crate::recordings::{SelfTimes, any_trace, bytes, self_times, shown};
use proptest::prelude::*;
use runtap_model::View;
use runtap_model::text::acts_unseen;
use runtap_sinks::{Format, Options};

proptest! {
    #[test]
    fn pprof_keeps_every_tick_and_nanosecond(trace in any_trace(), cpu in any::<bool>()) {
        let view = if cpu { View::Cpu } else { View::ThreadTime };
        let Some(file) = bytes(Format::Pprof, &trace, &Options::new(view)) else {
            prop_assert!(self_times(&trace, view).is_empty());
            return Ok(());
        };
        let profile = pprof::read(&file);
        let mut times = SelfTimes::new();
        let mut ticks = 0;
        for sample in &profile.samples {
            let [count, ns] = sample.values[..] else { panic!("two values") };
            ticks += count;
            if ns > 0 {
                *times.entry((sample.text("thread").to_owned(), sample.stack[0].clone())).or_default() += ns;
            }
        }
        prop_assert!(!times.keys().any(|(thread, name)| [thread, name].iter().any(|text| text.contains(acts_unseen))));
        prop_assert_eq!(times, shown(self_times(&trace, view)));
        let unseen: u64 = trace.threads().map(|(_, t)| t).filter(|t| t.weight(view) == 0).map(|t| t.ticks(view)).sum();
        prop_assert_eq!(ticks + unseen, trace.ticks(view));
    }

    #[test]
    fn firefox_keeps_every_nanosecond_and_every_gap(trace in any_trace(), cpu in any::<bool>()) {
        let view = if cpu { View::Cpu } else { View::ThreadTime };
        let file = bytes(Format::Firefox, &trace, &Options::new(view));
        let threads = file.map(|file| firefox::read(&file)).unwrap_or_default();
        let (mut weights, mut shown, mut ran) = (SelfTimes::new(), SelfTimes::new(), SelfTimes::new());
        for thread in threads {
            for (row, next) in thread.rows.iter().zip(thread.rows.iter().skip(1).map(Some).chain([None])) {
                let Some(stack) = &row.stack else {
                    prop_assert_eq!(row.weight, 0);
                    continue;
                };
                let next = next.expect("the last sample ends with a row");
                // What the time line shows is what the table of calls adds up.
                let key = (thread.name.clone(), stack.last().expect("a frame").clone());
                let shown_ns = next.time - row.time;
                for (sum, ns) in [(&mut weights, row.weight), (&mut shown, shown_ns), (&mut ran, next.cpu.expect("a number"))] {
                    if ns > 0 {
                        *sum.entry(key.clone()).or_default() += ns;
                    }
                }
            }
        }
        prop_assert_eq!(&shown, &weights);
        prop_assert_eq!(weights, self_times(&trace, view));
        let active = trace.threads().map(|(_, t)| t).filter(|t| t.weight(view) > 0);
        prop_assert_eq!(ran.values().sum::<u64>(), active.map(|t| t.weight(View::Cpu)).sum::<u64>());
    }
}
