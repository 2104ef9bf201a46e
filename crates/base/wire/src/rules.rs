//! Protocol rules: each has a stable id, a severity, a summary and a source.
//!
//! This module contains [`Severity`] and the macro [`rules!`](crate::rules!), which declares an enumeration of rules.
//! The rules themselves and the details of a violation belong to the protocol.

use std::fmt;

/// The severity of breaking a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Real peers tolerate the violation, and received data is still correct.
    Warning,
    /// Data or the connection is lost, or received data cannot be trusted.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// Declares an enumeration `Rule` from lines that contain a name, an id, a [`Severity`], a summary and a source.
///
/// ```
/// runtap_wire::rules! {
///     /// A rule for clients.
///     pub enum Rule;
///     SendsNothing "EX001" Warning "a client sends nothing" "specification, section 1";
/// }
/// assert_eq!((Rule::ALL.len(), Rule::SendsNothing.to_string().as_str()), (1, "EX001"));
/// assert_eq!(Rule::SendsNothing.severity(), runtap_wire::Severity::Warning);
/// ```
#[macro_export]
macro_rules! rules {
    (
        $(#[$doc:meta])* pub enum Rule;
        $($variant:ident $id:literal $severity:ident $summary:literal $source:literal;)*
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $(#[doc = concat!($id, ": ", $summary, ". Source: ", $source, ".")] $variant,)*
        }

        impl Rule {
            /// All rules, ordered by id.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the stable id: letters followed by three digits. Ids are never reused.
            pub fn id(self) -> &'static str {
                match self {
                    $(Self::$variant => $id,)*
                }
            }

            /// Returns the severity of breaking the rule.
            pub fn severity(self) -> $crate::Severity {
                match self {
                    $(Self::$variant => $crate::Severity::$severity,)*
                }
            }

            /// Describes the violation in one line.
            pub fn summary(self) -> &'static str {
                match self {
                    $(Self::$variant => $summary,)*
                }
            }

            /// Returns the source of the rule: a specification or the behavior of real programs.
            pub fn source(self) -> &'static str {
                match self {
                    $(Self::$variant => $source,)*
                }
            }
        }

        impl ::core::fmt::Display for Rule {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(self.id())
            }
        }
    };
}
