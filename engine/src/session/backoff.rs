//! The delay before a runner reconnects (spec §3, CIP-11 §11.3).

/// The first delay before jitter, in ms.
const BASE_MS: u64 = 100;
/// The longest delay before jitter, in ms.
const MAX_MS: u64 = 30_000;

/// The delay in ms before attempt `attempt`: 100 ms × 2^attempt, at most 30 s, ± 25 % by `random`,
/// which is uniform over u64. The count starts at 0 and restarts after each completed handshake.
pub const fn delay_ms(attempt: u32, random: u64) -> u64 {
    let nominal = match BASE_MS.checked_shl(attempt) {
        // 100 << 57 is the last shift that loses no bits.
        Some(delay) if attempt < 57 && delay < MAX_MS => delay,
        _ => MAX_MS,
    };
    let (least, most) = (nominal * 3 / 4, nominal * 5 / 4);
    least + random % (most - least + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `timer.json`, `reconnect_backoff`: (attempt, min_ms, max_ms).
    const VECTORS: [(u32, u64, u64); 12] = [
        (0, 75, 125),
        (1, 150, 250),
        (2, 300, 500),
        (3, 600, 1_000),
        (4, 1_200, 2_000),
        (5, 2_400, 4_000),
        (6, 4_800, 8_000),
        (7, 9_600, 16_000),
        (8, 19_200, 32_000),
        (9, 22_500, 37_500),
        (10, 22_500, 37_500),
        (11, 22_500, 37_500),
    ];

    #[test]
    fn delays_lie_within_the_vectors_bounds_and_reach_both() {
        for (attempt, least, most) in VECTORS {
            let span = most - least;
            assert_eq!(delay_ms(attempt, 0), least);
            assert_eq!(delay_ms(attempt, span), most);
            assert_eq!(delay_ms(attempt, span + 1), least);
            for random in [u64::MAX, 0x9e37_79b9_7f4a_7c15, span / 2] {
                assert!((least..=most).contains(&delay_ms(attempt, random)), "{attempt}");
            }
        }
        for attempt in [12, 56, 57, 58, 63, 64, u32::MAX] {
            assert_eq!(delay_ms(attempt, 0), 22_500, "{attempt}");
        }
    }
}
