//! JSON that others send, looked at before a parser builds anything of it: octets in, how deep they
//! are nested out. What is no JSON gets some number too; the parser refuses it.

/// Whether more than `most` objects and arrays stand in each other. What no type would keep counts
/// as well.
pub fn is_deeper_than(octets: &[u8], most: u32) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0u32, false, false);
    for octet in octets {
        match octet {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > most {
            return true;
        }
    }
    false
}
