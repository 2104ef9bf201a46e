//! Descriptors of fields and methods (JVMS 4.3), and their sizes in words of the stack.

/// Splits a method descriptor into the descriptors of the parameters and that of the result; `None` if it is invalid.
pub(super) fn split_method(descriptor: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let mut rest = descriptor.strip_prefix(b"(")?;
    let mut parameters = Vec::new();
    while !rest.starts_with(b")") {
        let (found, tail) = rest.split_at_checked(first_type_length(rest)?)?;
        parameters.push(found);
        rest = tail;
    }
    Some((parameters, rest.strip_prefix(b")")?))
}

/// Returns the size of a type in words: 0 for `V`, 2 for `J` and `D`.
pub(super) fn size_in_words(descriptor: &[u8]) -> usize {
    match descriptor.first() {
        Some(b'V') => 0,
        Some(b'J' | b'D') => 2,
        _ => 1,
    }
}

/// Returns the total size of the parameters and the size of the result, in words. `None` if the descriptor is invalid.
pub(super) fn call_sizes(descriptor: &[u8]) -> Option<(usize, usize)> {
    let (parameters, result) = split_method(descriptor)?;
    Some((parameters.iter().map(|parameter| size_in_words(parameter)).sum(), size_in_words(result)))
}

/// Returns the length of the first type in bytes. `None` if it is invalid.
fn first_type_length(descriptor: &[u8]) -> Option<usize> {
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
        assert_eq!(call_sizes(b"()V"), Some((0, 0)));
        assert_eq!(call_sizes(b"(IJ[D[[Ljava/lang/String;LX;)D"), Some((6, 2)));
        assert_eq!(split_method(b"([[J)[I").unwrap(), (vec![b"[[J".as_slice()], b"[I".as_slice()));
        for wrong in [b"".as_slice(), b"(", b"(I", b"(L)V", b"I", b"([)V", b"(V)V"] {
            assert_eq!(call_sizes(wrong), None, "{wrong:?}");
        }
    }
}
