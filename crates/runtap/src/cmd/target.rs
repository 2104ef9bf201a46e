//! The options that name a process, as [`runtap_target`] takes them, and one verb for each of the processes that are meant.

mod terminal;
mod words;

use std::path::Path;

use runtap_os::shell;
use runtap_record::Stops;
use runtap_target::{Examined, ResolvedTarget, TargetArgs, TargetSpec, stuck_at_startup};
use runtap_transport::remote::{RemoteAddress, Token, TokenError};

use self::terminal::Terminal;
use self::words::{TAKE_ALL, TAKE_ONE, no_target};
pub(super) use self::words::{of_spec, of_target};
use super::failure::about;
use super::fix;
use super::interrupt::unless;
use crate::cli::{Target, TargetOptions};
use crate::exit::{self, ExpectedError, expected, usage};
use crate::output::Output;

/// The variable that has the token of a router.
pub(super) const TOKEN: &str = "RUNTAP_TOKEN";

/// Exit codes above this say that a signal has ended us.
const INTERRUPTIONS: u8 = 128;

/// What the options name.
///
/// # Errors
/// Code 2.
pub(super) fn meant(target: &Target) -> anyhow::Result<TargetSpec> {
    let TargetOptions { process_id, name, user, diagnostic_port, token_file } = &target.options;
    let token = token_for([diagnostic_port, &target.word], token_file.as_deref())?;
    let given = TargetArgs {
        pid: *process_id,
        name: name.as_deref(),
        user: user.as_deref(),
        port: diagnostic_port.as_deref(),
        word: target.word.as_deref(),
        token: token.as_ref(),
    };
    TargetSpec::parse(&given).map_err(of_spec)
}

/// The token, where one of these is a process of another machine.
///
/// # Errors
/// Code 2: it is none.
pub(super) fn token_for(words: [&Option<String>; 2], file: Option<&Path>) -> anyhow::Result<Option<Token>> {
    if words.into_iter().flatten().any(|word| RemoteAddress::is_meant(word)) { token(file) } else { Ok(None) }
}

/// The token of a file, else of the environment.
///
/// # Errors
/// Code 2: it is none.
pub(super) fn token(file: Option<&Path>) -> anyhow::Result<Option<Token>> {
    let token = match file {
        Some(file) => Token::from_file(file),
        None => match std::env::var_os(TOKEN) {
            Some(token) => Token::new(token.as_encoded_bytes()),
            None => return Ok(None),
        },
    };
    token.map(Some).map_err(|error| {
        let hint = match &error {
            TokenError::Readable { path, .. } => format!("chmod 600 {}", shell::word(path)),
            TokenError::Length { .. } => {
                "make one: (umask 077; head -c 32 /dev/urandom | base64 > FILE)".to_owned()
            }
            _ => format!("give the file of the token with --token-file, or the token itself in {TOKEN}"),
        };
        expected(exit::USAGE, format!("token: {error}"), hint)
    })
}

/// Finds the process that the options name.
///
/// # Errors
/// Code 2 without a target, 3 when there is no such process or it has no socket we can use.
#[cfg_attr(not(unix), allow(dead_code, reason = "for verbs that are not there"))]
pub(super) async fn choose(target: &Target, output: Output) -> anyhow::Result<ResolvedTarget> {
    let chosen = meant(target)?.resolve(&Terminal(output)).await;
    match chosen {
        Ok(chosen) => Ok(chosen),
        Err(error) => Err(of_target(error, TAKE_ONE, output).await),
    }
}

/// Finds every process that the options name: with `--all` a name may stand for several of one user.
///
/// # Errors
/// As [`choose`].
pub(super) async fn choose_all(
    target: &Target,
    all: bool,
    output: Output,
) -> anyhow::Result<Vec<ResolvedTarget>> {
    resolve(&meant(target)?, all, output).await
}

/// The same for what is known to be meant.
///
/// # Errors
/// As [`choose`].
pub(super) async fn resolve(
    spec: &TargetSpec,
    all: bool,
    output: Output,
) -> anyhow::Result<Vec<ResolvedTarget>> {
    let terminal = Terminal(output);
    let chosen = if all {
        spec.resolve_all(&terminal).await
    } else {
        spec.resolve(&terminal).await.map(|one| vec![one])
    };
    match chosen {
        Ok(chosen) => Ok(chosen),
        Err(error) => Err(of_target(error, TAKE_ALL, output).await),
    }
}

