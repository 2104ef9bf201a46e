//! Filtering of file names in a recording that is played to a server, because servers may copy these files. Recordings are not
//! trusted.

use std::path::{Path, PathBuf};

use runtap_mtp_proto::{FileArtifact, Frame, Limits, Message, MessageId};

/// Filters the messages that are sent.
#[derive(Debug)]
pub(crate) struct ArtifactFilter {
    /// The directory of files that may be named; `None` if no file may be named.
    root: Option<PathBuf>,
    /// The number of files that were left out.
    pub(crate) left_out: u64,
}

impl ArtifactFilter {
    /// Creates a filter that allows all files, or only files below the current directory.
    pub(crate) fn new(allows_all: bool) -> Self {
        Self { root: Path::new(if allows_all { "/" } else { "." }).canonicalize().ok(), left_out: 0 }
    }

    /// Removes from `waiting` and returns the complete messages, without files that exist outside the directory. Names of
    /// missing files are kept: they are harmless, and servers show them. An incomplete message waits for its remainder, which
    /// may name a file.
    pub(crate) fn take(&mut self, waiting: &mut Vec<u8>) -> Vec<u8> {
        let (mut ready, mut rest) = (Vec::new(), &waiting[..]);
        loop {
            match Frame::parse(rest, Limits::default()) {
                Ok((frame, size)) => {
                    let (bytes, behind) = rest.split_at(size);
                    match self.filtered(&frame) {
                        Some(filtered) => ready.extend(filtered),
                        None => ready.extend_from_slice(bytes),
                    }
                    rest = behind;
                }
                Err(error) if error.is_incomplete() => break,
                // Neither these bytes nor the following ones are messages; a server stops reading here.
                Err(_) => {
                    ready.extend_from_slice(rest);
                    rest = &[];
                    break;
                }
            }
        }
        let done = waiting.len() - rest.len();
        waiting.drain(..done);
        ready
    }

    /// Returns the replacement for a message that names disallowed files; `None` if the message may be sent as it is.
    fn filtered(&mut self, frame: &Frame<'_>) -> Option<Vec<u8>> {
        if frame.id != MessageId::FILE_ARTIFACTS {
            return None;
        }
        let Ok(Message::FileArtifacts(mut message)) = Message::decode(frame, Limits::default()) else {
            return None;
        };
        let before = self.left_out;
        if let Some(artifacts) = &mut message.artifacts {
            artifacts.retain_mut(|artifact| self.may_be_named(artifact));
        }
        // A message that was decoded can be encoded.
        (self.left_out > before).then(|| Message::FileArtifacts(message).to_frame().unwrap_or_default())
    }

    fn may_be_named(&mut self, artifact: &mut FileArtifact) -> bool {
        if let Some(paths) = &mut artifact.input_artifact_paths {
            let all = paths.len();
            paths.retain(|path| !self.is_foreign(path));
            self.left_out += (all - paths.len()) as u64;
        }
        let is_foreign = artifact.full_path.as_ref().is_some_and(|path| self.is_foreign(path));
        self.left_out += u64::from(is_foreign);
        !is_foreign
    }

    fn is_foreign(&self, path: &str) -> bool {
        let is_below = |real: &Path| self.root.as_ref().is_some_and(|root| real.starts_with(root));
        Path::new(path).canonicalize().is_ok_and(|real| !is_below(&real))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtap_mtp_proto::FileArtifacts;

    fn frame(paths: &[&Path]) -> Vec<u8> {
        let artifact = |path: &&Path| FileArtifact {
            full_path: Some(path.display().to_string()),
            ..FileArtifact::default()
        };
        let artifacts = Some(paths.iter().map(artifact).collect());
        Message::FileArtifacts(FileArtifacts { artifacts, ..FileArtifacts::default() }).to_frame().unwrap()
    }

    /// The result does not depend on how the bytes are split.
    #[test]
    fn only_files_below_the_directory_and_missing_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let [inside, outside] = ["in", "out"].map(|name| folder.path().join(name));
        std::fs::create_dir(&inside).unwrap();
        let [own_file, foreign_file] = [&inside, folder.path()].map(|folder| folder.join("file"));
        for file in [&own_file, &foreign_file] {
            std::fs::write(file, "").unwrap();
        }
        let by_dots = inside.join("../file");
        let sent = frame(&[&own_file, &foreign_file, &outside, &by_dots]);
        let expected = frame(&[&own_file, &outside]);
        for split in 0..=sent.len() {
            let mut filter = ArtifactFilter { root: Some(inside.canonicalize().unwrap()), left_out: 0 };
            let (mut waiting, mut ready) = (expected.clone(), Vec::new());
            for part in [&sent[..split], &sent[split..]] {
                waiting.extend_from_slice(part);
                ready.extend(filter.take(&mut waiting));
            }
            assert_eq!((ready, waiting.len()), ([&expected[..], &expected].concat(), 0), "cut at {split}");
            assert_eq!(filter.left_out, 2);
        }
    }
}
