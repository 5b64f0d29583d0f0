//! An account whose balance is less than a payment.

use super::{Address, CBY, InCby, Wei};
use std::fmt;

/// Prefix of the text of every shortfall.
const NAME: &str = "InsufficientBalance: ";

/// A payment and the balance that does not cover it. Its text is that of the chain's error
/// `InsufficientBalance`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortfall {
    pub payer: Address,
    pub need: Wei,
    /// The payer's balance, which is less.
    pub have: Wei,
}

impl Shortfall {
    pub const fn missing(&self) -> Wei {
        self.need.saturating_sub(self.have)
    }

    /// The missing amount in whole CBY, plus one for fees.
    pub const fn to_fund(&self) -> u128 {
        self.missing().get().div_ceil(CBY).saturating_add(1)
    }

    /// The first shortfall in an error's text, with or without names.
    pub fn in_text(text: &str) -> Option<Self> {
        let (payer, text) = text.split_once(" needs ")?;
        let payer = payer.split_whitespace().next_back()?.trim_matches(['(', ')']);
        let (need, text) = text.split_once(" and has ")?;
        let (have, _) = text.split_once(':')?;
        let amount = |text: &str| text.replace(' ', "").parse::<Wei>().ok();
        Some(Self { payer: payer.parse().ok()?, need: amount(need)?, have: amount(have)? })
    }
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { payer, need, have } = self;
        let (need, have, missing) = (InCby(*need), InCby(*have), InCby(self.missing()));
        write!(f, "{NAME}{payer} needs {need} and has {have}: {missing} are missing")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_fund_covers_the_next_fee() {
        let to_fund = |need| {
            Shortfall { payer: Address([1; 20]), need: Wei::new(need), have: Wei::ZERO }.to_fund()
        };
        assert_eq!((to_fund(1), to_fund(CBY), to_fund(CBY + 1)), (2, 2, 3));
    }

    #[test]
    fn the_text_names_the_payer_and_what_is_missing_and_is_read_again() {
        let short = |need, have| Shortfall {
            payer: Address([0xab; 20]),
            need: Wei::new(need),
            have: Wei::new(have),
        };
        let text = short(2_500_000_000, 1).to_string();
        assert_eq!(
            text,
            "InsufficientBalance: 0xabababababababababababababababababababab needs 2.5 CBY and has \
             0.000000001 CBY: 2.499999999 CBY are missing"
        );
        for short in [short(2_500_000_000, 1), short(u128::MAX, 0), short(7, 6)] {
            let payer = short.payer.to_string();
            let named = short.to_string().replace(&payer, &format!("dev-0 ({payer})"));
            for text in [format!("ActorError: {short} (in `pay`)"), named] {
                assert_eq!(Shortfall::in_text(&text), Some(short), "{text}");
            }
        }
        for other in ["", "InsufficientBalance", "InsufficientBalance: a needs b and has c: d"] {
            assert_eq!(Shortfall::in_text(other), None, "{other}");
        }
    }
}
