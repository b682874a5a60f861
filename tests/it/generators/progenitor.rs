//! Pages through the drops with the client that progenitor generated, then reads two errors.

use std::env::var;

use openapi::types::{self, Drops};
use openapi::{Client, ResponseValue};
use serde_json::{Value, json};

async fn page(
    client: &Client,
    cursor: Option<&str>,
) -> Result<ResponseValue<Drops>, openapi::Error<types::Error>> {
    // Items of a list in one text: this generator sends them one at a time, which is refused.
    let request = client
        .list_drops()
        .tld(vec!["com,org".try_into().expect("a text")])
        .limit(200);
    match cursor {
        Some(cursor) => request.cursor(cursor).send().await,
        None => request.send().await,
    }
}

async fn refused(client: &Client) -> Value {
    let Err(openapi::Error::ErrorResponse(response)) = page(client, Some("x")).await else {
        panic!("not refused")
    };
    let mut error = json!(&*response);
    error["status"] = response.status().as_u16().into();
    error
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut headers = reqwest::header::HeaderMap::new();
    let key = format!("Bearer {}", var("DROPDEX_KEY").expect("set"));
    headers.insert("authorization", key.parse().expect("a header"));
    let http = reqwest::Client::builder()
        .default_headers(headers)
        .build()
        .expect("a client");
    let client = Client::new_with_client(&var("DROPDEX_URL").expect("set"), http);
    let mut drops = page(&client, None).await.expect("a page").into_inner();
    let mut names: Vec<Option<String>> = Vec::new();
    loop {
        names.extend(drops.drops.into_iter().map(|drop| drop.name));
        let Some(cursor) = drops.next_cursor else {
            break;
        };
        drops = page(&client, Some(&cursor))
            .await
            .expect("a page")
            .into_inner();
    }
    let errors = [refused(&client).await, refused(&client).await];
    println!("{}", json!({ "names": names, "errors": errors }));
}
