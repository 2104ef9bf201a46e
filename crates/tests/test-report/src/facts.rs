//! What is told of a test apart from its results.
//!
//! Owns: how both come together. Refuses to: know who told it.

use serde::{Deserialize, Serialize};

use crate::{Location, TestResult, Trait};

/// What an application tells of a test only when it lists its tests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The namespace of its type.
    pub namespace: Option<String>,
    /// The name of its type without the namespace.
    pub type_name: Option<String>,
    /// The name of its method.
    pub method: Option<String>,
    /// Where it is declared.
    pub location: Option<Location>,
    /// Categories and properties.
    pub traits: Vec<Trait>,
}

impl Facts {
    /// How many bytes their texts have.
    pub fn bytes(&self) -> usize {
        let texts = [&self.namespace, &self.type_name, &self.method].into_iter().flatten().map(String::len);
        let traits = self.traits.iter().map(|it| it.key.len() + it.value.len());
        texts.chain(traits).chain(self.location.iter().map(|it| it.file.len())).sum()
    }
}

impl TestResult {
    /// Takes in what was told of the test elsewhere. What that does not say stays as it is.
    pub fn learn(&mut self, facts: Facts) {
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
    fn what_is_not_said_stays() {
        let text = |text: &str| Some(text.to_owned());
        let mut test = TestResult::default();
        let whole = Facts {
            namespace: text("Shop"),
            type_name: text("Cart"),
            method: text("Adds"),
            location: Some(Location { file: "Cart.cs".to_owned(), line: None }),
            traits: vec![Trait { key: "slow".to_owned(), value: String::new() }],
        };
        test.learn(whole.clone());
        let known = test.clone();
        assert_eq!((test.class(), test.method.clone()), (text("Shop.Cart"), text("Adds")));
        test.learn(Facts {
            namespace: text("Other"),
            type_name: text(""),
            method: text(""),
            ..Facts::default()
        });
        assert_eq!(test, known);
        // A class without a namespace has none, whatever was known before.
        test.learn(Facts { type_name: text("Global"), ..Facts::default() });
        assert_eq!((test.class(), test.location), (text("Global"), whole.location));
    }
}
