//! `presence feasibility`: the known limits of the threshold rules, in numbers.

use crate::{
    context::Context,
    error::CliError,
    output::{Row, columns},
};
use clap::Args;
use cowboy_devnet::topology::{self, MAX_VALIDATORS};
use cowboy_engine::presence::ThresholdRule;
use serde::Serialize;
use std::str::FromStr;

/// `presence feasibility`.
#[derive(Debug, Args)]
pub struct Feasibility {
    /// Number of validators: 7, or 4..12
    #[arg(value_name = "VALIDATORS", default_value = "1..20")]
    validators: Validators,
    /// Only this threshold rule: committee, quorum or subset
    #[arg(long)]
    rule: Option<ThresholdRule>,
}

impl Feasibility {
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        let Self { validators: Validators { first, last }, rule } = self;
        let rules: Vec<_> = rule.map_or(ThresholdRule::ALL.to_vec(), |rule| vec![rule]);
        let rows = (first..=last).flat_map(|n| rules.iter().map(move |rule| Outlook::of(n, *rule)));
        cx.ui.list(&rows.collect::<Vec<_>>())
    }
}

/// A range of validator counts, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Validators {
    first: usize,
    last: usize,
}

impl FromStr for Validators {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let most = MAX_VALIDATORS as usize;
        let number = |text: &str| text.parse().ok().filter(|n| (1..=most).contains(n));
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self { first, last }),
            _ => Err(format!("expected a number from 1 to {most}, or two with .. between: 4..12")),
        }
    }
}

/// The limits for a number of validators under a rule.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Outlook {
    validators: u32,
    rule: &'static str,
    /// Validators that a runner is connected to.
    subset: u32,
    /// Votes in a certificate.
    quorum: u32,
    /// Votes that a runner needs to be present.
    threshold: u32,
    /// Numerator of the share of certificates that show the runner present, in lowest terms: a
    /// decimal number of any length.
    present: Option<String>,
    /// Denominator of that share: the number of possible certificates.
    out_of: Option<String>,
    /// Number of dishonest validators that can show a runner present that no honest one sees.
    to_fabricate: u32,
    /// Number of dishonest validators that can hide a connected runner.
    to_hide: u32,
    #[serde(skip)]
    present_in: String,
}

impl Outlook {
    fn of(validators: usize, rule: ThresholdRule) -> Self {
        let feasibility = topology::Feasibility::of(validators, rule);
        let present_in = feasibility.present_in();
        let topology::Feasibility { validators, subset, quorum, threshold, present, .. } =
            feasibility;
        Self {
            validators,
            rule: rule.name(),
            subset,
            quorum,
            threshold,
            out_of: present.map(|(_, all)| all.to_string()),
            present: present.map(|(some, _)| some.to_string()),
            to_fabricate: feasibility.to_fabricate,
            to_hide: feasibility.to_hide,
            present_in,
        }
    }
}

impl Row for Outlook {
    columns! { self;
        ">validators" => self.validators.to_string(),
        "rule" => self.rule.to_owned(),
        ">subset" => self.subset.to_string(),
        ">quorum" => self.quorum.to_string(),
        ">needed" => self.threshold.to_string(),
        ">present" => self.present_in.clone(),
        ">to fabricate" => self.to_fabricate.to_string(),
        ">to hide" => self.to_hide.to_string(),
    }
    const LEAST: &'static [&'static str] = &["quorum", "subset"];

    fn id(&self) -> String {
        format!("{} {} {}", self.validators, self.rule, self.present_in)
    }
}
