//! Public integer constants of the arithmetic, each with its scale. Both sides use these numbers; neither shares code.
//!
//! The polynomials are minimax fits found by linear programming on 4,001 Chebyshev nodes and then rounded to the scale
//! given; `fixed`'s tests measure the error of the rounded ones over every input.

/// Coefficient of r in 2^r on [0, 1], scale 29.
pub const EXP_C1: i64 = 372_061_071;
/// Coefficient of r^2, scale 40.
pub const EXP_C2: i64 = 265_476_418_188;
/// Coefficient of r^3, scale 20.
pub const EXP_C3: i64 = 54_468;
/// Coefficient of r^4, scale 20.
pub const EXP_C4: i64 = 14_244;
/// Start of the inverse, (3/4 + sqrt(1/2)), scale 31: 1/u for u in [1, 2) is about this minus u/2.
pub const DIV_A2: i64 = 3_129_112_986;
/// ln 2, scale 56.
pub const LN_2: i64 = 49_946_518_145_322_874;
/// Coefficient of v^0 in ln(1.5 + v) on [-1/2, 1/2], scale 56.
pub const LOG_L0: i64 = 29_216_839_811_914_320;
/// Coefficient of v^1 in ln(1.5 + v) on [-1/2, 1/2], scale 26.
pub const LOG_L1: i64 = 44_739_197;
/// Coefficient of v^2 in ln(1.5 + v) on [-1/2, 1/2], scale 36.
pub const LOG_L2: i64 = -15_270_814_395;
/// Coefficient of v^3 in ln(1.5 + v) on [-1/2, 1/2], scale 36.
pub const LOG_L3: i64 = 6_789_206_252;
/// Coefficient of v^4 in ln(1.5 + v) on [-1/2, 1/2], scale 36.
pub const LOG_L4: i64 = -3_397_913_071;
/// Coefficient of v^5 in ln(1.5 + v) on [-1/2, 1/2], scale 16.
pub const LOG_L5: i64 = 1_700;
/// Coefficient of v^6 in ln(1.5 + v) on [-1/2, 1/2], scale 16.
pub const LOG_L6: i64 = -925;
/// Coefficient of v^7 in ln(1.5 + v) on [-1/2, 1/2], scale 16.
pub const LOG_L7: i64 = 676;
/// Coefficient of v^8 in ln(1.5 + v) on [-1/2, 1/2], scale 16.
pub const LOG_L8: i64 = -430;
