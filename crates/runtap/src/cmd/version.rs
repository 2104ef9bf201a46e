//! `runtap version`

use serde::Serialize;

use crate::output::Output;

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the JSON has these names")]
struct Version {
    schema: &'static str,
    version: &'static str,
    commit: Option<&'static str>,
    target: &'static str,
}

pub(crate) fn run(output: Output) -> anyhow::Result<u8> {
    let version = Version {
        schema: "runtap.version/1",
        version: env!("CARGO_PKG_VERSION"),
        commit: option_env!("RUNTAP_COMMIT"),
        target: env!("RUNTAP_TARGET"),
    };
    if output.json() {
        output.document(&version)?;
    } else {
        let commit = version.commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
        output.text(format_args!("runtap {}{commit} {}\n", version.version, version.target))?;
    }
    Ok(crate::exit::OK)
}
