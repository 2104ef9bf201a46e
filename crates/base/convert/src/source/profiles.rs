//! Recordings of any kind as sources of profiles.

use runtap_model::{Trace, View};

use crate::source::Partial;
use crate::{Content, Error, FileFormat, Note, Unsuitable};

/// The form of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProfileForm {
    /// Samples or calls with their times.
    Timeline,
    /// Sums without times.
    Sums,
}

/// A profile of a source.
#[derive(Debug)]
pub struct SourceProfile {
    /// The profile.
    pub trace: Trace,
    /// The content of the files that are written from the profile.
    pub content: Content,
}

/// A recording of any kind that has profiles.
pub trait ProfileSource {
    /// What the recording is, with an article.
    const DESCRIPTION: &'static str;

    /// Returns the views of such recordings.
    fn views() -> Vec<View>;

    /// Checks whether files of these formats can contain the data.
    ///
    /// # Errors
    /// If a format cannot, or such recordings do not have the view.
    fn check(formats: &[FileFormat], content: &Content) -> Result<(), Unsuitable> {
        has_view::<Self>(content)?;
        content.check(formats)
    }

    /// Returns the size of the recording in bytes.
    fn length(&self) -> u64;

    /// Returns the number of missing events.
    fn lost(&self) -> u64;

    /// Returns what is missing after reading. `None` if the recording can be read to its end.
    fn partial(&self) -> Option<Partial>;

    /// Returns the form of the profile that a file of this format shows.
    fn form(&self, _format: FileFormat, _content: &Content) -> ProfileForm {
        ProfileForm::Timeline
    }

    /// Reads a profile with the view of `content`. `is_last` is whether no other profile is read afterwards.
    ///
    /// # Errors
    /// If the recording cannot be read.
    fn profile(
        &mut self,
        form: ProfileForm,
        content: &Content,
        is_last: bool,
        tell: &mut dyn FnMut(Note),
    ) -> Result<SourceProfile, Error>;
}

/// Checks whether recordings of this kind have the requested view.
///
/// # Errors
/// If they do not.
pub fn has_view<S: ProfileSource + ?Sized>(content: &Content) -> Result<(), Unsuitable> {
    let Some(view) = content.view else { return Ok(()) };
    let views = S::views();
    if views.contains(&view) { Ok(()) } else { Err(Unsuitable::OtherView { view, views }) }
}
