//! The first sentence of a public doc comment stands alone in an index: it names its subject instead of leaning on the
//! item before ("The same ..") or on its own name ("What .."), and it is a whole sentence, with its period.

use crate::architecture::{CRATES, for_tests, rust_files};
use crate::common::repository;
use std::fmt::Write;
use std::fs;
use syn::visit::{self, Visit};

/// The public doc comments of a file, tests left out: line by line, and whether it is the text of a command's help,
/// which is written without a period.
#[derive(Default)]
struct Docs {
    found: Vec<(String, bool)>,
    help: bool,
}

impl Docs {
    fn add(&mut self, attributes: &[syn::Attribute]) {
        let line = |attribute: &syn::Attribute| match &attribute.meta {
            syn::Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        };
        let lines: Vec<String> = attributes.iter().filter_map(line).collect();
        if !lines.is_empty() {
            self.found.push((first_sentence(&lines), self.help));
        }
    }
}

/// The first sentence of the first paragraph.
fn first_sentence(lines: &[String]) -> String {
    let paragraph: Vec<&str> = lines.iter().map(|line| line.trim()).take_while(|line| !line.is_empty()).collect();
    let paragraph = paragraph.join(" ");
    let end = paragraph.find(". ").map_or(paragraph.len(), |at| at + 1);
    paragraph[..end].to_owned()
}

/// Whether the fields and variants of an item are the flags and commands of the program.
fn of_commands(attributes: &[syn::Attribute]) -> bool {
    let clap = |a: &syn::Attribute| match &a.meta {
        syn::Meta::List(list) if list.path.is_ident("derive") => {
            let derived = list.tokens.to_string();
            ["clap", "Parser", "Subcommand"].iter().any(|name| derived.contains(name))
        }
        _ => false,
    };
    attributes.iter().any(clap)
}

fn public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

impl<'a> Visit<'a> for Docs {
    fn visit_file(&mut self, file: &'a syn::File) {
        self.add(&file.attrs);
        visit::visit_file(self, file);
    }

    fn visit_item(&mut self, item: &'a syn::Item) {
        let (attributes, visibility) = match item {
            syn::Item::Const(i) => (&i.attrs, &i.vis),
            syn::Item::Enum(i) => (&i.attrs, &i.vis),
            syn::Item::Fn(i) => (&i.attrs, &i.vis),
            syn::Item::Mod(i) => (&i.attrs, &i.vis),
            syn::Item::Static(i) => (&i.attrs, &i.vis),
            syn::Item::Struct(i) => (&i.attrs, &i.vis),
            syn::Item::Trait(i) => (&i.attrs, &i.vis),
            syn::Item::Type(i) => (&i.attrs, &i.vis),
            syn::Item::Impl(i) if i.trait_.is_none() && !for_tests(&i.attrs) => return visit::visit_item(self, item),
            _ => return,
        };
        if for_tests(attributes) {
            return;
        }
        if public(visibility) {
            self.add(attributes);
        }
        let whole = public(visibility) || matches!(item, syn::Item::Mod(_));
        if whole {
            self.help = of_commands(attributes);
            visit::visit_item(self, item);
            self.help = false;
        }
    }

    fn visit_field(&mut self, field: &'a syn::Field) {
        if public(&field.vis) {
            self.add(&field.attrs);
        }
    }

    fn visit_variant(&mut self, variant: &'a syn::Variant) {
        self.add(&variant.attrs);
        // The fields of a variant are as public as it is.
        variant.fields.iter().for_each(|field| self.add(&field.attrs));
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        if public(&item.vis) && !for_tests(&item.attrs) {
            self.add(&item.attrs);
        }
    }

    fn visit_impl_item_const(&mut self, item: &'a syn::ImplItemConst) {
        if public(&item.vis) {
            self.add(&item.attrs);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        self.add(&item.attrs);
    }

    fn visit_trait_item_type(&mut self, item: &'a syn::TraitItemType) {
        self.add(&item.attrs);
    }
}

/// Why a first sentence cannot stand alone.
fn wrong(sentence: &str, help: bool) -> Option<&'static str> {
    let first = sentence.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    match () {
        () if sentence.starts_with("The same ") => Some("begins with \"The same\": say what it is"),
        () if first == "What" => Some("begins with \"What\": begin with the noun that it is"),
        () if first == "See" => Some("begins with \"See\": say what it is, then where to read on"),
        () if !help && !sentence.ends_with('.') => Some("does not end with a period"),
        () => None,
    }
}

#[test]
fn every_public_doc_comment_begins_with_a_sentence_that_stands_alone() {
    let (mut seen, mut list) = (0, String::new());
    for source in CRATES.map(|c| c.sources) {
        let (folder, mut files) = (repository(source), Vec::new());
        rust_files(&folder, &mut files);
        for path in files {
            let file = format!("{source}/{}", path.strip_prefix(&folder).unwrap().display());
            let mut docs = Docs::default();
            docs.visit_file(&syn::parse_file(&fs::read_to_string(&path).unwrap()).unwrap());
            seen += docs.found.len();
            for (sentence, help) in docs.found {
                let Some(why) = wrong(&sentence, help) else { continue };
                writeln!(list, "{file}: \"{sentence}\" {why}").unwrap();
            }
        }
    }
    assert!(seen > 2500, "doc comments were found: {seen}");
    assert!(list.is_empty(), "\n{list}");
}

/// The reading itself: what is public is found, what is not is left out.
#[test]
fn doc_comments_are_found_where_they_are_public() {
    let file = syn::parse_file(
        "//! The file. More.\n\
         /// A struct\n/// in two lines. More.\npub struct S {\n /// A field.\n pub a: u8,\n /// No.\n b: u8 }\n\
         /// No.\nstruct P { /** No. */ pub a: u8 }\n\
         /// A list of them.\n///\n/// More.\npub enum E { /// A variant.\n V { /// Its field.\n f: u8 } }\n\
         impl S { /// A method.\n pub fn m() {}\n /// No.\n fn n() {} }\n\
         impl T for S { /// No.\n fn t() {} }\n\
         #[derive(clap::Args)]\n/// Flags.\npub struct F { /// A flag\n pub f: u8 }\n\
         #[cfg(test)]\nmod tests { /// No.\n pub fn f() {} }\n",
    );
    let mut docs = Docs::default();
    docs.visit_file(&file.unwrap());
    let found: Vec<&str> = docs.found.iter().map(|(sentence, _)| sentence.as_str()).collect();
    let wanted =
        ["The file.", "A struct in two lines.", "A field.", "A list of them.", "A variant.", "Its field.", "A method."];
    assert_eq!(found[..wanted.len()], wanted);
    assert_eq!(docs.found[wanted.len()..], [("Flags.".into(), false), ("A flag".into(), true)]);
    assert_eq!(
        ["The same again.", "What it is.", "See there.", "No period"].map(|s| wrong(s, false).is_some()),
        [true; 4]
    );
    assert_eq!(["Whatever it is.", "Seeds."].map(|s| wrong(s, false)), [None; 2]);
    assert_eq!(wrong("No period", true), None);
}
