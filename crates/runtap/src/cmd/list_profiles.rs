//! `runtap list-profiles`: lists the profiles of `--profile` and their providers.

use runtap_record::providers::PROFILES;
use runtap_text::Output;
use runtap_text::document::{ProfileRow, ProfilesDocument, ProviderRow};

use crate::exit;

pub(super) fn run(output: Output) -> anyhow::Result<u8> {
    let profiles = PROFILES.iter().map(|profile| {
        let providers = profile.providers().into_iter();
        let rows =
            providers.map(|it| ProviderRow::new(it.name, it.keywords, it.level.number(), it.arguments));
        ProfileRow { name: profile.name, about: profile.about, providers: rows.collect() }
    });
    output.show(&ProfilesDocument::new(profiles.collect()))?;
    Ok(exit::OK)
}
