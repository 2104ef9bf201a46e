//! Values of the libraries' enums by the names that the libraries give them: one list, which is theirs.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command, Error};
use runtap_clr::lines::Style;
use runtap_clr::report::ReportKind;
use runtap_convert::FileFormat;
use runtap_diag::Buffering;
use runtap_model::View;

/// A value that has a name.
pub(super) trait Named: Copy + Send + Sync + 'static {
    fn all() -> impl Iterator<Item = Self>;
    /// Its name, what help says of it, and by what other names it is known.
    fn words(self) -> (&'static str, Option<&'static str>, &'static [&'static str]);
}

/// Parses one of them.
pub(super) fn choice<T: Named>() -> impl TypedValueParser<Value = T> {
    choice_of(|_| true)
}

/// Parses one of those that are kept.
pub(super) fn choice_of<T: Named>(keep: fn(&T) -> bool) -> impl TypedValueParser<Value = T> {
    Choice(keep)
}

/// Lists them when one is parsed or help is shown, and not at every start.
#[derive(Clone)]
struct Choice<T>(fn(&T) -> bool);

impl<T: Named> TypedValueParser for Choice<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        let listed = PossibleValuesParser::new(T::all().filter(self.0).map(possible));
        listed.try_map(|name| find(&name).ok_or("it has no such name")).parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(T::all().filter(self.0).map(possible)))
    }
}

/// The value of this name.
pub(super) fn find<T: Named>(name: &str) -> Option<T> {
    T::all().find(|value| possible(*value).matches(name, true))
}

fn possible<T: Named>(value: T) -> PossibleValue {
    let (name, about, aliases) = value.words();
    PossibleValue::new(name).help(about).aliases(aliases)
}

macro_rules! named {
    ($type:ty, $all:expr, $about:expr, $aliases:expr) => {
        impl Named for $type {
            fn all() -> impl Iterator<Item = Self> {
                $all
            }

            fn words(self) -> (&'static str, Option<&'static str>, &'static [&'static str]) {
                (self.name(), $about(self), $aliases(self))
            }
        }
    };
}

named!(FileFormat, Self::all(), |it: Self| Some(it.about()), Self::aliases);
named!(View, Self::ALL.into_iter(), |it: Self| Some(it.about()), |_| &[]);
named!(ReportKind, Self::ALL.into_iter(), |it: Self| Some(it.about()), Self::aliases);
named!(runtap_record::dump::DumpKind, Self::ALL.into_iter(), |it: Self| Some(it.about()), |_| &[]);
#[cfg(unix)]
named!(runtap_diag::PerfMapType, Self::ALL.into_iter(), |it: Self| Some(it.about()), |_| &[]);
named!(Buffering, Self::ALL.into_iter(), |it: Self| Some(it.about()), |_| &[]);
named!(Style, Self::ALL.into_iter(), |_| None, Self::aliases);

#[cfg(test)]
mod tests {
    use super::*;

    fn each_is_found<T: Named + PartialEq + std::fmt::Debug>() {
        for value in T::all() {
            let (name, _, aliases) = value.words();
            for name in [name].iter().chain(aliases) {
                assert_eq!(find(name), Some(value), "{name}");
                assert_eq!(find(&name.to_uppercase()), Some(value), "{name}");
            }
        }
        assert_eq!(find::<T>("none"), None);
    }

    #[test]
    fn a_name_is_that_of_one_value() {
        each_is_found::<FileFormat>();
        each_is_found::<View>();
        each_is_found::<ReportKind>();
        each_is_found::<Style>();
        each_is_found::<runtap_record::dump::DumpKind>();
        each_is_found::<runtap_diag::PerfMapType>();
        each_is_found::<Buffering>();
    }
}
