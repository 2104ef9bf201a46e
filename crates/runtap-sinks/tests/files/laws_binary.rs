//! What holds of pprof profiles for any recording: no tick and no nanosecond is lost.

use crate::read::pprof;
use crate::recordings::{SelfTimes, any_trace, bytes, self_times};
use proptest::prelude::*;
use runtap_model::View;
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
        prop_assert_eq!(times, self_times(&trace, view));
        let unseen: u64 = trace.threads().map(|(_, t)| t).filter(|t| t.weight_ns(view) == 0).map(|t| t.ticks(view)).sum();
        prop_assert_eq!(ticks + unseen, trace.ticks(view));
    }
}
