//! How the program measures: the handles of instruments, with tags or without. Owns no state of its own.

use std::sync::Arc;

use super::instrument::{Instrument, Series};
use super::tags::{Tag, sorted};

/// A number that can be measured.
pub trait Measure: Copy {
    /// The number, as near as 64 bits of floating point come.
    fn to_f64(self) -> f64;
}

macro_rules! measures {
    ($($type:ty),*) => {$(
        impl Measure for $type {
            #[inline]
            #[allow(clippy::cast_precision_loss, clippy::cast_lossless, reason = "as near as it gets")]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    )*};
}

measures!(i8, u8, i16, u16, i32, u32, i64, u64, isize, usize, f32, f64);

/// Takes the values of an observable instrument.
#[derive(Debug)]
pub struct Observer<'a> {
    pub(super) instrument: &'a Instrument,
}

impl Observer<'_> {
    /// The value is this now, for these tags.
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
            /// One load if no session wants it.
            #[inline]
            pub fn $method(&self, value: impl Measure, tags: &[Tag<'_>]) {
                self.0.measure(value.to_f64(), tags);
            }

            /// Whether a session wants its values.
            #[inline]
            pub fn is_enabled(&self) -> bool {
                self.0.is_listening()
            }

            /// The same with tags that are given once: the fastest way to measure.
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
    /// Counts what only grows. Tools show by how much since they began to look.
    Counter, BoundCounter,
    /// Adds to the count.
    add;
    /// Counts what grows and shrinks.
    UpDownCounter, BoundUpDownCounter,
    /// Adds to the count, or takes away.
    add;
    /// The last value counts.
    Gauge, BoundGauge,
    /// Has a new value.
    record;
    /// How values are distributed: quantiles, count and sum of each interval.
    Histogram, BoundHistogram,
    /// Adds a value.
    record;
}
