//! The dialogue with the user about the choice of a target: remarks, and a list to pick from.

use std::io::{self, BufRead, IsTerminal};

use runtap_os::{in_a_thread, shell};
use runtap_target::{Dialogue, Question, Remark, local_name};

use super::words::{invalid_choice, limited_list};
use crate::cmd::named_port::note_listening;
use crate::cmd::trace::describe_peer;
use crate::output::Output;

pub(super) struct Terminal(pub(super) Output);

impl Dialogue for Terminal {
    fn remark(&self, remark: Remark<'_>) {
        let output = self.0;
        match remark {
            Remark::Connecting { pid, endpoint } => {
                output.detail(format_args!("process {pid} is asked on {endpoint}"));
            }
            Remark::Router { pid, path } => output.note(format_args!(
                "process {pid} is a router; the program that it stands for is asked with --diagnostic-port {}",
                shell::path(path)
            )),
            Remark::SkippedOtherUsers { name, processes } => {
                let list = limited_list(processes, |it| format!("{} (user {})", it.pid, it.user), "");
                output.note(format_args!(
                    "processes of other users that are called '{name}' are left out: {}; --user takes those of one",
                    list.join(", ")
                ));
            }
            Remark::Listening(port) => note_listening(port, output),
            Remark::RejectedPeer(peer) => output.warning(format_args!(
                "{} has dialled in and was disconnected: only a program of your own or of root is taken here; still waiting",
                describe_peer(peer)
            )),
            Remark::NotInspected(processes) => output.warning(format_args!(
                "whether {processes} processes are .NET is not known: they, or others of their users, have more memory \
                 mappings than are read; 'runtap doctor PID' looks at one alone"
            )),
        }
    }

    fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    async fn ask(&self, Question { processes, invalid_answer: before }: Question<'_>) -> io::Result<String> {
        let (output, of) = (self.0, processes.len());
        match before {
            Some(answer) => output.ask(invalid_choice(answer, of)),
            None => {
                for (i, process) in processes.iter().enumerate() {
                    let (n, pid, user, name) = (i + 1, process.pid, &process.user, local_name(process));
                    let command_line = process.command_line.join(" ");
                    output.item(format_args!("{n:>3}  {pid:>8}  {user:<10}  {name:<20} {command_line}"));
                }
            }
        }
        output.ask(format_args!("which one [1-{of}]?"));
        in_a_thread(|| {
            let mut line = String::new();
            io::stdin().lock().read_line(&mut line).map(|_| line)
        })
        .await?
    }
}
