//! Evaluation of filters.

use super::{Comparison, Condition, Field, Filter, Op};
use crate::plan::test::Test;

/// The result of a filter for the tests of a module before they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModuleMatch {
    /// All tests of the module match.
    All,
    /// No test matches, so the module need not be started.
    None,
    /// The result depends on the test.
    Depends,
}

impl Filter {
    /// Returns whether a test matches the filter.
    pub fn matches(&self, test: &Test<'_>) -> bool {
        // For a known test, every comparison has a result.
        self.root.evaluate(&|condition| Some(condition.meets(test))) == Some(true)
    }

    /// Returns whether the tests of a module match, given only its path or name.
    ///
    /// ```
    /// use runtap_test::plan::{Filter, ModuleMatch};
    ///
    /// let filter: Filter = "module = Shop.Tests and class = Orders".parse()?;
    /// assert_eq!(filter.of_module("bin/Shop.Tests.dll"), ModuleMatch::Depends);
    /// assert_eq!(filter.of_module("bin/Billing.Tests.dll"), ModuleMatch::None);
    /// # Ok::<(), runtap_test::plan::FilterError>(())
    /// ```
    pub fn of_module(&self, module: &str) -> ModuleMatch {
        let test = Test { module: Some(module.into()), ..Test::default() };
        let of_module = |condition: &Condition| match condition {
            Condition::Compare(comparison) if comparison.field == Field::Module => {
                Some(comparison.meets(&test))
            }
            _ => None,
        };
        match self.root.evaluate(&of_module) {
            Some(true) => ModuleMatch::All,
            Some(false) => ModuleMatch::None,
            None => ModuleMatch::Depends,
        }
    }
}

impl Condition {
    pub(super) fn meets(&self, test: &Test<'_>) -> bool {
        match self {
            Self::Compare(comparison) => comparison.meets(test),
            Self::Text(text) => has_text(test, text),
        }
    }
}

impl Comparison {
    fn meets(&self, test: &Test<'_>) -> bool {
        self.field.any_form(test, self.op, |form| self.fits(form)) != self.negated
    }

    fn fits(&self, form: &str) -> bool {
        if self.property.is_some() {
            let (form, value) = (form.to_lowercase(), self.value.to_lowercase());
            return if self.op == Op::Equal { form == value } else { form.contains(&value) };
        }
        match self.op {
            // Paths of other systems have other separators.
            Op::Equal if self.field == Field::File => {
                form.replace('\\', "/") == self.value.replace('\\', "/")
            }
            Op::Equal => form == self.value,
            Op::Matches => self.regex.as_ref().is_some_and(|regex| regex.is_match(form)),
            Op::Begins => form.starts_with(&self.value),
            Op::Ends => form.ends_with(&self.value),
            Op::Contains => form.contains(&self.value),
        }
    }
}

impl Field {
    /// Returns whether one of the forms of a field matches. An unknown field has no forms.
    pub(super) fn any_form(&self, test: &Test<'_>, op: Op, mut fits: impl FnMut(&str) -> bool) -> bool {
        match self {
            Self::Uid => fits(&test.uid),
            Self::Name => fits(&test.name),
            Self::FullName => test.full_name().is_some_and(|name| fits(&name)),
            Self::Class => test.class.as_deref().is_some_and(|class| {
                let full = test.full_class();
                let mut both = |class: &str| {
                    let bare = class.split_once('(').map(|(bare, _arguments)| bare);
                    fits(class) || bare.is_some_and(&mut fits)
                };
                both(class) || full.is_some_and(|full| both(&full))
            }),
            Self::Namespace => test.namespace.as_deref().is_some_and(fits),
            Self::Method => test.method.as_deref().is_some_and(fits),
            Self::Module => test.module.as_deref().is_some_and(|path| {
                let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
                let stem = file.strip_suffix(".dll").or_else(|| file.strip_suffix(".exe"));
                fits(path) || fits(file) || stem.is_some_and(fits)
            }),
            // Only equality depends on the start of a directory.
            Self::File if op == Op::Equal => test.file.as_deref().is_some_and(|path| {
                let below = path.match_indices(['/', '\\']).filter_map(|(at, _)| path.get(at + 1..));
                fits(path) || below.into_iter().any(fits)
            }),
            Self::File => test.file.as_deref().is_some_and(fits),
            Self::Category => test.traits.iter().any(|(key, value)| {
                let named = ["TestCategory", "Category"].iter().any(|name| key.eq_ignore_ascii_case(name));
                if named { fits(value) } else { value.is_empty() && fits(key) }
            }),
            Self::Trait(wanted) => test.traits.iter().any(|(key, value)| key == wanted && fits(value)),
        }
    }
}

fn has_text(test: &Test<'_>, wanted: &str) -> bool {
    let wanted = wanted.to_lowercase();
    test.name.to_lowercase().contains(&wanted)
        || test.full_name().is_some_and(|name| name.to_lowercase().contains(&wanted))
}
