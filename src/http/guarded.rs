//! Checks around the handler of an operation.

use std::future::ready;
use std::pin::Pin;

use axum::extract::Request;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::accounts::{Allowance, Counter, MinuteUsedUp};
use crate::edge::allowance::{authenticated, check_granted, check_json};
use crate::edge::error::Refusal;
use crate::edge::operation::{Access, Cost, Operation};
use crate::edge::rate_limit::{minute_headers, rate_limit_headers};
use crate::params::refuse_unknown;
use crate::precondition;
use crate::service::app::{App, Now};
use crate::service::error::ApiError;

/// The handler of an operation, with the checks around it.
#[derive(Clone, Copy)]
pub struct Guarded<H> {
    operation: &'static Operation,
    handler: H,
}

/// Guards a handler. An operation that needs a key returns 401 without a valid key, 403 below the Pro plan
/// or without the scope, and 429 if its allowance is used up. Otherwise the request counts, its response
/// gets the rate-limit headers, and the handler finds [`Now`] and the `Caller` in the request's
/// extensions. After these checks, every operation refuses unknown parameters.
///
/// This type wraps the handler, because axum would box the service of a layer and clone it for every
/// request.
pub fn guarded<H>(operation: &'static Operation, handler: H) -> Guarded<H> {
    Guarded { operation, handler }
}

impl<T: 'static, H: Handler<T, App>> Handler<T, App> for Guarded<H> {
    type Future = Pin<Box<dyn Future<Output = Response> + Send>>;

    fn call(self, mut request: Request, app: App) -> Self::Future {
        let Guarded { operation, handler } = self;
        let checked = refuse_unknown(operation, request.uri().query(), request.headers());
        if operation.access != Access::Key {
            return match checked {
                Ok(()) => Box::pin(handler.call(request, app)),
                Err(err) => Box::pin(ready(Refusal::from(err).into_response())),
            };
        }
        let now = app.clock.now();
        let caller = authenticated(&app, request.extensions(), request.headers());
        let caller = match caller
            .and_then(|caller| check_json(&caller, operation.scope()).map(|()| caller))
        {
            Ok(caller) => caller,
            Err(err) => return Box::pin(ready(Refusal::from(err).into_response())),
        };
        let mut suggestions = None;
        if operation.cost == Cost::Suggestion {
            match app.store.charge_suggestion(&caller) {
                Ok(left) => suggestions = Some(left),
                Err(MinuteUsedUp { limit, retry_after_s }) => {
                    let plan = caller.plan;
                    let err = ApiError::TooManySuggestions { plan, limit, retry_after_s };
                    return Box::pin(ready(Refusal::from(err).into_response()));
                }
            }
        }
        // Charging the account almost always succeeds at once.
        let charged = match operation.cost {
            Cost::Request => app.store.try_charge(Counter::Requests, &caller, now),
            Cost::Suggestion | Cost::Nothing => {
                let left = app.store.allowance(Counter::Requests, &caller, now);
                Some(Allowance { granted: true, ..left })
            }
        };
        request.extensions_mut().insert(Now(now));
        request.extensions_mut().insert(caller.clone());
        if let Some(queries) = operation.queries {
            request.extensions_mut().insert(queries);
        }
        Box::pin(async move {
            let charged = match charged {
                Some(charged) => charged,
                None => app.store.charge_waiting(Counter::Requests, &caller, now).await,
            };
            let allowance = match check_granted(charged, &caller, now) {
                Ok(allowance) => allowance,
                Err(err) => return Refusal::from(err).into_response(),
            };
            if let Err(err) = checked {
                let mut response = Refusal::from(err).into_response();
                rate_limit_headers(&allowance, response.headers_mut());
                return response;
            }
            let asked = (request.uri(), request.extensions());
            let met = precondition::check(&app, operation, request.headers(), asked).await;
            if let Err(mut response) = met {
                rate_limit_headers(&allowance, response.headers_mut());
                return response;
            }
            let sent = operation.represents.then(|| request.headers().clone());
            let mut response = handler.call(request, app.clone()).await;
            if let Some(headers) = sent {
                response = precondition::tagged(response, &headers).await;
            }
            // A handler that counts further requests sets the header itself.
            let mut allowance =
                response.extensions().get::<Allowance>().copied().unwrap_or(allowance);
            let is_free = [StatusCode::NOT_MODIFIED, StatusCode::SERVICE_UNAVAILABLE]
                .contains(&response.status());
            if is_free && operation.cost == Cost::Request {
                app.store.give_back(Counter::Requests, &caller, 1, now);
                allowance.remaining = (allowance.remaining + 1).min(allowance.limit);
            }
            rate_limit_headers(&allowance, response.headers_mut());
            if let Some(left) = suggestions {
                minute_headers("suggestions", &left, response.headers_mut());
            }
            // A request that is refused earlier counts as no write.
            let is_write = response.status().is_success()
                || response.status() == StatusCode::TOO_MANY_REQUESTS;
            if operation.changes
                && is_write
                && let Some(left) = app.store.writes_left(&caller)
            {
                minute_headers("writes", &left, response.headers_mut());
            }
            response
        })
    }
}
