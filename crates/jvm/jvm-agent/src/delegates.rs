//! Constructors that delegate to another constructor without a handler: an exception that ends the callee ends the caller.
//!
//! Owns: [`Delegates`]. Locked while a class is loaded, and when an exception ends a call.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::session::locked;

/// Constructors by id, each with the class and the descriptor of the constructor that it calls.
#[derive(Debug, Default)]
pub(crate) struct Delegates(Mutex<HashMap<u32, Target>>);

#[derive(Debug)]
struct Target {
    class: Box<[u8]>,
    descriptor: Box<[u8]>,
}

impl Delegates {
    pub(crate) fn add(&self, constructor: u32, class: &[u8], descriptor: &[u8]) {
        let target = Target { class: class.into(), descriptor: descriptor.into() };
        locked(&self.0).insert(constructor, target);
    }

    /// Returns whether a constructor calls the method of a signature, `class.method;access;descriptor`.
    pub(crate) fn calls(&self, constructor: u32, signature: &[u8]) -> bool {
        let known = locked(&self.0);
        let Some(target) = known.get(&constructor) else { return false };
        let rest = signature.strip_prefix(&*target.class).and_then(|rest| rest.strip_prefix(b".<init>;"));
        rest.and_then(|rest| rest.strip_suffix(&*target.descriptor))
            .is_some_and(|access| access.ends_with(b";"))
    }
}
