//! The numbered characters of ASCII names.

/// Characters of ASCII names in byte order; every name contains the dot.
pub const ALPHABET: &[u8; 38] = b"-.0123456789abcdefghijklmnopqrstuvwxyz";

/// Returns the position of a byte in [`ALPHABET`]; `ALPHABET.len()` for other bytes.
pub const CODES: [u8; 256] = {
    let mut codes = [ALPHABET.len() as u8; 256];
    let mut at = 0;
    while at < ALPHABET.len() {
        codes[ALPHABET[at] as usize] = at as u8;
        at += 1;
    }
    codes
};
