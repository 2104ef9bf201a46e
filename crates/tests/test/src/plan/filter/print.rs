//! Formatting of filters as text that parses to the same filter.

use std::fmt::{self, Display, Formatter};

use super::parse::SYNTAX;
use super::{Comparison, Condition, Field, Filter, Op, Property};

impl Display for Filter {
    /// Formats the filter as text that parses to an equal filter.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.root.fmt(f)
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compare(comparison) => comparison.fmt(f),
            Self::Text(text) => quoted(f, text),
        }
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.property {
            Some(property) => f.write_str(property.name())?,
            None => self.field.fmt(f)?,
        }
        let op = match (self.op, self.negated) {
            (Op::Equal, false) => "=",
            (Op::Equal, true) => "!=",
            (Op::Contains, false) if self.property.is_some() => "~",
            (Op::Contains, true) => "!~",
            (Op::Matches, false) => "~",
            (Op::Matches, true) => "!~",
            (Op::Begins, _) => "^=",
            (Op::Ends, _) => "$=",
            (Op::Contains, false) => "*=",
        };
        write!(f, " {op} ")?;
        // An unquoted backslash is an escape in the value of a property.
        let plain = SYNTAX.is_plain(&self.value) && !(self.property.is_some() && self.value.contains('\\'));
        if plain { f.write_str(&self.value) } else { quoted(f, &self.value) }
    }
}

impl Display for Field {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trait(key) if SYNTAX.is_plain(key) && !key.contains(['[', ']']) => {
                write!(f, "trait[{key}]")
            }
            Self::Trait(key) => {
                f.write_str("trait:")?;
                quoted(f, key)
            }
            // Has no field name: only properties use it.
            Self::FullName => f.write_str("FullyQualifiedName"),
            named => {
                let name = Self::NAMED.iter().find(|(_, field)| field == named).map(|(name, _)| *name);
                f.write_str(name.unwrap_or_default())
            }
        }
    }
}

impl Property {
    fn name(self) -> &'static str {
        let name = Self::ALL.iter().find(|(_, property)| *property == self);
        name.map(|(name, _)| *name).unwrap_or_default()
    }
}

fn quoted(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    // A backslash before the last quote would escape it.
    let body = text.trim_end_matches('\\');
    write!(f, "\"{}\"", body.replace('"', "\\\""))?;
    f.write_str(text.get(body.len()..).unwrap_or_default())
}
