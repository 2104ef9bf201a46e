//! Any bytes as the sums by class that a JVM prints: no panic, and no more classes than lines.
#![no_main]

use runtap_heap::ClassHistogram;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(histogram) = ClassHistogram::parse(bytes) else { return };
    assert!(histogram.classes.len() <= bytes.iter().filter(|byte| **byte == b'\n').count());
    if histogram.defect().is_none() {
        let sum: u64 = histogram.classes.iter().map(|it| it.count).fold(0, u64::saturating_add);
        assert_eq!(histogram.total.map(|(count, _)| count), Some(sum));
    }
});
