//! Filters: conditions on tests, as written by users.
//!
//! ```text
//! filter     := or
//! or         := and (("or" | "|") and)*
//! and        := not (("and" | "&") not)*
//! not        := ("not" | "!") not | "(" or ")" | comparison | text
//! comparison := FIELD OP VALUE
//! FIELD      := uid name class namespace method module file category, trait[KEY] or trait:KEY
//! OP         := = != ~ !~ ^= $= *=
//! VALUE      := word | "text" | 'text'
//! text       := VALUE
//! ```
//!
//! `~` is a regular expression that matches a part of the text, `^=` means "starts with", `$=` "ends with" and `*=`
//! "contains". Comparisons are case-sensitive. A negated operator is equivalent to `not` before the comparison: a test
//! without a class meets `class != X`. A text without a field is searched for in the display name and in the full name
//! of the method, ignoring case.
//!
//! Several fields have more than one form, and match if one of the forms does: `class` with and without namespace and
//! arguments of the fixture (`NUnit` sends `ShelfTests("oak")`), `module` as path, file name and name without
//! extension, `file` with any number of parent directories. `category` matches a trait `TestCategory` or `Category`
//! with this value, or a trait with this key and no value, as `MSTest` and `NUnit` send categories.
//!
//! The grammar of `dotnet test --filter` is supported too. Its properties are `FullyQualifiedName`, `DisplayName`,
//! `Name`, `ClassName`, `TestCategory`, `Category` and `Priority`, with the operators `=`, `!=`, `~` (*contains*, not a
//! regular expression) and `!~`, which ignore case. Their values may contain white space, and end at `&`, `|`, a
//! parenthesis or a separate `and` or `or`; a backslash escapes a special character. The lowercase `name` is the field
//! above.

mod eval;
#[cfg(test)]
mod laws;
mod parse;
mod print;
mod unmet;

use regex_lite::Regex;
use runtap_wire::filter::Expression;

pub use eval::ModuleMatch;
pub use runtap_wire::filter::FilterError;
pub use unmet::Unmet;

/// A condition on tests.
///
/// ```
/// use runtap_test::plan::{Filter, Test};
///
/// let filter: Filter = "class = ParserTests and !(name ~ '^Slow' | trait[Owner] = ann)".parse()?;
/// let mut test = Test::new("1", "Reads a file");
/// assert!(!filter.matches(&test), "its class is not known");
/// test.class = Some("ParserTests".into());
/// assert!(filter.matches(&test));
///
/// let wrong = "klass = ParserTests".parse::<Filter>().unwrap_err();
/// assert_eq!(wrong.to_string(), "unknown field 'klass'; did you mean 'class'? (column 1)");
/// assert_eq!(wrong.caret(), "klass = ParserTests\n^^^^^");
/// # Ok::<(), runtap_test::plan::FilterError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    root: Node,
}

type Node = Expression<Condition>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    Compare(Comparison),
    /// A part of the display name or of the full name.
    Text(String),
}

#[derive(Debug, Clone)]
struct Comparison {
    field: Field,
    op: Op,
    /// Whether the operator is negated (`!=` and `!~`).
    negated: bool,
    value: String,
    /// The compiled `value` if `op` is [`Op::Matches`].
    regex: Option<Regex>,
    /// The property if the comparison uses the syntax of `dotnet test --filter`, which ignores case.
    property: Option<Property>,
}

impl PartialEq for Comparison {
    fn eq(&self, other: &Self) -> bool {
        let Self { field, op, negated, value, regex: _, property } = self;
        (field, op, negated, value, property)
            == (&other.field, &other.op, &other.negated, &other.value, &other.property)
    }
}

impl Eq for Comparison {}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Field {
    Uid,
    Name,
    /// Only available as a property.
    FullName,
    Class,
    Namespace,
    Method,
    Module,
    File,
    Category,
    Trait(String),
}

