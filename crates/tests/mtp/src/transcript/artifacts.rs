//! Files that a recording names, when it is played to a server that may copy them. Recordings are not trusted.

use std::path::{Path, PathBuf};

use runtap_mtp_proto::{FileArtifact, Frame, Limits, Message, MessageId};

/// Looks through what is sent.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Below it files may be named; `None`: none may.
    root: Option<PathBuf>,
    /// Files that were not named.
    pub(crate) left_out: u64,
}

impl Guard {
    /// Lets all files be named, or those below the folder where we run.
    pub(crate) fn new(allows_all: bool) -> Self {
        Self { root: Path::new(if allows_all { "/" } else { "." }).canonicalize().ok(), left_out: 0 }
    }

    /// Takes from `waiting` what can be sent: whole messages, without files that are here and not below our folder. Names of files
    /// that are not here stay: they lead nowhere, and servers show them. A message that has not all come waits for its rest, which
    /// may name one.
    pub(crate) fn take(&mut self, waiting: &mut Vec<u8>) -> Vec<u8> {
        let (mut ready, mut rest) = (Vec::new(), &waiting[..]);
        loop {
            match Frame::parse(rest, Limits::default()) {
                Ok((frame, size)) => {
                    let (bytes, behind) = rest.split_at(size);
                    match self.bounded(&frame) {
                        Some(bounded) => ready.extend(bounded),
                        None => ready.extend_from_slice(bytes),
                    }
                    rest = behind;
                }
                Err(error) if error.is_incomplete() => break,
                // No message, nor is what follows: a server reads no further.
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

    /// The message that is sent in the place of one that names files which may not be named.
    fn bounded(&mut self, frame: &Frame<'_>) -> Option<Vec<u8>> {
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
        // What was read can be written.
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

    /// Whole, in two pieces, and behind another message: what is named is the same.
    #[test]
    fn only_files_below_the_folder_and_those_that_are_not_here_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let [inside, outside] = ["in", "out"].map(|name| folder.path().join(name));
        std::fs::create_dir(&inside).unwrap();
        let [ours, theirs] = [&inside, folder.path()].map(|folder| folder.join("file"));
        for file in [&ours, &theirs] {
            std::fs::write(file, "").unwrap();
        }
        let by_dots = inside.join("../file");
        let sent = frame(&[&ours, &theirs, &outside, &by_dots]);
        let expected = frame(&[&ours, &outside]);
        for cut in 0..=sent.len() {
            let mut guard = Guard { root: Some(inside.canonicalize().unwrap()), left_out: 0 };
            let (mut waiting, mut ready) = (expected.clone(), Vec::new());
            for part in [&sent[..cut], &sent[cut..]] {
                waiting.extend_from_slice(part);
                ready.extend(guard.take(&mut waiting));
            }
            assert_eq!((ready, waiting.len()), ([&expected[..], &expected].concat(), 0), "cut at {cut}");
            assert_eq!(guard.left_out, 2);
        }
    }
}
