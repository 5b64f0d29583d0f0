//! The paths that tools of the ecosystem know: each answers as the route of this API does.

use super::fixture::*;
use cowboy_engine::primitives::{Hash, Wei};
use serde_json::{Value, json};

const NOTES: &str = r#"
def put(ctx, payload):
    pvm_host.set_state(payload, len(payload))
    return payload

def sum(ctx, payload):
    pvm_host.set_state("touched", True)
    return pvm_host.get_state("abc", 0) + 1
"#;

impl Devnet {
    async fn answer(&self, path: &str) -> (u16, Value) {
        let response = self.get(path).await;
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// Checks that two paths have the same answer.
    async fn same(&self, path: &str, own: &str) -> Value {
        let (status, answer) = self.answer(path).await;
        assert_eq!(status, 200, "{path}: {answer}");
        assert_eq!(answer, self.answer(own).await.1, "{path}");
        answer
    }
}

#[tokio::test]
async fn reads_answer_as_those_of_this_api() {
    let mut devnet = Devnet::new().await;
    let actor = devnet.deploy_module(NOTES);
    devnet.call(actor, "put", "abc");
    let hash = devnet.call(actor, "put", "abcd");
    let account = devnet.same("/account/dev-0", "/v1/accounts/dev-0").await;
    assert_eq!(account["nonce"], 3);
    assert_eq!(devnet.same("/height", "/v1/chain/head").await["height"], 3);
    assert_eq!(devnet.same("/block/2", "/v1/chain/blocks/2").await["height"], 2);
    devnet.same("/block/latest", "/v1/chain/blocks/3").await;
    devnet.same("/faucet", "/v1/accounts/faucet").await;
    devnet.same(&format!("/actor/{actor}"), &format!("/v1/actors/{actor}")).await;
    let receipt = format!("/transaction/{hash}/receipt");
    let receipt = devnet.same(&receipt, &format!("/v1/chain/transactions/{hash}")).await;
    assert_eq!(receipt["actor"]["result"], "abcd");
    let (_, parameters) = devnet.answer("/v1/chain/parameters").await;
    let (_, basefees) = devnet.answer("/basefee").await;
    let expected = json!({
        "height": 4, "cycle": parameters["cycle_basefee"], "cell": parameters["cell_basefee"],
    });
    assert_eq!(basefees, expected);

    let (_, first) = devnet.answer(&format!("/actors/{actor}/storage?limit=1")).await;
    assert_eq!(first["state"], json!([{"key": "abc", "value": 3, "value_bytes": null}]));
    let next = format!("/actors/{actor}/storage?from={}", first["next"].as_str().unwrap());
    let expected = json!({
        "actor": actor.to_string(),
        "height": 3,
        "state": [{"key": "abcd", "value": 4, "value_bytes": null}],
        "next": null,
    });
    assert_eq!(devnet.answer(&next).await.1, expected);
}

#[tokio::test]
async fn a_handler_is_read_without_a_change() {
    let mut devnet = Devnet::new().await;
    let actor = devnet.deploy_module(NOTES);
    devnet.call(actor, "put", "abc");
    let read = |query: &str| format!("/actor/{actor}/read_handler{query}");
    let (_, sum) = devnet.answer(&read("?handler=sum")).await;
    assert_eq!((&sum["result"], &sum["success"]), (&json!(4), &json!(true)), "{sum}");
    let (_, put) = devnet.answer(&read("?handler=put&payload=0x6162&sender=faucet")).await;
    assert_eq!(
        (&put["result"], &put["sender"]),
        (&json!("ab"), &json!(address("faucet").to_string()))
    );
    let (_, store) = devnet.answer(&format!("/actors/{actor}/storage")).await;
    assert_eq!(store["state"], json!([{"key": "abc", "value": 3, "value_bytes": null}]));
    for (query, told) in [
        ("", "missing field `handler`"),
        ("?handler=put&payload=0x6", "payload: "),
        ("?handler=put&sender=dev-99", "there is no account `dev-99`"),
    ] {
        let (status, refused) = devnet.answer(&read(query)).await;
        assert!((400..500).contains(&status), "{query}: {refused}");
        assert!(refused.to_string().contains(told), "{query}: {refused}");
    }
    let (status, missing) = devnet.answer(&read("?handler=none")).await;
    assert_eq!((status, &missing["success"]), (200, &json!(false)), "{missing}");
}

#[tokio::test]
async fn a_transaction_has_no_receipt_before_its_block() {
    let devnet = Devnet::new().await;
    let waiting = devnet.sign("dev-0", transfer("dev-1", Wei::new(1)));
    devnet.client.submit(&request(&waiting)).await.unwrap();
    for (hash, told) in [(waiting.hash(), "no block yet"), (Hash([7; 32]), "is in no block and")] {
        let (status, refused) = devnet.answer(&format!("/transaction/{hash}/receipt")).await;
        assert_eq!(status, 404, "{refused}");
        assert!(refused.to_string().contains(told), "{refused}");
    }
}