impl Field {
    /// The fields with a fixed name, in the order of the documentation.
    const NAMED: [(&'static str, Self); 8] = [
        ("uid", Self::Uid),
        ("name", Self::Name),
        ("class", Self::Class),
        ("namespace", Self::Namespace),
        ("method", Self::Method),
        ("module", Self::Module),
        ("file", Self::File),
        ("category", Self::Category),
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Equal,
    Matches,
    Begins,
    Ends,
    Contains,
}

/// A property of `dotnet test --filter` (<https://learn.microsoft.com/dotnet/core/testing/selective-unit-tests>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Property {
    FullyQualifiedName,
    DisplayName,
    /// An alias of `DisplayName`: the test platform names the property `TestCase.DisplayName` and labels it `Name`.
    Name,
    ClassName,
    TestCategory,
    Category,
    Priority,
}

impl Property {
    const ALL: [(&'static str, Self); 7] = [
        ("FullyQualifiedName", Self::FullyQualifiedName),
        ("DisplayName", Self::DisplayName),
        ("Name", Self::Name),
        ("ClassName", Self::ClassName),
        ("TestCategory", Self::TestCategory),
        ("Category", Self::Category),
        ("Priority", Self::Priority),
    ];

    fn field(self) -> Field {
        match self {
            Self::FullyQualifiedName => Field::FullName,
            Self::DisplayName | Self::Name => Field::Name,
            Self::ClassName => Field::Class,
            Self::TestCategory | Self::Category => Field::Category,
            Self::Priority => Field::Trait("Priority".to_owned()),
        }
    }
}

impl std::str::FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        parse::parse(text).map(|root| Self { root })
    }
}

impl Filter {
    /// Combines filters with `or`; `None` if there are none.
    pub fn any(filters: impl IntoIterator<Item = Self>) -> Option<Self> {
        Self::join(filters, Node::Or)
    }

    /// Combines filters with `and`; `None` if there are none.
    pub fn all(filters: impl IntoIterator<Item = Self>) -> Option<Self> {
        Self::join(filters, Node::And)
    }

    fn join(filters: impl IntoIterator<Item = Self>, with: impl FnOnce(Vec<Node>) -> Node) -> Option<Self> {
        let mut nodes: Vec<Node> = filters.into_iter().map(|filter| filter.root).collect();
        let last = nodes.pop()?;
        if nodes.is_empty() {
            return Some(Self { root: last });
        }
        nodes.push(last);
        Some(Self { root: with(nodes) })
    }

    /// Returns the uids, if the filter consists only of alternatives of the form `uid = …`. Tests can then be run
    /// without discovery; any other filter needs the properties of tests.
    ///
    /// ```
    /// use runtap_test::plan::Filter;
    ///
    /// let filter: Filter = "uid = a1 or uid = 'b 2'".parse()?;
    /// assert_eq!(filter.uids(), Some(vec!["a1", "b 2"]));
    /// assert_eq!("not uid = a1".parse::<Filter>()?.uids(), None);
    /// # Ok::<(), runtap_test::plan::FilterError>(())
    /// ```
    pub fn uids(&self) -> Option<Vec<&str>> {
        let mut uids = Vec::new();
        collect_uids(&self.root, &mut uids).then_some(uids)
    }

    /// Returns whether the filter depends only on uid, display name and module, which are known without discovery when
    /// a test ends.
    ///
    /// ```
    /// use runtap_test::plan::Filter;
    ///
    /// assert!("name ^= Slow and module = Shop.Tests".parse::<Filter>()?.needs_names_only());
    /// assert!(!"name ^= Slow or class = CartTests".parse::<Filter>()?.needs_names_only());
    /// # Ok::<(), runtap_test::plan::FilterError>(())
    /// ```
    pub fn needs_names_only(&self) -> bool {
        let mut names_only = true;
        self.root.each(&mut |condition| {
            names_only &= matches!(
                condition,
                Condition::Compare(Comparison { field: Field::Uid | Field::Name | Field::Module, .. })
            );
        });
        names_only
    }
}

/// Adds the uids of alternatives of the form `uid = …`. Returns false if there is another condition.
fn collect_uids<'a>(node: &'a Node, uids: &mut Vec<&'a str>) -> bool {
    match node {
        Node::Or(nodes) => nodes.iter().all(|node| collect_uids(node, uids)),
        Node::Condition(Condition::Compare(Comparison {
            field: Field::Uid,
            op: Op::Equal,
            negated: false,
            value,
            ..
        })) => {
            uids.push(value);
            true
        }
        _ => false,
    }
}
