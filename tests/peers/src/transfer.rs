//! Transfers as Ethereum nodes take them.

use alloy_rlp::{Encodable, Header};
use cowboy_engine::primitives::{Address, SecretKey, keccak256};

/// Gas of a transfer (Ethereum's yellow paper, G_transaction).
pub const GAS: u64 = 21_000;

/// A transfer before it is signed.
#[derive(Clone, Copy, Debug)]
pub struct Payment {
    pub nonce: u64,
    /// Wei for each unit of gas.
    pub gas_price: u64,
    pub to: Address,
    pub wei: u64,
    pub chain_id: u64,
}

impl Payment {
    /// Signed for its chain (EIP-155), as `eth_sendRawTransaction` takes it.
    pub fn signed(&self, key: &SecretKey) -> String {
        let Self { nonce, gas_price, to, wei, chain_id } = self;
        let (to, nothing) = (&to.0[..], &[][..]);
        let fields: [&dyn Encodable; 6] = [nonce, gas_price, &GAS, &to, wei, &nothing];
        let unsigned = list(&[&fields[..], &[chain_id, &0_u8, &0_u8]].concat());
        let signature = key.sign(&keccak256(&[&unsigned])).0;
        let v = chain_id * 2 + 35 + u64::from(signature[64]);
        let (r, s) = (number(&signature[..32]), number(&signature[32..64]));
        format!("0x{}", hex::encode(list(&[&fields[..], &[&v, &r, &s]].concat())))
    }
}

fn list(fields: &[&dyn Encodable]) -> Vec<u8> {
    let payload_length = fields.iter().map(|field| field.length()).sum();
    let mut bytes = Vec::new();
    Header { list: true, payload_length }.encode(&mut bytes);
    fields.iter().for_each(|field| field.encode(&mut bytes));
    bytes
}

/// A big-endian number without leading zeros.
fn number(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    &bytes[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of EIP-155.
    #[test]
    fn a_payment_is_signed_as_ethereum_signs_it() {
        let key = SecretKey::from_bytes(&[0x46; 32]).expect("a scalar");
        let payment = Payment {
            nonce: 9,
            gas_price: 20_000_000_000,
            to: Address([0x35; 20]),
            wei: 1_000_000_000_000_000_000,
            chain_id: 1,
        };
        let expected = concat!(
            "0xf86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a7640000",
            "8025a028ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f76",
            "1aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83",
        );
        assert_eq!(payment.signed(&key), expected);
    }
}
