//! Changes of the environment by clients. The process's own variables stay unchanged, as in a .NET process, whose
//! runtime has a copy: changing the variables of a process with threads is unsafe.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use runtap_diag_proto::{Hresult, Variable};

/// The most bytes of names and values that clients may set.
const MAX_BYTES: usize = 1 << 20;

/// Changed variables by name; `None` for a removed one.
#[derive(Debug, Default)]
pub(crate) struct Changes(Mutex<BTreeMap<String, Option<String>>>);

impl Changes {
    /// Stores a change. Rejected if the changes become too large.
    pub(crate) fn set(&self, name: String, value: Option<String>) -> Result<(), Hresult> {
        let mut changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let size = |name: &str, value: &Option<String>| name.len() + value.as_ref().map_or(0, String::len);
        let others = changes.iter().filter(|(known, _)| **known != name);
        let bytes: usize = others.map(|(name, value)| size(name, value)).sum();
        if bytes + size(&name, &value) > MAX_BYTES {
            return Err(Hresult::E_FAIL);
        }
        changes.insert(name, value);
        Ok(())
    }

    /// Returns the value of a variable; `unchanged` provides it if the variable was not changed.
    pub(crate) fn get(&self, name: &str, unchanged: impl FnOnce() -> Option<String>) -> Option<String> {
        let changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        changes.get(name).map_or_else(unchanged, Clone::clone)
    }

    /// Applies the changes to `variables`.
    pub(crate) fn apply(&self, mut variables: Vec<Variable>) -> Vec<Variable> {
        let changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        variables.retain(|variable| !changes.contains_key(variable.name()));
        let set = changes.iter().filter_map(|(name, value)| Some(Variable::new(name, value.as_deref()?)));
        variables.extend(set);
        variables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_seen_and_bounded() {
        let changes = Changes::default();
        changes.set("A".into(), Some("1".into())).unwrap();
        changes.set("B".into(), None).unwrap();
        let before = ["A", "B", "C"].map(|name| Variable::new(name, "old"));
        let after = changes.apply(before.to_vec());
        assert_eq!(after, [Variable::new("C", "old"), Variable::new("A", "1")]);
        let get = |name| changes.get(name, || Some("old".to_owned()));
        assert_eq!(["A", "B", "C"].map(get), [Some("1".to_owned()), None, Some("old".to_owned())]);
        assert_eq!(changes.set("D".into(), Some("x".repeat(MAX_BYTES))), Err(Hresult::E_FAIL));
        // The new value replaces the old one within the limit.
        changes.set("A".into(), Some("x".repeat(MAX_BYTES - 2))).unwrap();
        assert!(changes.set("D".into(), Some("x".into())).is_err());
    }
}
