//! `runtap set-env`

use runtap_target::Subject;

use super::failure::explain;
use super::target::{choose_all, each, first_word};
use crate::cli::SetEnv;
use crate::exit::{self, usage};
use crate::output::Output;

/// `NAME=VALUE`, or `NAME` to remove it.
#[derive(Debug, PartialEq, Eq)]
struct Change<'a> {
    name: &'a str,
    value: Option<&'a str>,
}

impl<'a> Change<'a> {
    fn parse(word: &'a str) -> anyhow::Result<Self> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        if name.is_empty() {
            return Err(usage(format!("'{word}' has no name: write NAME=VALUE, or NAME to remove it")));
        }
        Ok(Self { name, value })
    }
}

pub(super) async fn run(options: &SetEnv, output: Output) -> anyhow::Result<u8> {
    let (target, words) = first_word(&options.target, &options.words, "NAME=VALUE")?;
    // A mistake in the last word is told before the first one has an effect.
    let changes = words.iter().map(|word| Change::parse(word)).collect::<anyhow::Result<Vec<_>>>()?;
    let all = choose_all(&target, options.all.all, output).await?;
    each(all, output, async |chosen, output| set(&chosen, &changes, output).await).await
}

async fn set(chosen: &Subject, changes: &[Change<'_>], output: Output) -> anyhow::Result<u8> {
    for Change { name, value } in changes {
        chosen.client.set_environment_variable(name, *value).await.map_err(explain)?;
        match value {
            Some(value) => output.detail(format_args!("{name} is set to '{value}'")),
            None => output.detail(format_args!("{name} is removed")),
        }
    }
    Ok(exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let change = |name, value| Change { name, value };
        assert_eq!(Change::parse("A=1").unwrap(), change("A", Some("1")));
        assert_eq!(Change::parse("A=").unwrap(), change("A", Some("")));
        assert_eq!(Change::parse("A=x=y z").unwrap(), change("A", Some("x=y z")));
        assert_eq!(Change::parse("A").unwrap(), change("A", None));
        for word in ["=1", "", "="] {
            assert!(Change::parse(word).is_err(), "{word}");
        }
    }
}
