//! The stored form of a job's phase.

use super::{AttemptPhase, Went};
use cowboy_engine::primitives::codec::{Decode, DecodeError, Encode, Reader, Writer};

impl Encode for AttemptPhase {
    fn encode(&self, w: &mut Writer) {
        match self {
            Self::Waiting { needs, others } => {
                let well = *others == Went::Well;
                w.list(if well { 2 } else { 3 });
                w.u64(0);
                needs.iter().cloned().collect::<Vec<_>>().encode(w);
                if !well {
                    w.u64(*others as u64);
                }
            }
            Self::Pausing { until } => (4_u64, *until).encode(w),
            Self::Queued { position } => (1_u64, *position).encode(w),
            Self::Held(held) => {
                w.list(2);
                w.u64(2);
                held.encode(w);
            }
            Self::Ended { state, why, at } => {
                w.list(4);
                w.u64(3);
                state.encode(w);
                why.encode(w);
                w.u64(*at);
            }
        }
    }
}

impl Decode for AttemptPhase {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let len = r.list(4)?;
        match (r.u64()?, len) {
            (0, 2 | 3) => {
                let needs = Vec::decode(r)?.into_iter().collect();
                let others = match (len > 2).then(|| r.u64()).transpose()? {
                    None => Went::Well,
                    Some(1) => Went::Unfinished,
                    Some(2) => Went::Badly,
                    Some(_) => return Err(DecodeError::Invalid("unknown end of a needed job")),
                };
                Ok(Self::Waiting { needs, others })
            }
            (4, 2) => r.u64().map(|until| Self::Pausing { until }),
            (1, 2) => r.u64().map(|position| Self::Queued { position }),
            (2, 2) => Decode::decode(r).map(Self::Held),
            (3, 4) => {
                Ok(Self::Ended { state: Decode::decode(r)?, why: Decode::decode(r)?, at: r.u64()? })
            }
            _ => Err(DecodeError::Invalid("unknown phase of a job")),
        }
    }
}
