//! `difftest certs`: keys, certificates and configuration files for three parties and their client.

use super::{Verdict, print};
use crate::error::{Error, FlagError, PartiesError};
use crate::parties::certificates::issue;
use crate::parties::files::{Place, write_all};
use std::path::PathBuf;

/// Flags of `difftest certs`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Writes into DIR: authority.pem and authority.key (keep the key offline), and for each party and the \
        client a \
certificate, a key, and a file: party0.toml to party2.toml for `difftest party`, hosts.toml for `--parties`. Give each \
machine its own key and no \
other. Existing files are never replaced."
)]
pub struct Args {
    /// The folder; it is made if it is not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Where the three parties will listen, host:port each
    #[arg(long, num_args = 3, value_names = ["PARTY0", "PARTY1", "PARTY2"],
        default_values = ["127.0.0.1:7000", "127.0.0.1:7001", "127.0.0.1:7002"])]
    addresses: Vec<String>,
    /// Days for which the certificates are valid
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(i64).range(1..=3650))]
    days: i64,
}

/// Writes keys, certificates and configuration files.
///
/// # Errors
/// A file that cannot be written.
pub fn run(args: Args) -> Result<Verdict, Error> {
    let addresses = args.addresses.try_into().map_err(|given: Vec<String>| FlagError::Addresses(given.len()))?;
    let issuance = issue(args.days).map_err(PartiesError::from)?;
    write_all(&args.folder, &issuance, &addresses, Place::Apart)?;
    print(&format!(
        "{}: certificates for party0.difftest, party1.difftest, party2.difftest and client.difftest, valid for {} \
         days\n",
        args.folder.display(),
        args.days
    ))?;
    Ok(Verdict::Holds)
}
