//! Description of one operation: its route and its documentation.

use axum::routing::MethodRouter;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use crate::caching::Caching;
use crate::class::Class;
use crate::routes::Route;
use crate::service::app::App;
use crate::vocab::named::named_enum;
use crate::vocab::scope::Scope;

/// Builds the route of an operation, whose handler performs the checks that the operation declares.
pub type MakeRoute = fn(&'static Operation) -> MethodRouter<App>;

/// The operations of the API, for pages about it.
#[derive(Clone, Copy)]
pub struct Description {
    pub operations: &'static [Operation],
    /// The OpenAPI document.
    pub document: fn() -> &'static Value,
}

/// The allowance that a request with a key counts towards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// The requests of the day.
    Request,
    /// The suggestions of the minute.
    Suggestion,
    Nothing,
}

/// One method of one path.
pub struct Operation {
    pub method: &'static str,
    pub path: &'static str,
    pub access: Access,
    /// Class of its requests. A [`Class::Stream`] counts as a read unless the request waits.
    pub class: Class,
    pub caching: Caching,
    /// The allowance that a request counts towards.
    pub cost: Cost,
    /// Whether the operation writes user data; some POSTs only compute.
    pub changes: bool,
    /// Whether the responses carry an `ETag` and `If-None-Match` is honoured.
    pub tagged: bool,
    /// Handler of `GET` on the same path; `If-Match` is compared with the `ETag` of its response. `None`
    /// for a path without `GET`.
    pub current: Option<MakeRoute>,
    /// Whether the response is the representation of the resource, with the same `ETag` as `GET`.
    pub represents: bool,
    /// Whether the responses name the index generation they were computed from.
    pub of_index: bool,
    /// `operationId`, from which client generators derive method names.
    pub id: &'static str,
    pub group: Group,
    /// A few words, without a full stop.
    pub summary: &'static str,
    /// Details; may be empty.
    pub description: &'static str,
    pub parameters: &'static [Parameter],
    /// Parameters of searches in the request body.
    pub queries: Option<Queries>,
    /// Schema of the request body.
    pub body: Option<Shape>,
    /// Whether the request body is a file, of at most [`FACTS_BYTES_MAX`](crate::vocab::limits::FACTS_BYTES_MAX).
    pub file: bool,
    /// Responses specific to the operation, 2xx first. The document adds those implied by its
    /// access and body.
    pub responses: &'static [ResponseSpec],
    pub route: MakeRoute,
}

impl Operation {
    /// An operation that changes user data and needs a key on the Pro plan or above.
    const fn new(method: &'static str, path: &'static str, route: MakeRoute) -> Operation {
        Operation {
            method,
            path,
            access: Access::Key,
            class: Class::Write,
            caching: Caching::Key,
            cost: Cost::Request,
            changes: true,
            tagged: false,
            current: None,
            represents: false,
            of_index: false,
            id: "",
            group: Group::Service,
            summary: "",
            description: "",
            parameters: &[],
            queries: None,
            body: None,
            file: false,
            responses: &[],
            route,
        }
    }

    /// Returns the scope that a key needs; `None` for an operation without a key.
    pub fn scope(&self) -> Option<Scope> {
        Some(match (self.access, self.group) {
            (Access::Everybody, _) => return None,
            (Access::Export, _) => Scope::Export,
            (Access::Key, Group::Watchlist | Group::Searches | Group::Facts) => Scope::Watchlist,
            (Access::Key, Group::Names) if self.changes => Scope::Watchlist,
            (Access::Key, Group::Alerts) => Scope::Alerts,
            (Access::Key, Group::Portfolio) => Scope::Portfolio,
            (Access::Key, Group::Feeds) => Scope::Feeds,
            (Access::Key, Group::Names | Group::Exports | Group::Service) => Scope::Read,
        })
    }

    pub const fn get(path: &'static str, route: MakeRoute) -> Operation {
        Operation::new("GET", path, route).read_only().class(Class::Read)
    }

    pub const fn post(path: &'static str, route: MakeRoute) -> Operation {
        Operation::new("POST", path, route)
    }

    pub const fn put(path: &'static str, route: MakeRoute) -> Operation {
        Operation::new("PUT", path, route)
    }

    pub const fn patch(path: &'static str, route: MakeRoute) -> Operation {
        Operation::new("PATCH", path, route)
    }

    pub const fn delete(path: &'static str, route: MakeRoute) -> Operation {
        Operation::new("DELETE", path, route)
    }

    pub const fn named(self, group: Group, id: &'static str, summary: &'static str) -> Operation {
        Operation { group, id, summary, ..self }
    }

    pub const fn description(self, description: &'static str) -> Operation {
        Operation { description, ..self }
    }

    /// An operation without a key, whose response depends only on the URL.
    pub const fn public(self) -> Operation {
        Operation { access: Access::Everybody, caching: Caching::Public, ..self }
    }

    /// An operation without a key, whose response depends on the session.
    pub const fn page(self) -> Operation {
        Operation { access: Access::Everybody, caching: Caching::Session, ..self }
    }

    pub const fn health(self) -> Operation {
        Operation { class: Class::Health, caching: Caching::Health, ..self.public() }
    }

    pub const fn export(self) -> Operation {
        let (access, caching) = (Access::Export, Caching::KeyOrSession);
        Operation { access, class: Class::Export, caching, ..self }
    }

    pub const fn class(self, class: Class) -> Operation {
        Operation { class, ..self }
    }

    /// The attributes that the server needs.
    pub fn attributes(&self) -> Route {
        let Operation { method, path, class, caching, .. } = *self;
        Route { method, path, class, caching }
    }

