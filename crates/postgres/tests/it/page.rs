//! The page of functions is what the registry says.

use std::path::Path;
use std::{env, fs};

use mainstem_postgres::registry::page;

#[test]
fn the_page_of_functions_is_made_from_the_registry() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/functions.md");
    if env::var_os("MAINSTEM_WRITE").is_some() {
        fs::write(&path, page()).expect("the page is written");
    }
    let written = fs::read_to_string(&path).expect("docs/functions.md");
    assert!(written == page(), "docs/functions.md is old: run this test with MAINSTEM_WRITE=1");
}
