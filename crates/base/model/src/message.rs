//! Messages of libraries for the user.

/// A message with its weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// For users who want to know more.
    Detail(String),
    /// For all users.
    Note(String),
    /// A problem that may make the result useless.
    Warning(String),
}

impl Message {
    /// Returns the text of the message.
    pub fn text(&self) -> &str {
        let (Self::Detail(text) | Self::Note(text) | Self::Warning(text)) = self;
        text
    }
}
