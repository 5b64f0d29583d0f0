//! Signatures that actors in Python have verified.

use super::verifies;

/// Vectors of RFC 8032, section 7.1: key, message, signature.
const VECTORS: [[&str; 3]; 2] = [
    [
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9\
         b46bd25bf5f0595bbe24655141438e7a100b",
    ],
    [
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f1\
         1d8c387b2eaeb4302aeeb00d291612bb0c00",
    ],
];

#[test]
fn signatures_are_verified_strictly() {
    for [key, message, signature] in VECTORS {
        let key: [u8; 32] = hex::decode(key).unwrap().try_into().unwrap();
        let message = hex::decode(message).unwrap();
        let signature: [u8; 64] = hex::decode(signature).unwrap().try_into().unwrap();
        assert!(verifies(&key, &message, &signature));
        assert!(!verifies(&key, &[&message[..], b"x"].concat(), &signature));
        for at in [0, 31, 32, 63] {
            let mut wrong = signature;
            wrong[at] ^= 1;
            assert!(!verifies(&key, &message, &wrong), "byte {at}");
        }
        assert!(!verifies(&[0xff; 32], &message, &signature), "no point has this key");
    }
    // The neutral element as key and commitment, with 0: it would fit every message.
    let neutral: [u8; 32] = std::array::from_fn(|at| u8::from(at == 0));
    let mut signature = [0; 64];
    signature[0] = 1;
    assert!(!verifies(&neutral, b"any", &signature));
}
