//! Queries a server with the client that openapi-generator generated, and prints what it decoded from
//! each status.

use std::env::var;

use openapi::apis::configuration::Configuration;
use openapi::apis::{Error, names_api};
use openapi::models;
use serde_json::{Map, Value, json};

fn client(key: &str) -> Configuration {
    Configuration {
        base_path: var("DROPDEX_URL").expect("set"),
        bearer_access_token: Some(key.to_owned()),
        ..Configuration::new()
    }
}

async fn ask(client: &Configuration, name: &str) -> (u16, Value) {
    match names_api::find_domain(client, name, None).await {
        Ok(dossier) => (200, json!(dossier)),
        Err(Error::ResponseError(response)) => {
            // All error variants have one type.
            let error = serde_json::from_str::<models::Error>(&response.content);
            assert!(response.entity.is_some(), "not decoded: {}", response.content);
            (response.status.as_u16(), json!(error.expect("the type of errors")))
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (owner, nobody) =
        (client(&var("DROPDEX_KEY").expect("set")), client(&format!("ddx_{}", "0".repeat(48))));
    let mut asked = vec![
        ask(&owner, "solar.com").await,
        ask(&owner, "www.solar.com").await,
        ask(&nobody, "solar.com").await,
    ];
    while asked.last().is_some_and(|(status, _)| *status != 429) && asked.len() < 20 {
        asked.push(ask(&owner, "solar.com").await);
    }
    let asked: Map<String, Value> =
        asked.into_iter().map(|(status, body)| (status.to_string(), body)).collect();
    println!("{}", Value::from(asked));
}
