//! Which instruction set this processor offers, asked once.
//!
//! Nearly all fast twins need the same set (AVX2, BMI1, BMI2, POPCNT: every x86-64 server since 2013), so there is one
//! question and one answer. What moves bytes about asks for AVX-512 with VBMI and VBMI2 besides (servers since 2019),
//! and for products without carries, which these have.
//! On other architectures the answer is a constant `false`, and the fast twins are not compiled.

/// Whether the AVX2 twins may run. Costs one relaxed load after the first call.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn avx2() -> bool {
    use std::sync::atomic::{AtomicU8, Ordering};
    const UNKNOWN: u8 = 0;
    const NO: u8 = 1;
    const YES: u8 = 2;
    static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

    #[cold]
    fn detect() -> bool {
        let found = std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("bmi1")
            && std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("popcnt");
        STATE.store(if found { YES } else { NO }, Ordering::Relaxed);
        found
    }

    match STATE.load(Ordering::Relaxed) {
        YES => true,
        NO => false,
        _ => detect(),
    }
}

/// Whether the AVX-512 twins may run, too. Costs one relaxed load after the first call.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn avx512() -> bool {
    use std::sync::OnceLock;
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        avx2()
            && std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512vl")
            && std::is_x86_feature_detected!("avx512vbmi")
            && std::is_x86_feature_detected!("avx512vbmi2")
            && std::is_x86_feature_detected!("pclmulqdq")
    })
}
