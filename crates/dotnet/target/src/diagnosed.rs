//! Selects processes for an examination and finds their names. As nothing is changed, unreachable processes and those of all users
//! are included. The examination itself is in [`doctor`](crate::doctor).

use crate::doctor::{Answer, Diagnosis, Examination, Finding};
use runtap_discover::{Facts, Java, System};
use runtap_model::order;
use runtap_os::in_a_thread;

#[cfg_attr(target_os = "linux", path = "diagnosed/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "diagnosed/elsewhere.rs")]
mod machine;

use self::machine::machine;
use crate::dialogue::{Dialogue, Remark};
use crate::error::{Error, MatchingProcess};
use crate::resolved::name_of;
use crate::spec::TargetSpec;
use crate::user::UserFilter;

/// A process that was examined.
#[derive(Debug)]
#[non_exhaustive]
pub struct Diagnosed {
    /// The entry assembly, the main class of a Java program, or else the name of the file. May be empty.
    pub name: String,
    /// The facts about the process.
    pub examination: Examination,
    /// The problems of the process.
    pub diagnosis: Diagnosis,
}

/// The result of an examination.
#[derive(Debug)]
pub enum Examined {
    /// The processes that were specified. Not empty.
    Named(Vec<Diagnosed>),
    /// No process was specified: all processes that look like .NET or Java, and the problems of the machine.
    All(Vec<Diagnosed>, Vec<Finding>),
}

impl TargetSpec {
    /// Examines the specified processes, reachable or not. A name selects processes of all users unless a user is specified. If
    /// several processes have the name, `all` must be set.
    ///
    /// # Errors
    /// Returns an error if no process has the name, or several have it and `all` is not set.
    pub async fn examine(&self, all: bool, dialogue: &impl Dialogue) -> Result<Examined, Error> {
        let system = System::current();
        let pid = match self {
            Self::Pid(pid) => *pid,
            Self::Port(port) => port.resolve(dialogue).await?.pids().await?.0,
            Self::Name { name, user } => {
                let found = named(&system, name, UserFilter(user.as_deref()), all, dialogue).await?;
                return Ok(Examined::Named(found.into_iter().map(Diagnosed::from).collect()));
            }
            Self::Remote(remote) => return Err(Error::OnAnotherMachine(remote.address.to_string())),
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

/// Examines all processes that look like .NET or Java, ordered by name and process id. The processes control how long it takes.
async fn everybody(system: &System, dialogue: &impl Dialogue) -> Result<Vec<Examination>, Error> {
    let looking = system.clone();
    let found = in_a_thread(move || looking.managed_facts()).await?;
    if found.not_looked_at > 0 {
        dialogue.remark(Remark::NotInspected(found.not_looked_at));
    }
    let asked = crate::doctor::query_all(found.processes).await;
    let looking = system.clone();
    let mut examinations = in_a_thread(move || crate::doctor::examine_queried(&looking, asked)).await?;
    crate::doctor::query_jvms(&mut examinations).await;
    order::sort_by_cached_key(&mut examinations, |examination| (name(examination), examination.facts.pid));
    Ok(examinations)
}

/// Examines the processes with this name: the kernel's name, the file name, or the entry assembly that the runtime reports.
async fn named(
    system: &System,
    wanted: &str,
    whose: UserFilter<'_>,
    all: bool,
    dialogue: &impl Dialogue,
) -> Result<Vec<Examination>, Error> {
    whose.check()?;
    let mut found = everybody(system, dialogue).await?;
    if whose.0.is_some() {
        found.retain(|it| whose.matches(it.facts.uid, &it.facts.user));
    }
    let has_not_said =
        |it: &&Examination| it.facts.endpoint().is_some() && !matches!(it.answer, Answer::Answered(_));
    let silent: Vec<u32> = found.iter().filter(has_not_said).map(|it| it.facts.pid).collect();
    found.retain(|it| it.facts.comm == wanted || file_name(&it.facts) == wanted || name(it) == wanted);
    let name = wanted.to_owned();
    match found.len() {
        0 => Err(Error::NoManagedMatch { name, silent }),
        n if n == 1 || all => Ok(found),
        _ => {
            let processes = found.iter().map(|it| MatchingProcess::from(&it.facts)).collect();
            Err(Error::Ambiguous { name, processes })
        }
    }
}

fn name(examination: &Examination) -> String {
    let told = match &examination.answer {
        Answer::Answered(Some(info)) => info.entry_assembly.clone().filter(|name| !name.is_empty()),
        _ => examination.facts.java.as_ref().and_then(Java::main).map(str::to_owned),
    };
    told.unwrap_or_else(|| file_name(&examination.facts))
}

fn file_name(facts: &Facts) -> String {
    name_of(&facts.command_line, &facts.comm)
}