    pub const fn read_only(self) -> Operation {
        Operation { changes: false, ..self }
    }

    pub const fn tagged(self) -> Operation {
        Operation { tagged: true, ..self }
    }

    /// Declares that the responses are the representation of the resource, with its tag.
    pub const fn represents(self) -> Operation {
        Operation { represents: true, ..self }
    }

    /// Declares that `If-Match` is compared with the tag of this handler's response.
    pub const fn current(self, route: MakeRoute) -> Operation {
        Operation { current: Some(route), ..self }
    }

    /// Whether `If-Match` applies, because the operation replaces, changes or removes a resource.
    pub fn is_conditional(&self) -> bool {
        self.changes && matches!(self.method, "PUT" | "PATCH" | "DELETE")
    }

    pub const fn costs(self, cost: Cost) -> Operation {
        Operation { cost, ..self }
    }

    pub const fn of_index(self) -> Operation {
        Operation { of_index: true, ..self }
    }

    pub const fn parameters(self, parameters: &'static [Parameter]) -> Operation {
        Operation { parameters, ..self }
    }

    pub const fn queries(self, parameters: &'static [Parameter]) -> Operation {
        Operation { queries: Some(Queries(parameters)), ..self }
    }

    /// The request body is a file with a table.
    pub const fn file_body(self) -> Operation {
        Operation { file: true, ..self }
    }

    pub const fn body<T: ToSchema>(self) -> Operation {
        Operation { body: Some(Shape::of::<T>()), ..self }
    }

    pub const fn responses(self, responses: &'static [ResponseSpec]) -> Operation {
        Operation { responses, ..self }
    }
}

/// Parameters of a search that are members of the request body.
#[derive(Clone, Copy)]
pub struct Queries(pub &'static [Parameter]);

/// Required credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No credentials.
    Everybody,
    /// A key on the Pro plan or above. Counts one request.
    Key,
    /// A key or a session on the Core plan or above. Counts one export.
    Export,
}

named_enum! {
    /// Section of the document, in document order. The value is the heading.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Group {
        Names = "Names",
        Watchlist = "Watchlist",
        Searches = "Searches",
        Facts = "Facts",
        Alerts = "Alerts",
        Portfolio = "Portfolio",
        Feeds = "Feeds",
        Exports = "Exports",
        Service = "Service",
    }
}

impl Group {
    pub fn description(self) -> &'static str {
        match self {
            Group::Names => "Ranked drops, search, dossiers, votes and appraisals.",
            Group::Watchlist => "The names you watch, with their stage and what the registry says.",
            Group::Searches => "Filters that you keep under a name, with what is new in each.",
            Group::Facts => "Links, prices and other facts that you bring, to filter and sort by.",
            Group::Alerts => "Rules that send a message when matching names drop.",
            Group::Portfolio => "Your backorder claims and what became of them.",
            Group::Feeds => "Secret addresses for readers and calendars.",
            Group::Exports => "The same lists as CSV files.",
            Group::Service => "Your account, health, readiness and documentation.",
        }
    }
}

/// A parameter in the path, the query string or a header.
#[derive(Clone, Copy)]
pub struct Parameter {
    pub name: &'static str,
    pub place: ParameterPlace,
    pub kind: ParameterKind,
    pub required: bool,
    /// Example of a value as sent; empty only for parameters outside the query string.
    pub example: &'static str,
    pub description: &'static str,
}

impl Parameter {
    /// Whether its value is a list with commas.
    pub fn is_list(&self) -> bool {
        use ParameterKind::{Facets, List, SomeOf};
        matches!(self.kind, List { .. } | SomeOf(_) | Facets { .. })
    }
}

named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ParameterPlace {
        Path = "path",
        Query = "query",
        Header = "header",
    }
}

/// Type and range of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum ParameterKind {
    Integer {
        min: u32,
        max: u32,
        default: Option<u32>,
    },
    Id,
    /// Number of an event, or 0.
    Sequence,
    Text {
        chars_max: u32,
    },
    /// Text in a custom format, for readers and tests; standard validators ignore it.
    Format {
        format: &'static str,
        chars_max: Option<u32>,
    },
    /// A comma-separated list of texts in a custom format.
    List {
        format: &'static str,
    },
    /// A comma-separated list of these words.
    SomeOf(&'static [&'static str]),
    Date,
    /// One of these words, or `fact:` and the name of a fact.
    Sort {
        words: &'static [&'static str],
        default: &'static str,
    },
    /// Some of these words, and `fact:` with names of facts.
    Facets {
        words: &'static [&'static str],
    },
    OneOf {
        words: &'static [&'static str],
        default: Option<&'static str>,
    },
    /// `true` or `false`, the default.
    Flag,
}

/// A status and its response body.
pub struct ResponseSpec {
    pub status: u16,
    pub description: &'static str,
    pub content: Content,
}

/// Body of a response.
pub enum Content {
    Json(Shape),
    /// A body of another media type.
    Text(&'static str),
    /// The `Error` object.
    Refusal,
}

/// The JSON schema of a type.
#[derive(Clone, Copy)]
pub struct Shape {
    pub name: fn() -> std::borrow::Cow<'static, str>,
    pub schema: fn() -> RefOr<Schema>,
    /// Appends the schemas that this one references.
    pub parts: fn(&mut Vec<(String, RefOr<Schema>)>),
}

impl Shape {
    /// The schema that `T` derives.
    pub const fn of<T: ToSchema>() -> Shape {
        Shape { name: T::name, schema: T::schema, parts: T::schemas }
    }
}
