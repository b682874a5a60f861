//! A socket, with or without TLS, that tells a [`ConnectionState`] what it sees.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::server::state::ConnectionState;

/// A connection as its peer sees it.
pub(super) enum Stream {
    Plain(TcpStream),
    // Its buffers are large, and most connections of a server behind a proxy are plain.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    fn socket(&self) -> &TcpStream {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(stream) => stream.get_ref().0,
        }
    }
}

/// How a connection is to end.
#[derive(Default)]
pub(super) struct Ending {
    reset: AtomicBool,
}

impl Ending {
    /// With a reset: what the client has not taken is thrown away at once.
    pub(super) fn reset(&self) {
        self.reset.store(true, Ordering::Relaxed);
    }
}

/// A stream whose connection is watched.
pub(super) struct Wire {
    stream: Stream,
    state: Arc<ConnectionState>,
    ending: Arc<Ending>,
    /// As [`ConnectionState`] was told last.
    is_blocked: bool,
}

impl Wire {
    pub(super) fn new(stream: Stream, state: Arc<ConnectionState>, ending: Arc<Ending>) -> Wire {
        Wire { stream, state, ending, is_blocked: false }
    }

    /// Tells what became of a write.
    fn note<T>(&mut self, write: &Poll<io::Result<T>>) {
        match write {
            Poll::Ready(_) if self.is_blocked => self.state.wrote(),
            Poll::Ready(_) => {}
            Poll::Pending => {
                self.is_blocked = true;
                self.state.blocked(true);
            }
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.ending.reset.load(Ordering::Relaxed) {
            // The connection goes either way.
            let _ = self.stream.socket().set_zero_linger();
        }
    }
}

macro_rules! on_stream {
    ($self:expr, $stream:ident => $call:expr) => {
        match &mut $self.stream {
            Stream::Plain(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Stream::Tls(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(on_stream!(self, stream => stream.poll_read(cx, buf)))?;
        if buf.filled().len() > before {
            self.state.read();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = on_stream!(self, stream => stream.poll_write(cx, buf));
        self.note(&wrote);
        wrote
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = on_stream!(self, stream => stream.poll_write_vectored(cx, bufs));
        self.note(&wrote);
        wrote
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = on_stream!(self, stream => stream.poll_flush(cx));
        self.note(&flushed);
        // Whoever flushes has written all they had.
        if flushed.is_ready() && self.is_blocked {
            self.is_blocked = false;
            self.state.blocked(false);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, stream => stream.poll_shutdown(cx))
    }
}
