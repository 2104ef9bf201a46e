//! Explanations of filters that match no tests.

use std::collections::BTreeSet;

use super::{Comparison, Condition, Field, Filter, Node, Op};
use crate::plan::test::Test;
use runtap_wire::nearest;

/// A condition that no test meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// The condition, as a filter.
    pub condition: String,
    /// The condition with the most similar existing value, if any.
    pub nearest: Option<String>,
}

impl Filter {
    /// Creates the filter `uid = UID`.
    pub fn of_uid(uid: &str) -> Self {
        let (field, op, value) = (Field::Uid, Op::Equal, uid.to_owned());
        let comparison = Comparison { field, op, negated: false, value, regex: None, property: None };
        Self { root: Node::Condition(Condition::Compare(comparison)) }
    }

    /// Returns the conditions of this filter that no test meets, in the order of the filter, without negated
    /// conditions.
    ///
    /// ```
    /// use runtap_test::plan::{Filter, Test};
    ///
    /// let mut test = Test::new("1", "Adds a line");
    /// test.class = Some("CartTests".into());
    /// let filter: Filter = "class = CartTest and name ^= Adds".parse()?;
    /// let unmet = filter.unmet(&[test]);
    /// assert_eq!(unmet.len(), 1);
    /// assert_eq!(unmet[0].condition, "class = CartTest");
    /// assert_eq!(unmet[0].nearest.as_deref(), Some("class = CartTests"));
    /// # Ok::<(), runtap_test::plan::FilterError>(())
    /// ```
    pub fn unmet(&self, tests: &[Test<'_>]) -> Vec<Unmet> {
        let mut unmet = Vec::new();
        collect_unmet(&self.root, tests, &mut unmet);
        unmet
    }
}

fn collect_unmet(node: &Node, tests: &[Test<'_>], unmet: &mut Vec<Unmet>) {
    match node {
        Node::Or(nodes) | Node::And(nodes) => {
            for node in nodes {
                collect_unmet(node, tests, unmet);
            }
        }
        Node::Not(_) | Node::Condition(Condition::Compare(Comparison { negated: true, .. })) => {}
        Node::Condition(condition) => {
            if !tests.iter().any(|test| condition.meets(test)) {
                let nearest = match condition {
                    Condition::Compare(comparison) => comparison.nearest(tests).map(|it| it.to_string()),
                    Condition::Text(_) => None,
                };
                unmet.push(Unmet { condition: condition.to_string(), nearest });
            }
        }
    }
}

impl Comparison {
    /// Returns the comparison with the most similar value of a test.
    fn nearest(&self, tests: &[Test<'_>]) -> Option<Self> {
        if self.op != Op::Equal {
            return None;
        }
        let mut values = BTreeSet::new();
        for test in tests {
            self.field.any_form(test, self.op, |form| {
                values.insert(form.to_owned());
                false
            });
        }
        let value = nearest(&self.value, values.iter().map(String::as_str))?.to_owned();
        Some(Self { value, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests() -> Vec<Test<'static>> {
        [("1", "Adds a line", "CartTests"), ("2", "Pays", "OrderTests")]
            .map(|(uid, name, class)| Test { class: Some(class.into()), ..Test::new(uid, name) })
            .to_vec()
    }

    fn unmet(filter: &str) -> Vec<(String, Option<String>)> {
        let filter: Filter = filter.parse().unwrap();
        filter.unmet(&tests()).into_iter().map(|it| (it.condition, it.nearest)).collect()
    }

    #[test]
    fn unmet_conditions_are_reported_with_suggestions() {
        let nothing_like_it = |condition: &str| vec![(condition.to_owned(), None)];
        assert_eq!(unmet("class = CartTests and name = Pays"), [], "each condition is met by some test");
        assert_eq!(unmet("class = Billing"), nothing_like_it("class = Billing"));
        assert_eq!(unmet("category = Slow"), nothing_like_it("category = Slow"));
        assert_eq!(unmet("name ~ '^Sells'"), nothing_like_it("name ~ ^Sells"));
        assert_eq!(unmet("checkout"), nothing_like_it("\"checkout\""));
        assert_eq!(
            unmet("class = OrdersTests or ClassName=carttest"),
            [
                ("class = OrdersTests".to_owned(), Some("class = OrderTests".to_owned())),
                ("ClassName = carttest".to_owned(), Some("ClassName = CartTests".to_owned())),
            ]
        );
        let uid = Filter::of_uid("b 3");
        assert_eq!(uid, "uid = 'b 3'".parse().unwrap());
        assert_eq!(uid.unmet(&tests()).len(), 1);
        assert_eq!(unmet("not class = Billing"), []);
        assert_eq!(unmet("class != CartTests and class != OrderTests"), []);
    }
}
