//! Passes the linker what a Node addon needs; nothing without the `addon` feature.

fn main() {
    #[cfg(feature = "addon")]
    napi_build::setup();
}
