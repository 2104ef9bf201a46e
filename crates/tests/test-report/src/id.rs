//! Stable identifiers, equal for a test in every run and on every machine.
//!
//! An identifier is a UUID of version 8 (RFC 9562, section 5.8) from the first 16 bytes of the SHA-256 of a kind and
//! its parts. Each part is preceded by its length, so that `("ab", "c")` and `("a", "bc")` differ.

use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};

use crate::{Module, Run, TestResult};

fn derive(kind: &str, parts: &[&[u8]]) -> Uuid {
    let mut hash = Sha256::new();
    for part in [kind.as_bytes()].iter().chain(parts) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut bytes = [0; 16];
    for (byte, of_hash) in bytes.iter_mut().zip(hash.finalize()) {
        *byte = of_hash;
    }
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// Returns the identifier of a test, derived from its module's name and framework and its uid. Neither the path, which
/// differs between machines, nor the display name, which may contain random values, is used.
pub(crate) fn test(module: &Module, result: &TestResult) -> Uuid {
    let parts = [module.name.as_bytes(), module.framework.as_bytes(), module.architecture.as_bytes()];
    derive("test", &[parts[0], parts[1], parts[2], result.uid.as_bytes()])
}

/// Returns the identifier of a result within its run, because a test may have several results.
pub(crate) fn execution(run: Uuid, module: usize, index: usize) -> Uuid {
    let (module, index) = ((module as u64).to_le_bytes(), (index as u64).to_le_bytes());
    derive("execution", &[run.as_bytes(), &module, &index])
}

/// Returns the identifier of a run, derived from its start, machine and command line.
pub(crate) fn run(run: &Run) -> Uuid {
    let started = crate::time::timestamp(run.started);
    let mut parts = vec![started.as_bytes(), run.machine.as_bytes()];
    parts.extend(run.command.iter().map(String::as_bytes));
    derive("run", &parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_parts_have_equal_ids_and_different_parts_do_not() {
        let one = derive("test", &[b"ab", b"c"]);
        assert_eq!(one.to_string(), "131f27f5-907d-8c43-8b14-426855b9d16a");
        assert_eq!(one, derive("test", &[b"ab", b"c"]));
        assert_ne!(one, derive("test", &[b"a", b"bc"]));
        assert_ne!(one, derive("run", &[b"ab", b"c"]));
        assert_eq!(one.get_version_num(), 8);
    }
}
