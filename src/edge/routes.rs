//! Attributes of routes that the server needs before it calls the router.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, Method, Uri};

use crate::caching::Caching;
use crate::class::{Class, waits};

/// Attributes of one method of a path.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub method: &'static str,
    pub path: &'static str,
    pub class: Class,
    pub caching: Caching,
}

/// The attributes of all routes, except of pages with the usual attributes.
pub struct Routes(matchit::Router<Vec<Route>>);

/// Caching of errors for paths without a route.
const UNKNOWN: [(&str, Caching); 5] = [
    ("/api/v1/", Caching::Key),
    ("/api/export/", Caching::KeyOrSession),
    ("/api/", Caching::Public),
    ("/assets/", Caching::Public),
    ("/feeds/", Caching::Public),
];

impl Routes {
    /// # Panics
    /// If two paths match the same requests, which the router would refuse too.
    pub fn new(routes: impl IntoIterator<Item = Route>) -> Routes {
        let mut paths = BTreeMap::<_, Vec<_>>::new();
        for route in routes {
            paths.entry(route.path).or_default().push(route);
        }
        let mut router = matchit::Router::new();
        for (path, routes) in paths {
            router.insert(path, routes).expect("no two paths match the same requests");
        }
        Routes(router)
    }

    /// Returns the class and caching of a request.
    pub fn of(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> (Class, Caching) {
        let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        let usual = if reads { Class::Read } else { Class::Write };
        let path = uri.path();
        let Ok(found) = self.0.at(path) else {
            let area = UNKNOWN.iter().find(|(start, _)| path.starts_with(start));
            return (usual, area.map_or(Caching::Session, |&(_, caching)| caching));
        };
        let caching = found.value[0].caching;
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let route = found.value.iter().find(|route| route.method == method.as_str());
        let class = match route.map_or(usual, |route| route.class) {
            _ if caching == Caching::Health => Class::Health,
            Class::Stream if !waits(uri, headers) => Class::Read,
            class => class,
        };
        (class, caching)
    }
}
