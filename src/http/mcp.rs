//! `/mcp`: tools for agents, over the Model Context Protocol (`data/docs/agents.md`).
//!
//! A tool is an operation of the API under a name of its own. The arguments of a tool are the
//! operation's parameters and the members of its body. A call runs the operation's route with the
//! caller's key, so checks, limits, counts and results are those of the API. A library implements the
//! protocol itself.

mod arguments;
mod explain;
mod schema;
mod shorten;
mod tool;
mod tools;

use std::borrow::Cow;
use std::sync::Arc;

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use axum::http::request::Parts;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult,
    DiscoverResult, ErrorCode, ErrorData, Implementation, InitializeRequestParams,
    InitializeResult, ListToolsResult, PaginatedRequestParams, ServerCapabilities, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::accounts::Caller;
use crate::body::check_content_type;
use crate::edge::allowance::{admit_agent, charge_more};
use crate::edge::caching::Caching;
use crate::edge::class::Class;
use crate::edge::error::Refusal;
use crate::edge::origin;
use crate::edge::routes::Route;
use crate::mcp::tools::TOOLS;
use crate::service::app::App;
use crate::service::error::ApiError;
use crate::telemetry::current::Current;
use crate::vocab::limits::BODY_BYTES_MAX;

/// Route of the endpoint. Requests belong to the class of reads, because most tools read.
pub const ROUTE: Route =
    Route { method: "POST", path: "/mcp", class: Class::Read, caching: Caching::Key };
/// Value of `Accept` that the library requires.
const ACCEPTED: &str = "application/json, text/event-stream";
/// Maximum bytes of a result, forty times the size of a page of a hundred rows with explanations.
const RESULT_BYTES_MAX: usize = 4 << 20;

/// Instructions that an agent receives when it connects.
const INSTRUCTIONS: &str = "dropdex knows domain names that are leaving registration. `list_drops` ranks them. \
     For what is released tomorrow, pass release_from=tomorrow and release_to=tomorrow without a stage: names of \
     registries without pending-delete days are in redemption until then. \
     DQS is a score from 0 to 100 (60: the best tenth of a day, 90: the best hundredth); `get_domain` and `appraise` \
     explain it. Rows have a few columns; `fields` selects others. Answers are short: `more` says what was left out \
     and how to get it. `explain_filters` says which names each condition of a query leaves out. \
     `currentStatus` is a guess from lists and the calendar: nothing here says that a name is free now. \
     Each call counts as one request of the account.";

/// The MCP server for one request.
#[derive(Clone)]
struct Agents {
    app: App,
    /// The routes of the API.
    api: Router,
}

impl Agents {
    /// Counts a request that runs no operation of the API.
    ///
    /// # Errors
    /// 429 when the day's allowance is used up.
    async fn charge(&self, context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let charged =
            charge_more(&self.app, &part::<Caller>(context)?, 1, self.app.clock.now()).await;
        let Err(refused) = charged else { return Ok(()) };
        let refusal = Refusal::from(refused);
        let body = serde_json::to_value(&refusal.body).ok();
        Err(ErrorData::new(ErrorCode::INVALID_REQUEST, refusal.message().to_owned(), body))
    }
}

/// Returns what the HTTP request carries: the caller that [`admit`] found, or the fields of its log lines.
fn part<T: Clone + Send + Sync + 'static>(
    context: &RequestContext<RoleServer>,
) -> Result<T, ErrorData> {
    let parts = context.extensions.get::<Parts>();
    let part = parts.and_then(|parts| parts.extensions.get::<T>());
    part.cloned().ok_or_else(|| ErrorData::internal_error("internal error", None))
}

impl ServerHandler for Agents {
    fn get_info(&self) -> InitializeResult {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let mut info = InitializeResult::new(capabilities).with_instructions(INSTRUCTIONS);
        info.server_info = Implementation::new("dropdex", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.charge(&context).await?;
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        self.charge(&context).await?;
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.get_info()))
    }

    async fn ping(&self, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.charge(&context).await
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.charge(&context).await?;
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(|it| it.tool.clone()).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        TOOLS.iter().find(|it| it.tool.name == name).map(|it| it.tool.clone())
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = TOOLS.iter().find(|it| it.tool.name == call.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {}", call.name), None));
        };
        let (caller, current) = (part::<Caller>(&context)?, part::<Arc<Current>>(&context)?);
        let result = match arguments::request(tool, call.arguments.unwrap_or_default()) {
            Ok((mut request, wish)) => {
                request.extensions_mut().insert(caller);
                // The library runs this on a task of its own.
                let response = current.work(self.api.clone().oneshot(request)).await;
                let response = response.unwrap_or_else(|never| match never {});
                result_of(response, |body| shorten::answer(tool, &wish, body)).await
            }
            Err(err) => result_of(Refusal::from(err).into_response(), |body| body).await,
        };
        Ok(result.into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        self.charge(&context).await?;
        let method: String = request.method.chars().take(64).collect();
        let message = format!("there is no method {method}");
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }
}

