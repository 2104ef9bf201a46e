//! The handles of instruments, with or without tags, for measuring.

use std::sync::Arc;

use super::instrument::{Instrument, Series};
use super::tags::{Tag, sorted};

/// A number that can be measured.
pub trait Measure: Copy {
    /// Returns the nearest 64-bit floating-point number.
    fn to_f64(self) -> f64;
}

macro_rules! measures {
    ($($type:ty),*) => {$(
        impl Measure for $type {
            #[inline]
            #[allow(clippy::cast_precision_loss, clippy::cast_lossless, reason = "the nearest value is sufficient")]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    )*};
}

measures!(i8, u8, i16, u16, i32, u32, i64, u64, isize, usize, f32, f64);

/// A receiver of the values of an observable instrument.
#[derive(Debug)]
pub struct Observer<'a> {
    pub(super) instrument: &'a Instrument,
}

impl Observer<'_> {
    /// Reports the current value for these tags.
    pub fn observe(&mut self, value: impl Measure, tags: &[Tag<'_>]) {
        self.instrument.measure(value.to_f64(), tags);
    }
}

macro_rules! handles {
    ($($(#[$doc:meta])* $Handle:ident, $Bound:ident, $(#[$method_doc:meta])* $method:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $Handle(pub(super) Arc<Instrument>);

        impl $Handle {
            $(#[$method_doc])*
            ///
            /// A single load if no session records the instrument.
            #[inline]
            pub fn $method(&self, value: impl Measure, tags: &[Tag<'_>]) {
                self.0.measure(value.to_f64(), tags);
            }

            /// Returns whether a session records its values.
            #[inline]
            pub fn is_enabled(&self) -> bool {
                self.0.is_listening()
            }

            /// Returns a handle with fixed tags, which is the fastest way to measure.
            #[must_use]
            pub fn with(&self, tags: &[Tag<'_>]) -> $Bound {
                let series = sorted(tags, |tags| self.0.series(tags));
                $Bound { instrument: Arc::clone(&self.0), series }
            }
        }

        #[doc = concat!("A [`", stringify!($Handle), "`] with its tags.")]
        #[derive(Debug, Clone)]
        pub struct $Bound {
            instrument: Arc<Instrument>,
            pub(super) series: Arc<Series>,
        }

        impl $Bound {
            $(#[$method_doc])*
            #[inline]
            pub fn $method(&self, value: impl Measure) {
                self.instrument.measure_in(&self.series, value.to_f64());
            }
        }
    )*};
}

handles! {
    /// A count that only grows. Tools show its growth since they started recording.
    Counter, BoundCounter,
    /// Adds to the count.
    add;
    /// A count that grows and shrinks.
    UpDownCounter, BoundUpDownCounter,
    /// Adds to the count, or subtracts from it.
    add;
    /// A value, of which tools show the last one.
    Gauge, BoundGauge,
    /// Sets the value.
    record;
    /// A distribution of values: quantiles, count and sum of each interval.
    Histogram, BoundHistogram,
    /// Records a value.
    record;
}
