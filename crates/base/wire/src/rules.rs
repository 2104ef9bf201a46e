//! The shape of a protocol's rules: a list with a stable id, a severity, a sentence and a source each.
//!
//! Owns: [`Severity`] and the macro [`rules!`](crate::rules!), which makes the enumeration of a protocol's rules. Refuses
//! to: know a rule; what a violation says beside its rule is the protocol's.

use std::fmt;

/// What follows from breaking a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Real peers tolerate it, and what is received is still right.
    Warning,
    /// Something is lost, the connection is, or what was received can't be trusted.
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

/// Makes the enumeration `Rule` from lines of a name, an id, a [`Severity`], a summary and a source.
///
/// ```
/// runtap_wire::rules! {
///     /// A rule that clients have to follow.
///     pub enum Rule;
///     SaysNothing "EX001" Warning "a client says nothing" "specification, section 1";
/// }
/// assert_eq!((Rule::ALL.len(), Rule::SaysNothing.to_string().as_str()), (1, "EX001"));
/// assert_eq!(Rule::SaysNothing.severity(), runtap_wire::Severity::Warning);
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
            /// All rules in the order of their ids.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The stable id: some letters and three digits. An id is never given to another rule.
            pub fn id(self) -> &'static str {
                match self {
                    $(Self::$variant => $id,)*
                }
            }

            /// What follows from breaking it.
            pub fn severity(self) -> $crate::Severity {
                match self {
                    $(Self::$variant => $crate::Severity::$severity,)*
                }
            }

            /// What is wrong when it is broken, in one line.
            pub fn summary(self) -> &'static str {
                match self {
                    $(Self::$variant => $summary,)*
                }
            }

            /// Where the rule comes from: the specification, or what real programs do.
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
