//! A name server on loopback that answers NXDOMAIN: the resolver of installations under test, which
//! must not query the Internet or wait for a timeout.

use std::net::{SocketAddr, UdpSocket};
use std::sync::OnceLock;
use std::thread;

/// Maximum bytes of a query over UDP (RFC 6891 §6.2.5).
const QUESTION_MAX: usize = 4_096;

/// Address of the server, which runs as long as the test.
pub fn address() -> SocketAddr {
    static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();
    *ADDRESS.get_or_init(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = socket.local_addr().expect("a bound socket has an address");
        thread::spawn(move || {
            let mut buffer = [0; QUESTION_MAX];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                if let Some(answer) = no_such_name(&buffer[..length]) {
                    // The client may be gone.
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        address
    })
}

/// Returns an NXDOMAIN response (RFC 1035 §4.1.1) that holds only the question.
fn no_such_name(question: &[u8]) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    let mut end = HEADER;
    // The labels end with an empty one; type and class follow.
    while *question.get(end)? != 0 {
        end += usize::from(question[end]) + 1;
    }
    let mut answer = question.get(..end + 5)?.to_vec();
    // Flags: response, recursion available. Counts: one question, no record.
    answer[2] |= 0x80;
    answer[3] = 0x83;
    answer[4..HEADER].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
    Some(answer)
}