/// Converts the response of an operation to the result of a tool. An error response becomes a result
/// too, so that the agent can read the reason.
async fn result_of(response: Response, shape: impl FnOnce(Value) -> Value) -> CallToolResult {
    let status = response.status();
    let body = to_bytes(response.into_body(), RESULT_BYTES_MAX).await.unwrap_or_else(|_| {
        Bytes::from_static(
            b"{\"error\":\"the result is too long; ask for fewer rows\",\"code\":\"too_long\"}",
        )
    });
    let value = shape(serde_json::from_slice(&body).unwrap_or_else(|_| json!({})));
    if status.is_success() && value.get("error").is_none() {
        CallToolResult::structured(value)
    } else {
        CallToolResult::structured_error(value)
    }
}

/// Builds the routes of the endpoint, whose tools call `api`.
pub fn router(app: App, api: Router) -> Router {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(BODY_BYTES_MAX);
    let config = match &app.site.home {
        Some(home) => {
            config.with_allowed_hosts([home.authority()]).with_allowed_origins([home.origin()])
        }
        // Without a public address, any name of this machine is accepted. Pages of other sites are
        // refused below.
        None => config.disable_allowed_hosts(),
    };
    let explain = &explain::OPERATION;
    let api = api
        .merge(Router::new().route(explain.path, (explain.route)(explain)).with_state(app.clone()));
    let agents = Agents { app: app.clone(), api };
    let service = StreamableHttpService::new(
        move || Ok(agents.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    Router::new()
        .route_service(ROUTE.path, service)
        .layer(middleware::from_fn(in_json))
        .layer(middleware::from_fn_with_state(app, admit))
}

/// Refuses requests from pages of other sites, and requests without a key that may use tools.
async fn admit(State(app): State<App>, mut request: Request, next: Next) -> Response {
    if origin::is_of_other_site(request.headers()) {
        return Refusal::from(ApiError::CrossSite).into_response();
    }
    if accepts_json(request.headers()) {
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
    }
    match admit_agent(&app, request.extensions(), request.headers()) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(err) => Refusal::from(err).into_response(),
    }
}

/// Whether a client accepts JSON, the format of all responses. The library would also require the
/// media type of streams, which it never sends here.
fn accepts_json(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(ACCEPT).iter().peekable();
    if lines.peek().is_none() {
        return true;
    }
    let ranges = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    ranges.into_iter().any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let is_json = ["application/json", "application/*", "*/*"]
            .iter()
            .any(|known| kind.eq_ignore_ascii_case(known));
        // A weight of 0 excludes the media type (RFC 9110 §12.4.2).
        let is_refused = |parameter: &str| {
            parameter.split_once('=').is_some_and(|(name, weight)| {
                name.trim().eq_ignore_ascii_case("q")
                    && weight.trim().parse().is_ok_and(|weight: f32| weight == 0.0)
            })
        };
        is_json && !parts.any(is_refused)
    })
}

/// Converts the library's plain-text errors to JSON.
async fn in_json(request: Request, next: Next) -> Response {
    let content_type = check_content_type(request.headers());
    let response = next.run(request).await;
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_text = kind.is_none_or(|kind| kind.starts_with("text/plain"));
    if !is_text || !response.status().is_client_error() {
        return response;
    }
    let err = match response.status() {
        StatusCode::METHOD_NOT_ALLOWED => ApiError::MethodNotAllowed,
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::BodyTooLarge { bytes_max: BODY_BYTES_MAX },
        // The library also uses this status for a body that it cannot parse.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => content_type.err().unwrap_or_else(|| {
            ApiError::parameter("body", "must be one JSON-RPC message (no batches)")
        }),
        StatusCode::FORBIDDEN => ApiError::CrossSite,
        StatusCode::NOT_ACCEPTABLE => {
            ApiError::parameter("Accept", "must have application/json, which every response is")
        }
        _ => {
            let body = to_bytes(response.into_body(), 1 << 10).await.unwrap_or_default();
            let text: Cow<'_, str> = String::from_utf8_lossy(&body);
            ApiError::parameter("body", text.trim())
        }
    };
    Refusal::from(err).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_accept_json_are_served() {
        let accepts = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(text));
            accepts_json(&headers)
        };
        for good in [
            "*/*",
            "application/json",
            "application/*;q=0.5",
            "text/event-stream, Application/JSON",
            "text/html, */*; q=0.1",
        ] {
            assert!(accepts(good), "{good}");
        }
        for bad in ["text/event-stream", "text/html", "application/json;q=0", "*/*; Q=0.0", ""] {
            assert!(!accepts(bad), "{bad}");
        }
        assert!(accepts_json(&HeaderMap::new()));
    }
}
