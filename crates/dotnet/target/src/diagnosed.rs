//! Which processes are examined, and what they are called: also those that can't be reached, whosever they are, because nothing
//! is changed. The examination itself is the doctor's.

use crate::doctor::{Answer, Diagnosis, Examination, Finding};
use runtap_discover::{Facts, Options, Process, System};
use runtap_os::in_a_thread;

#[cfg_attr(target_os = "linux", path = "diagnosed/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "diagnosed/elsewhere.rs")]
mod machine;

use self::machine::machine;
use crate::dialogue::{Dialogue, Remark};
use crate::error::{Error, Row};
use crate::named::java_called;
use crate::spec::TargetSpec;
use crate::subject::name_of;
use crate::user::Whose;

/// A process that was looked at.
#[derive(Debug)]
#[non_exhaustive]
pub struct Diagnosed {
    /// What people call it: its entry assembly, else the name of its file. May be empty.
    pub name: String,
    /// What is known of it.
    pub examination: Examination,
    /// What is wrong with it.
    pub diagnosis: Diagnosis,
}

/// What was looked at.
#[derive(Debug)]
pub enum Examined {
    /// Those that were named; at least one.
    Named(Vec<Diagnosed>),
    /// Nobody was named: every process that looks like .NET, and the machine.
    All(Vec<Diagnosed>, Vec<Finding>),
}

impl TargetSpec {
    /// Examines what is meant, whether it can be reached or not. A name stands for processes of every user unless one is given;
    /// with `all` for several.
    ///
    /// # Errors
    /// Nobody, or somebody besides, is called so.
    pub async fn examine(&self, all: bool, dialogue: &impl Dialogue) -> Result<Examined, Error> {
        let system = System::current();
        let pid = match self {
            Self::Pid(pid) => *pid,
            Self::Port(port) => port.resolve(dialogue).await?.pids().await?.0,
            Self::Name { name, user } => {
                let found = named(&system, name, Whose(user.as_deref()), all, dialogue).await?;
                return Ok(Examined::Named(found.into_iter().map(Diagnosed::from).collect()));
            }
            Self::Remote(remote) => return Err(Error::Elsewhere(remote.address.to_string())),
            Self::Ask => {
                let diagnosed =
                    everybody(&system, dialogue).await?.into_iter().map(Diagnosed::from).collect();
                return Ok(Examined::All(diagnosed, machine(system).await?));
            }
        };
        Ok(Examined::Named(vec![Diagnosed::from(crate::doctor::examine(&system, pid).await?)]))
    }
}

impl From<Examination> for Diagnosed {
    fn from(examination: Examination) -> Self {
        Self { name: name(&examination), diagnosis: examination.diagnose(), examination }
    }
}

/// All that look like .NET, by name, then by pid. How long it takes to look at them is theirs to choose.
async fn everybody(system: &System, dialogue: &impl Dialogue) -> Result<Vec<Examination>, Error> {
    let looking = system.clone();
    let found = in_a_thread(move || looking.dotnet_facts()).await?;
    if found.not_looked_at > 0 {
        dialogue.remark(Remark::NotLookedAt(found.not_looked_at));
    }
    let asked = crate::doctor::ask_all(found.processes).await;
    let looking = system.clone();
    let mut examinations = in_a_thread(move || crate::doctor::examine_asked(&looking, asked)).await?;
    examinations.sort_by_cached_key(|examination| (name(examination), examination.facts.pid));
    Ok(examinations)
}

/// The one that is called so, or all: by the kernel, by its files, or by the entry assembly that its runtime reports.
async fn named(
    system: &System,
    wanted: &str,
    whose: Whose<'_>,
    all: bool,
    dialogue: &impl Dialogue,
) -> Result<Vec<Examination>, Error> {
    whose.check()?;
    let mut found = everybody(system, dialogue).await?;
    if whose.0.is_some() {
        found.retain(|it| whose.is_meant(it.facts.uid, &it.facts.user));
    }
    let has_not_said =
        |it: &&Examination| it.facts.endpoint().is_some() && !matches!(it.answer, Answer::Answered(_));
    let silent: Vec<u32> = found.iter().filter(has_not_said).map(|it| it.facts.pid).collect();
    found.retain(|it| it.facts.comm == wanted || file_name(&it.facts) == wanted || name(it) == wanted);
    let name = wanted.to_owned();
    match found.len() {
        0 => {
            let looking = system.clone();
            let listed = Options::default().all_users(true);
            let listed = in_a_thread(move || looking.processes(listed)).await?;
            let is_meant = |process: &Process| whose.0.is_none() || whose.has(process);
            Err(Error::NobodyLike { java: java_called(wanted, &listed, is_meant), name, silent })
        }
        n if n == 1 || all => Ok(found),
        _ => {
            let processes = found.iter().map(|it| Row::from(&it.facts)).collect();
            Err(Error::Several { name, processes })
        }
    }
}

fn name(examination: &Examination) -> String {
    let told = match &examination.answer {
        Answer::Answered(Some(info)) => info.entry_assembly.clone().filter(|name| !name.is_empty()),
        _ => None,
    };
    told.unwrap_or_else(|| file_name(&examination.facts))
}

fn file_name(facts: &Facts) -> String {
    name_of(&facts.command_line, &facts.comm)
}