/// Examines the processes that the options name, and without any all of them.
///
/// # Errors
/// As [`choose`], except that nothing has to answer.
pub(super) async fn examine(target: &Target, all: bool, output: Output) -> anyhow::Result<Examined> {
    let examined = meant(target)?.examine(all, &Terminal(output)).await;
    match examined {
        Ok(examined) => Ok(examined),
        Err(error) => Err(of_target(error, TAKE_ALL, output).await),
    }
}

/// Does the same to each of them, one after the other: where it fails, that is told, and the others have their turn. Where a name
/// was all that was said, it says which process is meant, and whose it is. The first failure decides on the exit code.
///
/// # Errors
/// Those of a single one, and an interruption, which is meant for all.
pub(super) async fn each(
    chosen: Vec<ResolvedTarget>,
    output: Output,
    act: impl AsyncFn(ResolvedTarget, Output) -> anyhow::Result<u8>,
) -> anyhow::Result<u8> {
    let (several, output) = (chosen.len() > 1, output.for_results(chosen.len()));
    let mut code = exit::OK;
    for chosen in chosen {
        let pid = chosen.process.as_ref().map(|process| process.pid);
        if let Some((name, process)) = chosen.chosen_name() {
            output.note(format_args!("'{name}' is process {} of user {}", process.pid, process.user));
        }
        let own = match act(chosen, output).await {
            Err(error)
                if several && !exit::is_broken_pipe(&error) && exit::code_of(&error) <= INTERRUPTIONS =>
            {
                let hint = error.downcast_ref::<ExpectedError>().and_then(|expected| expected.hint.clone());
                output.error(&about(pid, &error), hint.as_deref());
                exit::code_of(&error)
            }
            other => other?,
        };
        if own > INTERRUPTIONS {
            return Ok(own);
        }
        if code == exit::OK {
            code = own;
        }
    }
    Ok(code)
}

/// A process that waits for a port on which nobody listens would give an empty session.
///
/// # Errors
/// Code 4.
pub(super) async fn refuse_stuck(chosen: &[ResolvedTarget], stops: &Stops) -> anyhow::Result<()> {
    match unless(stops, stuck_at_startup(chosen)).await? {
        Some((pid, finding)) => Err(expected(
            exit::REFUSED,
            format!("process {pid} {}", finding.detail),
            fix::text(&finding.fixes),
        )),
        None => Ok(()),
    }
}

/// For verbs that need the target's files, or its kernel.
///
/// # Errors
/// Code 3: one of them is on another machine.
pub(super) fn refuse_remote(chosen: &[ResolvedTarget], why: &str) -> anyhow::Result<()> {
    match chosen.iter().find(|chosen| chosen.is_remote()) {
        Some(remote) => {
            let message = format!("{} is on another machine: {why}", remote.label());
            Err(expected(exit::NO_TARGET, message, "run this command on that machine".to_owned()))
        }
        None => Ok(()),
    }
}

/// For verbs with words of their own: without an option that names the process, the first word does. `what` has to
/// follow it.
///
/// # Errors
/// Code 2 when no word is left, or none could name a process.
pub(super) fn first_word<'a>(
    options: &TargetOptions,
    words: &'a [String],
    what: &str,
) -> anyhow::Result<(Target, &'a [String])> {
    let (word, rest) = match words {
        _ if options.any() => (None, words),
        [word, rest @ ..] if !rest.is_empty() => (Some(word.clone()), rest),
        // Which of the two it is can be guessed.
        [word] if what.contains('=') && word.contains('=') || what.contains('/') && word.contains('/') => {
            return Err(no_target());
        }
        [word] => {
            return Err(usage(format!(
                "'{word}' is taken for the process, and nothing follows it: {what} is missing"
            )));
        }
        _ => return Err(no_target()),
    };
    Ok((Target { word, options: options.clone() }, rest))
}
