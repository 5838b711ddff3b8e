//! What the checks read from Rust sources: types, identifiers and references between modules.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, UseTree};

/// Types that a file defines outside of its tests.
pub fn types(file: &syn::File) -> BTreeSet<String> {
    #[derive(Default)]
    struct Types(BTreeSet<String>);
    impl<'a> Visit<'a> for Types {
        fn visit_item(&mut self, item: &'a Item) {
            let name = match item {
                Item::Struct(item) => Some(&item.ident),
                Item::Enum(item) => Some(&item.ident),
                Item::Union(item) => Some(&item.ident),
                Item::Trait(item) => Some(&item.ident),
                Item::Type(item) => Some(&item.ident),
                _ => None,
            };
            self.0.extend(name.map(ToString::to_string));
            visit::visit_item(self, item);
        }
        fn visit_item_mod(&mut self, module: &'a ItemMod) {
            if !is_test(&module.attrs) {
                visit::visit_item_mod(self, module);
            }
        }
    }
    let mut types = Types::default();
    types.visit_file(file);
    types.0
}

/// Paths that begin with `crate`, `self` or `super` in code outside of tests, as lists of their segments.
pub fn references(file: &syn::File) -> BTreeSet<Vec<String>> {
    #[derive(Default)]
    struct References(BTreeSet<Vec<String>>);
    impl References {
        fn add(&mut self, path: Vec<String>) {
            if path.first().is_some_and(|first| matches!(first.as_str(), "crate" | "self" | "super")) {
                self.0.insert(path);
            }
        }
        fn add_tree(&mut self, before: &[String], tree: &UseTree) {
            let with = |name: String| before.iter().cloned().chain([name]).collect::<Vec<_>>();
            match tree {
                UseTree::Path(path) => self.add_tree(&with(path.ident.to_string()), &path.tree),
                UseTree::Name(name) => self.add(with(name.ident.to_string())),
                UseTree::Rename(rename) => self.add(with(rename.ident.to_string())),
                UseTree::Glob(_) => self.add(before.to_vec()),
                UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(before, tree)),
            }
        }
    }
    impl<'a> Visit<'a> for References {
        fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
            if !is_test(&item.attrs) {
                self.add_tree(&[], &item.tree);
            }
        }
        fn visit_path(&mut self, path: &'a syn::Path) {
            self.add(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
            visit::visit_path(self, path);
        }
        fn visit_visibility(&mut self, _: &'a syn::Visibility) {}
        fn visit_item_mod(&mut self, module: &'a ItemMod) {
            if !is_test(&module.attrs) {
                visit::visit_item_mod(self, module);
            }
        }
    }
    let mut references = References::default();
    references.visit_file(file);
    references.0
}

/// Identifiers of a file, tests included.
pub fn identifiers(tokens: TokenStream) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut streams = vec![tokens];
    while let Some(tokens) = streams.pop() {
        for token in tokens {
            match token {
                TokenTree::Group(group) => streams.push(group.stream()),
                TokenTree::Ident(ident) => {
                    found.insert(ident.to_string());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
    found
}

/// True for what is compiled for tests alone.
fn is_test(attributes: &[Attribute]) -> bool {
    let is_test = |a: &Attribute| {
        a.path().is_ident("cfg") && a.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    };
    attributes.iter().any(is_test)
}
