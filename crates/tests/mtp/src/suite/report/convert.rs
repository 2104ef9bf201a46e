//! Conversions of the runner's results, facts and artifacts to those of reports.

use runtap_test_report::{Artifact, Facts, Location, Trait};

pub(super) fn facts(known: &crate::TestInfo) -> Facts {
    let line = known.line.and_then(|line| u32::try_from(line).ok());
    let traits = known.traits.iter();
    Facts {
        namespace: known.namespace.clone(),
        type_name: known.type_name.clone(),
        method: known.method.clone(),
        location: known.file.clone().map(|file| Location { file, line }),
        traits: traits.map(|(key, value)| Trait { key: key.clone(), value: value.clone() }).collect(),
    }
}

pub(super) fn shown_artifact(artifact: &crate::Artifact) -> Artifact {
    Artifact {
        path: artifact.path.to_string_lossy().into_owned(),
        name: artifact.name.clone().unwrap_or_default(),
        description: artifact.description.clone().unwrap_or_default(),
    }
}
