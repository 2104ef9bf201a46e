//! Properties of a test that are not part of its results.
//!
//! The module merges them into results.

use serde::{Deserialize, Serialize};

use crate::{Location, TestResult, Trait};

/// The properties of a test that an application reports only when it lists its tests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The namespace of the test's class.
    pub namespace: Option<String>,
    /// The name of the test's class without the namespace.
    pub type_name: Option<String>,
    /// The name of the test's method.
    pub method: Option<String>,
    /// The location of the declaration.
    pub location: Option<Location>,
    /// The categories and properties.
    pub traits: Vec<Trait>,
}

impl Facts {
    /// Returns the total size of the texts, in bytes.
    pub fn bytes(&self) -> usize {
        let texts = [&self.namespace, &self.type_name, &self.method].into_iter().flatten().map(String::len);
        let traits = self.traits.iter().map(|it| it.key.len() + it.value.len());
        texts.chain(traits).chain(self.location.iter().map(|it| it.file.len())).sum()
    }
}

impl TestResult {
    /// Adds listed properties. Missing properties are unchanged.
    pub fn apply_facts(&mut self, facts: Facts) {
        let Facts { namespace, type_name, method, location, traits } = facts;
        if type_name.as_ref().is_some_and(|name| !name.is_empty()) {
            (self.namespace, self.type_name) = (namespace, type_name);
        }
        self.method = method.filter(|method| !method.is_empty()).or_else(|| self.method.take());
        self.location = location.or_else(|| self.location.take());
        if !traits.is_empty() {
            self.traits = traits;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_properties_are_unchanged() {
        let text = |text: &str| Some(text.to_owned());
        let mut test = TestResult::default();
        let whole = Facts {
            namespace: text("Shop"),
            type_name: text("Cart"),
            method: text("Adds"),
            location: Some(Location { file: "Cart.cs".to_owned(), line: None }),
            traits: vec![Trait { key: "slow".to_owned(), value: String::new() }],
        };
        test.apply_facts(whole.clone());
        let known = test.clone();
        assert_eq!((test.class(), test.method.clone()), (text("Shop.Cart"), text("Adds")));
        test.apply_facts(Facts {
            namespace: text("Other"),
            type_name: text(""),
            method: text(""),
            ..Facts::default()
        });
        assert_eq!(test, known);
        // A class without a namespace replaces the namespace too.
        test.apply_facts(Facts { type_name: text("Global"), ..Facts::default() });
        assert_eq!((test.class(), test.location), (text("Global"), whole.location));
    }
}
