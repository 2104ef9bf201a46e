//! Ids of methods and of exceptions by name, assigned once per process.
//!
//! Owns: [`Names`]. Locked while a class is loaded, when a thread throws an exception of a class for the first time, and once
//! for each name that is sent to HQ.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::session::locked;

/// Names in modified UTF-8, with ids from 0.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    ids: HashMap<Arc<[u8]>, u32>,
    list: Vec<Arc<[u8]>>,
}

impl Names {
    /// Returns the id of a name. `None` if `most` other names have ids.
    pub(crate) fn id(&self, name: &[u8], most: u32) -> Option<u32> {
        let mut inner = locked(&self.0);
        if let Some(id) = inner.ids.get(name) {
            return Some(*id);
        }
        let id = u32::try_from(inner.list.len()).ok().filter(|id| *id < most)?;
        let name: Arc<[u8]> = name.into();
        inner.list.push(Arc::clone(&name));
        inner.ids.insert(name, id);
        Some(id)
    }

    /// Returns the name of an id.
    pub(crate) fn name(&self, id: u32) -> Option<Arc<[u8]>> {
        locked(&self.0).list.get(id as usize).cloned()
    }

    /// Returns the number of names.
    pub(crate) fn count(&self) -> usize {
        locked(&self.0).list.len()
    }
}
