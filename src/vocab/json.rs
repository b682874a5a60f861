//! Checks the nesting depth of untrusted JSON before it is parsed.

/// Returns true if objects and arrays are nested more than `depth_max` deep, even in ignored
/// members. For text that is not JSON, the result is arbitrary; the parser rejects it.
pub fn is_deeper_than(text: &[u8], depth_max: u32) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0u32, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > depth_max {
            return true;
        }
    }
    false
}
