//! Property tests of filters: printing and parsing are inverse, and any text is handled.

use proptest::prelude::*;
use regex_lite::Regex;

use super::{Comparison, Condition, Field, Filter, ModuleMatch, Node, Op, Property};
use crate::plan::test::Test;

/// Texts that are likely to be parsed incorrectly.
fn texts() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "a", "and", "or", "NOT", " ", "\t", "\"", "'", "\\", "(", ")", "&", "|", "=", "!", "~", "^", "$",
        "*", "[", "]", "trait", ":", "ü", "📚", ".", "name", "A.B",
    ]);
    prop_oneof![prop::collection::vec(pieces, 0..6).prop_map(|pieces| pieces.concat()), ".{0,6}"]
}

fn comparisons() -> impl Strategy<Value = Comparison> {
    let field = prop_oneof![
        prop::sample::select(Field::NAMED.map(|(_, field)| field).to_vec()),
        texts().prop_map(Field::Trait),
    ];
    let ours = (field, 0..5_usize, any::<bool>(), texts()).prop_map(|(field, op, negated, value)| {
        let (op, value) = match op {
            0 => (Op::Equal, value),
            1 => (Op::Begins, value),
            2 => (Op::Ends, value),
            3 => (Op::Contains, value),
            _ => (Op::Matches, regex_lite::escape(&value)),
        };
        // Only these operators have a negated form.
        let negated = negated && matches!(op, Op::Equal | Op::Matches);
        let regex = (op == Op::Matches).then(|| Regex::new(&value).unwrap());
        Comparison { field, op, negated, value, regex, property: None }
    });
    let property = prop::sample::select(Property::ALL.map(|(_, property)| property).to_vec());
    let theirs =
        (property, any::<bool>(), any::<bool>(), texts()).prop_map(|(property, equal, negated, value)| {
            let op = if equal { Op::Equal } else { Op::Contains };
            Comparison { field: property.field(), op, negated, value, regex: None, property: Some(property) }
        });
    prop_oneof![ours, theirs]
}

fn nodes() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![comparisons().prop_map(Condition::Compare), texts().prop_map(Condition::Text)]
        .prop_map(Node::Condition);
    leaf.prop_recursive(4, 24, 3, |node| {
        prop_oneof![
            prop::collection::vec(node.clone(), 2..4).prop_map(Node::Or),
            prop::collection::vec(node.clone(), 2..4).prop_map(Node::And),
            node.prop_map(|node| Node::Not(Box::new(node))),
        ]
    })
}

fn tests() -> impl Strategy<Value = Test<'static>> {
    let some = || prop::option::of(texts());
    let traits = prop::collection::vec((texts(), texts()), 0..3);
    (texts(), texts(), some(), some(), some(), traits, some(), some()).prop_map(
        |(uid, name, namespace, class, method, traits, file, module)| Test {
            namespace: namespace.map(Into::into),
            class: class.map(Into::into),
            method: method.map(Into::into),
            traits: traits.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
            file: file.map(Into::into),
            module: module.map(Into::into),
            ..Test::new(uid, name)
        },
    )
}

proptest! {
    #[test]
    fn a_printed_filter_parses_to_an_equal_filter(root in nodes()) {
        let filter = Filter { root };
        let text = filter.to_string();
        let again: Filter = text.parse().map_err(|error| TestCaseError::fail(format!("{text:?}: {error}")))?;
        prop_assert_eq!(again, filter, "{}", text);
    }

    #[test]
    fn any_text_is_a_filter_or_an_error_with_a_location(
        text in prop_oneof![".{0,40}", prop::collection::vec(texts(), 0..8).prop_map(|parts| parts.concat())]
    ) {
        match text.parse::<Filter>() {
            Ok(filter) => prop_assert_eq!(filter.to_string().parse::<Filter>().unwrap(), filter),
            Err(error) => {
                prop_assert!(text.get(error.offset..error.offset + error.length).is_some(), "{:?}", error);
                prop_assert!(error.column() <= text.chars().count() + 1);
                prop_assert_eq!(error.caret().lines().count(), 2);
            }
        }
    }

    #[test]
    fn not_is_the_opposite_and_a_module_decides_only_what_it_can(root in nodes(), test in tests()) {
        let filter = Filter { root: root.clone() };
        let opposite = Filter { root: Node::Not(Box::new(root)) };
        prop_assert_ne!(filter.matches(&test), opposite.matches(&test));
        let module = test.module.clone().unwrap_or_default();
        let known = Test { module: Some(module.clone()), ..test };
        match filter.of_module(&module) {
            ModuleMatch::All => prop_assert!(filter.matches(&known)),
            ModuleMatch::None => prop_assert!(!filter.matches(&known)),
            ModuleMatch::Depends => {}
        }
    }

    #[test]
    fn uids_are_exactly_what_matches(uids in prop::collection::vec(texts(), 1..5), other in texts()) {
        let text: Vec<String> = uids.iter().map(|uid| format!("uid = {}", Condition::Text(uid.clone()))).collect();
        let filter: Filter = text.join(" or ").parse().unwrap();
        prop_assert_eq!(filter.uids(), Some(uids.iter().map(String::as_str).collect::<Vec<_>>()));
        prop_assert_eq!(filter.matches(&Test::new(other.as_str(), "")), uids.contains(&other));
    }
}
