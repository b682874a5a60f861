use axum::Router;

use crate::web::Web;

pub fn routes() -> Router<Web> {
    Router::new()
}
