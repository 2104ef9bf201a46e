//! Descriptors of fields and methods (JVMS 4.3), and their sizes in words of the stack.

/// Splits a method descriptor into the descriptors of the parameters and that of the result; `None` if it is invalid.
pub(super) fn parts(descriptor: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let mut rest = descriptor.strip_prefix(b"(")?;
    let mut parameters = Vec::new();
    while !rest.starts_with(b")") {
        let (found, tail) = rest.split_at_checked(length(rest)?)?;
        parameters.push(found);
        rest = tail;
    }
    Some((parameters, rest.strip_prefix(b")")?))
}

/// Returns the size of a type in words: 0 for `V`, 2 for `J` and `D`.
pub(super) fn words(descriptor: &[u8]) -> usize {
    match descriptor.first() {
        Some(b'V') => 0,
        Some(b'J' | b'D') => 2,
        _ => 1,
    }
}

/// Returns the total sizes of the parameters and of the result, in words.
pub(super) fn call_words(descriptor: &[u8]) -> Option<(usize, usize)> {
    let (parameters, result) = parts(descriptor)?;
    Some((parameters.iter().map(|parameter| words(parameter)).sum(), words(result)))
}

/// Returns the length of the first type, in bytes.
fn length(descriptor: &[u8]) -> Option<usize> {
    let dimensions = descriptor.iter().take_while(|byte| **byte == b'[').count();
    match descriptor.get(dimensions)? {
        b'L' => Some(descriptor.iter().position(|byte| *byte == b';')? + 1),
        b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z' => Some(dimensions + 1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_split_and_measured() {
        assert_eq!(call_words(b"()V"), Some((0, 0)));
        assert_eq!(call_words(b"(IJ[D[[Ljava/lang/String;LX;)D"), Some((6, 2)));
        assert_eq!(parts(b"([[J)[I").unwrap(), (vec![b"[[J".as_slice()], b"[I".as_slice()));
        for wrong in [b"".as_slice(), b"(", b"(I", b"(L)V", b"I", b"([)V", b"(V)V"] {
            assert_eq!(call_words(wrong), None, "{wrong:?}");
        }
    }
}
