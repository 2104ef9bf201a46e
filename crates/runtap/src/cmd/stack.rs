//! `runtap stack`: prints the threads of .NET and Java programs with their stacks.

use runtap_model::Message;
use runtap_record::heap::{HeapError, HeapRequest, take_async_snapshot};
use runtap_record::{Stops, ThreadSnapshot, take_thread_snapshot};
use runtap_target::{JvmTarget, ManagedTarget, ResolvedTarget, ThreadRequest, local_name};
use runtap_text::{Output, StackList, TextOptions};

use super::failure::{print_process_error, recording_error};
use super::heap;
use super::interrupt::unless;
use super::target::{choose_managed, reject_suspended, target_error};
use crate::cli::Stack;
use crate::exit;

pub(super) async fn run(options: &Stack, output: Output) -> anyhow::Result<u8> {
    let stops = Stops::listen()?;
    let all = unless(&stops, choose_managed(&options.target, options.all.all, output)).await?;
    let (several, output) = (all.len() > 1, output.for_results(all.len()));
    let mut code = exit::OK;
    for (n, chosen) in all.iter().enumerate() {
        if n > 0 && !output.json() {
            output.text("\n")?;
        }
        let (pid, result) = match chosen {
            ManagedTarget::Dotnet(chosen) => {
                (chosen.pid(), print_dotnet(chosen, options, &stops, output).await)
            }
            ManagedTarget::Jvm(chosen) => {
                (Some(chosen.pid()), unless(&stops, print_jvm(chosen, options, output)).await)
            }
        };
        let code_of_process = match result {
            Err(error) if several && !stops.is_stopping() && !exit::is_broken_pipe(&error) => {
                print_process_error(pid, &error, output)
            }
            other => other?,
        };
        if code == exit::OK {
            code = code_of_process;
        }
    }
    Ok(code)
}

async fn print_dotnet(
    chosen: &ResolvedTarget,
    options: &Stack,
    stops: &Stops,
    output: Output,
) -> anyhow::Result<u8> {
    let snapshot = async {
        reject_suspended(chosen).await?;
        take_thread_snapshot(chosen).await.map_err(recording_error)
    };
    let mut snapshot = unless(stops, snapshot).await?;
    let (mut messages, mut is_partial) = snapshot.messages();
    if options.r#async {
        is_partial |= add_async_chains(&mut snapshot, chosen, stops, &mut messages, output).await?;
    }
    let name = chosen.process.as_ref().map(local_name);
    let list = StackList {
        pid: chosen.pid(),
        kind: "dotnet",
        name: name.as_deref(),
        dump: &snapshot.dump,
        is_merged: options.merge,
        has_virtual_threads: None,
    };
    show(&list, output)?;
    output.messages(messages);
    Ok(if is_partial { exit::PARTIAL } else { exit::OK })
}

/// Adds the async methods that wait. Returns whether some are missing.
async fn add_async_chains(
    snapshot: &mut ThreadSnapshot,
    chosen: &ResolvedTarget,
    stops: &Stops,
    messages: &mut Vec<Message>,
    output: Output,
) -> anyhow::Result<bool> {
    let tell = |signal| heap::tell(signal, output);
    let taken = take_async_snapshot(chosen, HeapRequest::default(), stops, &tell).await;
    output.end_status();
    match taken {
        Ok(taken) => {
            let (more, is_partial) = taken.messages();
            messages.extend(more);
            snapshot.dump.async_chains = Some(taken.chains);
            Ok(is_partial)
        }
        Err(error @ HeapError::Interrupted) => Err(heap::explain(error, stops)),
        Err(error) => {
            messages.push(Message::Warning(format!("async methods are missing: {error}")));
            Ok(true)
        }
    }
}

async fn print_jvm(chosen: &JvmTarget, options: &Stack, output: Output) -> anyhow::Result<u8> {
    let request = ThreadRequest { lock_owners: options.locks, virtual_threads: !options.no_virtual };
    let reply = match chosen.thread_dump(request).await {
        Ok(reply) => reply,
        Err(error) => return Err(target_error(error, "", output).await),
    };
    let name = chosen.name();
    let list = StackList {
        pid: Some(chosen.pid()),
        kind: "jvm",
        name: Some(&name),
        dump: &reply.dump,
        is_merged: options.merge,
        has_virtual_threads: reply.has_virtual_threads,
    };
    show(&list, output)?;
    if options.r#async {
        let advice =
            "--async applies only to .NET programs. Virtual threads are listed with the other threads";
        output.note(format_args!(
            "{advice}{}",
            if options.no_virtual { " without --no-virtual." } else { "." }
        ));
    }
    let Some(why) = reply.why_not else { return Ok(exit::OK) };
    output.warning(format_args!("virtual threads are missing: {why}"));
    Ok(exit::PARTIAL)
}

fn show(list: &StackList<'_>, output: Output) -> anyhow::Result<()> {
    Ok(output.show_with(list, &TextOptions { width: output.columns(), ..output.options() })?)
}
