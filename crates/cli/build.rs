//! How the program is linked.
//!
//! Comes in: the profile and the target. Goes out: arguments for the linker of the program, none of the libraries'. The
//! names of functions, a quarter of a release, are left out of it, unless `MAINSTEM_SYMBOLS` asks for them: profiles of
//! where time goes need them.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=MAINSTEM_SYMBOLS");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") && std::env::var_os("MAINSTEM_SYMBOLS").is_none()
    {
        println!("cargo:rustc-link-arg-bins=-Wl,--strip-all");
    }
}
