//! A name server on loopback that knows no name: the resolver of installations under test, so that
//! none asks the Internet and none waits for an answer.

use std::net::{SocketAddr, UdpSocket};
use std::sync::OnceLock;
use std::thread;

/// Maximum bytes of a query over UDP (RFC 6891 §6.2.5).
const QUESTION_MAX: usize = 4_096;

/// Where it answers, for as long as the test runs.
pub fn address() -> SocketAddr {
    static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();
    *ADDRESS.get_or_init(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = socket.local_addr().expect("a bound socket has an address");
        thread::spawn(move || {
            let mut buffer = [0; QUESTION_MAX];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                if let Some(answer) = no_such_name(&buffer[..length]) {
                    // Who has gone meanwhile needs no answer.
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        address
    })
}

/// "There is no such name" (RFC 1035 §4.1.1), with the question and nothing else.
fn no_such_name(question: &[u8]) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    let mut end = HEADER;
    // Labels up to the empty one, then type and class.
    while *question.get(end)? != 0 {
        end += usize::from(question[end]) + 1;
    }
    let mut answer = question.get(..end + 5)?.to_vec();
    // A response, recursion available; one question and no record.
    answer[2] |= 0x80;
    answer[3] = 0x83;
    answer[4..HEADER].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
    Some(answer)
}
