//! The dialogue with the user about the choice of a target: remarks, and a list to pick from.

use std::io::{self, BufRead, IsTerminal};

use runtap_os::in_a_thread;
use runtap_target::messages::{self, invalid_choice};
use runtap_target::{Dialogue, Question, Remark, local_name};
use runtap_text::Output;

use crate::cmd::named_port::note_listening;

pub(super) struct Terminal(pub(super) Output);

impl Dialogue for Terminal {
    fn remark(&self, remark: Remark<'_>) {
        match remark {
            Remark::Listening(port) => note_listening(port, self.0),
            remark => self.0.messages(messages::remark(&remark)),
        }
    }

    fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    async fn ask(&self, Question { processes, invalid_answer: before }: Question<'_>) -> io::Result<String> {
        let (output, of) = (self.0, processes.len());
        match before {
            Some(answer) => output.essential(invalid_choice(answer, of)),
            None => {
                for (i, process) in processes.iter().enumerate() {
                    let (n, pid, user, name) = (i + 1, process.pid, &process.user, local_name(process));
                    let command_line = process.command_line.join(" ");
                    output.item(format_args!("{n:>3}  {pid:>8}  {user:<10}  {name:<20} {command_line}"));
                }
            }
        }
        output.essential(format_args!("Select a process [1-{of}]:"));
        in_a_thread(|| {
            let mut line = String::new();
            io::stdin().lock().read_line(&mut line).map(|_| line)
        })
        .await?
    }
}
