//! Pages through the drops with the client that openapi-generator generated, then reads two errors.

use std::env::var;

use openapi::apis::configuration::Configuration;
use openapi::apis::names_api::{ListDropsError, list_drops};
use openapi::apis::{Error, ResponseContent};
use openapi::models::Drops;
use serde_json::{Value, json};

async fn page(
    client: &Configuration,
    cursor: Option<&str>,
) -> Result<Drops, Error<ListDropsError>> {
    let tlds = Some(vec!["com".to_owned(), "org".to_owned()]);
    list_drops(
        client,
        tlds,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        Some(200),
        None,
        cursor,
        None,
        None,
        None,
        None,
        None,
        None,
    )
    .await
}

async fn refused(client: &Configuration) -> Value {
    let Err(Error::ResponseError(ResponseContent { status, entity, .. })) =
        page(client, Some("x")).await
    else {
        panic!("not refused")
    };
    let mut error = json!(entity.expect("decoded"));
    error["status"] = status.as_u16().into();
    error
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let client = Configuration {
        base_path: var("DROPDEX_URL").expect("set"),
        bearer_access_token: Some(var("DROPDEX_KEY").expect("set")),
        ..Configuration::new()
    };
    let mut drops = page(&client, None).await.expect("a page");
    let mut names: Vec<Option<String>> = Vec::new();
    loop {
        names.extend(drops.drops.into_iter().map(|drop| drop.name));
        let Some(cursor) = drops.next_cursor else {
            break;
        };
        drops = page(&client, Some(&cursor)).await.expect("a page");
    }
    let errors = [refused(&client).await, refused(&client).await];
    println!("{}", json!({ "names": names, "errors": errors }));
}
