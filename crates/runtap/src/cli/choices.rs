//! Parsers for the enums of the libraries. The libraries define the names, aliases and descriptions of the values.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use runtap_clr::lines::Style;
use runtap_clr::report::ReportKind;
use runtap_convert::FileFormat;
use runtap_diag::Buffering;
use runtap_jvm::report::ReportKind as JavaReportKind;
use runtap_model::View;
use runtap_text::test::Detail;

/// A value with a name on the command line.
pub(crate) trait Named: Copy + Send + Sync + 'static {
    /// Returns all values.
    fn all() -> impl Iterator<Item = Self>;
    /// Returns the name of the value, its description for the help, and its aliases.
    fn names_and_help(self) -> (&'static str, Option<&'static str>, &'static [&'static str]);
}

/// Returns a parser for the values of a type.
pub(super) fn choice<T: Named>() -> impl TypedValueParser<Value = T> {
    choice_of(|_| true)
}

/// Returns a parser for the values of a type for which `keep` returns true.
pub(super) fn choice_of<T: Named>(keep: fn(&T) -> bool) -> impl TypedValueParser<Value = T> {
    ChoiceParser(keep)
}

/// A parser that lists the values only to parse one or to show help, which keeps the start of the program fast.
#[derive(Clone)]
struct ChoiceParser<T>(fn(&T) -> bool);

impl<T: Named> TypedValueParser for ChoiceParser<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        let listed = PossibleValuesParser::new(T::all().filter(self.0).map(possible));
        listed.try_map(|name| find(&name).ok_or("it has no such name")).parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(T::all().filter(self.0).map(possible)))
    }
}

/// Returns the value with this name or alias, or `None` if there is none.
pub(super) fn find<T: Named>(name: &str) -> Option<T> {
    T::all().find(|value| possible(*value).matches(name, true))
}

fn possible<T: Named>(value: T) -> PossibleValue {
    let (name, about, aliases) = value.names_and_help();
    PossibleValue::new(name).help(about).aliases(aliases)
}

/// Whether a view is of .NET recordings.
pub(super) fn is_dotnet_view(view: &View) -> bool {
    View::ALL.contains(view)
}

/// Returns a parser for the kinds of reports on recordings of any kind. Accepts any name, because the recording determines
/// which are valid: see [`report_kind`].
pub(super) fn report_kinds() -> impl TypedValueParser<Value = String> {
    ReportKinds
}

#[derive(Clone)]
struct ReportKinds;

impl TypedValueParser for ReportKinds {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let java = JavaReportKind::ALL.into_iter().filter(|kind| find::<ReportKind>(kind.name()).is_none());
        let java = java.map(|kind| possible(kind).help(format!("Java recordings: {}", kind.about())));
        Some(Box::new(ReportKind::ALL.into_iter().map(possible).chain(java)))
    }
}

/// Parses the kind of a report on one kind of recordings.
///
/// # Errors
/// The name is unknown; the message lists the valid names.
pub(crate) fn report_kind<T: Named>(name: &str) -> Result<T, Error> {
    let arg = Arg::new("kind").value_name("KIND").required(true);
    choice::<T>().parse_ref(&Command::new("runtap"), Some(&arg), OsStr::new(name))
}

macro_rules! named {
    ($type:ty, $all:expr, $about:expr, $aliases:expr) => {
        impl Named for $type {
            fn all() -> impl Iterator<Item = Self> {
                $all
            }

            fn names_and_help(self) -> (&'static str, Option<&'static str>, &'static [&'static str]) {
                (self.name(), $about(self), $aliases(self))
            }
        }
    };
}

named!(FileFormat, Self::all(), |it: Self| Some(it.about()), Self::aliases);
named!(
    View,
    Self::ALL.into_iter().chain(runtap_jvm::recording::views()),
    |it: Self| Some(it.about()),
    |_| &[]
);
named!(ReportKind, Self::ALL.into_iter(), |it: Self| Some(it.about()), Self::aliases);
named!(JavaReportKind, Self::ALL.into_iter(), |it: Self| Some(it.about()), |_| &[]);
named!(runtap_jvm::recording::Order, Self::ALL.into_iter(), |it: Self| Some(it.about()), |_| &[]);
named!(runtap_record::dump::DumpKind, Self::ALL.into_iter(), |it: Self| Some(it.about()), |_| &[]);
#[cfg(unix)]
named!(runtap_diag::PerfMapType, Self::ALL.into_iter(), |it: Self| Some(it.about()), |_| &[]);
named!(runtap_sinks::counters::CounterFormat, Self::ALL.into_iter(), |it: Self| Some(it.about()), |_| &[]);
named!(Buffering, Self::ALL.into_iter(), |it: Self| Some(it.about()), |_| &[]);
named!(runtap_convert::HeapFileFormat, Self::ALL.into_iter(), |it: Self| Some(it.about()), |_| &[]);
named!(Detail, Self::ALL.into_iter(), |it: Self| Some(it.about()), |_| &[]);
named!(runtap_heap::TypeOrder, Self::ALL.into_iter(), |it: Self| Some(it.about()), |_| &[]);
named!(Style, Self::ALL.into_iter(), |_| None, Self::aliases);

#[cfg(test)]
mod tests {
    use super::*;

    fn each_is_found<T: Named + PartialEq + std::fmt::Debug>() {
        for value in T::all() {
            let (name, _, aliases) = value.names_and_help();
            for name in [name].iter().chain(aliases) {
                assert_eq!(find(name), Some(value), "{name}");
                assert_eq!(find(&name.to_uppercase()), Some(value), "{name}");
            }
        }
        assert_eq!(find::<T>("none"), None);
    }

    #[test]
    fn each_name_selects_one_value() {
        each_is_found::<FileFormat>();
        each_is_found::<View>();
        each_is_found::<ReportKind>();
        each_is_found::<JavaReportKind>();
        each_is_found::<runtap_jvm::recording::Order>();
        each_is_found::<Detail>();
        each_is_found::<Style>();
        each_is_found::<runtap_heap::TypeOrder>();
        each_is_found::<runtap_convert::HeapFileFormat>();
        each_is_found::<runtap_record::dump::DumpKind>();
        each_is_found::<runtap_diag::PerfMapType>();
        each_is_found::<Buffering>();
        each_is_found::<runtap_sinks::counters::CounterFormat>();
    }
}
