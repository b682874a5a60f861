//! A socket, with or without TLS, that reports its reads and writes to a [`ConnectionState`].

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_rustls::server::TlsStream;

use crate::server::state::ConnectionState;

/// A TCP connection, plain or encrypted.
pub(super) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {
    fn socket(&self) -> &TcpStream;
}

impl Transport for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Transport for TlsStream<TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// The stream that hyper reads and writes.
pub(super) struct MonitoredStream {
    transport: Box<dyn Transport>,
    state: Arc<ConnectionState>,
    /// The value last reported to `state`.
    is_blocked: bool,
    lingering: Option<Lingering>,
}

/// State of a closed stream that keeps reading, so that the client can finish sending.
struct Lingering {
    end: Pin<Box<Sleep>>,
    bytes_left: usize,
}

/// Limits of time and bytes for reading a closed stream.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 1 << 20;

impl MonitoredStream {
    pub(super) fn new(
        transport: Box<dyn Transport>,
        state: Arc<ConnectionState>,
    ) -> MonitoredStream {
        MonitoredStream { transport, state, is_blocked: false, lingering: None }
    }

    fn transport(&mut self) -> Pin<&mut dyn Transport> {
        Pin::new(&mut *self.transport)
    }

    /// Discards input until the client closes the connection or a limit is reached.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let MonitoredStream { transport, lingering: Some(lingering), .. } = self else {
            return Poll::Ready(Ok(()));
        };
        let mut piece = [0; 4096];
        while lingering.end.as_mut().poll(cx).is_pending() && lingering.bytes_left > 0 {
            let mut read = ReadBuf::new(&mut piece);
            // After an error, the connection is closed anyway.
            if ready!(Pin::new(&mut **transport).poll_read(cx, &mut read)).is_err() {
                break;
            }
            match read.filled().len() {
                0 => break,
                read => lingering.bytes_left = lingering.bytes_left.saturating_sub(read),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reports the progress of a write or flush.
    fn report<T>(&mut self, write: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if write.is_pending() {
            self.is_blocked = true;
            self.state.set_blocked(true);
        } else if self.is_blocked {
            self.state.wrote();
        }
        write
    }
}

impl Drop for MonitoredStream {
    fn drop(&mut self) {
        if self.state.closes_with_reset() {
            // Best effort: without the option, the connection still closes.
            let _ = self.transport.socket().set_zero_linger();
        }
    }
}

impl AsyncRead for MonitoredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(self.transport().poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.state.read();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MonitoredStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.transport().poll_write(cx, buf);
        self.report(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.transport().poll_write_vectored(cx, bufs);
        self.report(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.transport().poll_flush(cx);
        // hyper flushes once it has written all its data.
        if flushed.is_ready() && self.is_blocked {
            self.is_blocked = false;
            self.state.set_blocked(false);
            return flushed;
        }
        self.report(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(self.transport().poll_shutdown(cx))?;
            if !self.state.lingers() {
                return Poll::Ready(Ok(()));
            }
            let end = Box::pin(sleep(LINGER));
            self.lingering = Some(Lingering { end, bytes_left: LINGER_BYTES_MAX });
        }
        self.poll_linger(cx)
    }
}
