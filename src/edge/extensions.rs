//! Values that the server passes to handlers in the extensions of a request.

use std::any::Any;
use std::sync::Arc;

/// The server's slot of a request that may take a long time. Dropping the last clone frees it.
#[derive(Clone)]
pub struct ServerSlot(#[expect(dead_code, reason = "held until drop")] Arc<dyn Any + Send + Sync>);

impl ServerSlot {
    pub fn new(slot: impl Any + Send + Sync) -> ServerSlot {
        ServerSlot(Arc::new(slot))
    }
}

/// Marks a HEAD request, which is routed as GET: its response has only the headers.
#[derive(Clone, Copy, Debug)]
pub struct HeadersOnly;
