//! `difftest completions` and `difftest man`: made from the command line itself.

use super::{Verdict, command, print};
use crate::error::Error;
use clap_complete::Shell;
use difftest::output;
use std::path::{Path, PathBuf};

/// Flags of `difftest completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "bash: difftest completions bash > ~/.local/share/bash-completion/completions/difftest\n\
zsh:  difftest completions zsh > a folder of $fpath/_difftest\n\
fish: difftest completions fish > ~/.config/fish/completions/difftest.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Flags of `difftest man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Without --dir: difftest man | man -l -")]
pub struct Man {
    /// Write difftest.1 and a page of every command into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Writes the completion script.
///
/// # Errors
/// Standard output that cannot be written.
pub fn completions(args: &Completions) -> Result<Verdict, Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "difftest", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(Verdict::Holds)
}

fn page(command: clap::Command) -> Result<String, Error> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).map_err(Error::file(Path::new("the manual page")))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// Writes the manual.
///
/// # Errors
/// A folder or standard output that cannot be written.
pub fn man(args: &Man) -> Result<Verdict, Error> {
    let Some(dir) = &args.dir else {
        print(&page(command())?)?;
        return Ok(Verdict::Holds);
    };
    std::fs::create_dir_all(dir).map_err(Error::file(dir))?;
    // Names and usages as they are typed, `difftest head`.
    let mut whole = command();
    whole.build();
    let commands: Vec<_> = whole.get_subcommands().filter(|c| c.get_name() != "help").cloned().collect();
    for command in std::iter::once(whole).chain(commands) {
        let name = command.get_bin_name().unwrap_or("difftest").replace(' ', "-");
        output::write(&dir.join(format!("{name}.1")), page(command.name(name.leak() as &str))?.as_bytes())?;
    }
    Ok(Verdict::Holds)
}
