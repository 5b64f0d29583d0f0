//! The lease server's HTTP surface: the routes that [`messages`](super::messages) lists.
//!
//! A request is checked in this order: its route, its token, its body's length, the body, the
//! runner it names, the lease. The body of a request without a valid token is discarded.

mod error;
mod extract;
mod jobs;
mod messages;
mod openapi;
mod runs;
mod schedules;
mod shares;
#[cfg(test)]
mod tests;
mod tokens;
mod uploads;

use super::{
    files::Files,
    messages::{ErrorCode, MAX_WAIT_SECONDS},
    service::Service,
};
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{RawPathParams, Request, State, rejection::RawPathParamsRejection},
    http::{
        HeaderValue, Method, StatusCode,
        header::{ALLOW, CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS},
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{MethodFilter, MethodRouter},
};
use cowboy_host::http::openapi::Operation;
use error::Refused;
use extract::{Access, Asked, Takes};
use futures::{FutureExt as _, future::BoxFuture};
use serde::Serialize;
pub(super) use shares::Shares;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{
    sync::{Semaphore, watch},
    time::timeout,
};

/// Maximum number of concurrent uploads, and of concurrent cancel waits, of one runner.
pub(super) const EACH: usize = 8;
/// Time limit for answering a message, on top of the wait that it asks for.
const ANSWER_TIME: Duration = Duration::from_secs(30);

pub(super) struct Context {
    pub service: Service,
    pub files: Files,
    pub operator_token: String,
    /// Uploads in progress, per runner.
    pub uploads: Shares,
    /// Requests that wait for a cancel, per runner.
    pub cancel_waits: Shares,
    /// Permits for requests that wait, so that most connections stay free for the others.
    pub waits: Arc<Semaphore>,
    /// True once the server stops: waits end.
    pub closing: watch::Receiver<bool>,
}

type Handler =
    Arc<dyn Fn(Arc<Context>, Asked) -> BoxFuture<'static, Result<Response, Refused>> + Send + Sync>;

#[derive(Clone)]
struct Route {
    method: Method,
    path: &'static str,
    access: Access,
    takes: Takes,
    handler: Handler,
    operation: Operation,
}

impl Route {
    fn new<A: Future<Output = Result<Response, Refused>> + Send + 'static>(
        method: Method,
        path: &'static str,
        access: Access,
        handler: fn(Arc<Context>, Asked) -> A,
    ) -> Self {
        let handler: Handler = Arc::new(move |context, asked| handler(context, asked).boxed());
        let operation = Operation::default();
        Self { method, path, access, takes: Takes::Message, handler, operation }
    }

    fn documented(self, operation: Operation) -> Self {
        Self { operation, ..self }
    }

    /// The body arrives piece by piece and is not subject to a message's time limit.
    fn upload(mut self) -> Self {
        self.takes = Takes::Upload;
        self
    }

    async fn answer(
        self,
        context: Arc<Context>,
        path: Result<RawPathParams, RawPathParamsRejection>,
        request: Request,
    ) -> Result<Response, Refused> {
        let (parts, body) = request.into_parts();
        let runner = match extract::authorize(&context, self.access, &parts.headers) {
            Ok(runner) => runner,
            Err(refused) => {
                context.service.unauthorized(parts.uri.path());
                extract::drain(body).await;
                return Err(refused);
            }
        };
        let path = path.map_err(|_| Refused::not_found("the path is not text"));
        let query = extract::query(&parts.uri);
        let asked = |message, upload| {
            let path = path?;
            let path = path.iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
            let (path, query, headers) = (path.collect(), query?, parts.headers);
            Ok::<_, Refused>(Asked { runner, path, query, headers, message, upload })
        };
        match self.takes {
            Takes::Upload => (self.handler)(context, asked(Bytes::default(), body)?).await,
            Takes::Message => {
                let asked = asked(extract::receive(body).await?, Body::empty())?;
                let limit = ANSWER_TIME + Duration::from_secs(MAX_WAIT_SECONDS);
                let late = |_| Refused::unavailable(ErrorCode::Timeout, "not done in time");
                timeout(limit, (self.handler)(context, asked)).await.map_err(late)?
            }
        }
    }
}

fn table() -> Vec<Route> {
    let parts = [
        messages::table(),
        uploads::table(),
        runs::table(),
        jobs::table(),
        tokens::table(),
        schedules::table(),
        openapi::table(),
    ];
    parts.concat()
}

pub(super) fn router(context: Arc<Context>) -> Router {
    let mut paths: BTreeMap<&str, Vec<Route>> = BTreeMap::new();
    for route in table() {
        paths.entry(route.path).or_default().push(route);
    }
    let mut router = Router::new();
    for (path, routes) in paths {
        router = router.route(path, methods(routes));
    }
    router.fallback(no_route).layer(middleware::from_fn(guard)).with_state(context)
}

fn methods(routes: Vec<Route>) -> MethodRouter<Arc<Context>> {
    let names: Vec<_> = routes.iter().map(|route| route.method.as_str()).collect();
    let allowed = HeaderValue::from_str(&names.join(", ")).expect("methods are words");
    let wrong = move |request: Request| wrong_method(allowed.clone(), request);
    // Otherwise axum would answer HEAD like GET.
    let mut methods = MethodRouter::new().fallback(wrong.clone()).head(wrong);
    for route in routes {
        let filter = MethodFilter::try_from(route.method.clone()).expect("a common method");
        let answer =
            move |State(context): State<Arc<Context>>,
                  path: Result<RawPathParams, RawPathParamsRejection>,
                  request: Request| { route.clone().answer(context, path, request) };
        methods = methods.on(filter, answer);
    }
    methods
}

async fn no_route(request: Request) -> Refused {
    extract::drain(request.into_body()).await;
    Refused::not_found("there is no such path; GET /openapi.json lists them")
}

async fn wrong_method(allowed: HeaderValue, request: Request) -> Response {
    extract::drain(request.into_body()).await;
    let (status, code) = (StatusCode::METHOD_NOT_ALLOWED, ErrorCode::MethodNotAllowed);
    let refused = Refused::new(status, code, "the path takes other methods; Allow names them");
    ([(ALLOW, allowed)], refused).into_response()
}

async fn guard(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn json(value: &impl Serialize) -> Response {
    Json(value).into_response()
}

fn created(value: &impl Serialize) -> Response {
    (StatusCode::CREATED, Json(value)).into_response()
}
