//! `difftest party`: one party as a process.

use super::{Verdict, print};
use crate::error::{Error, PartiesError};
use crate::parties::files::PartyFile;
use secure::engine::remote::health;
use secure::host::{Host, HostConfig};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Flags of `difftest party`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "`difftest certs DIR` writes the file. The party prints one line when it listens, and logs one line \
        for each session on \
standard error."
)]
pub struct Args {
    /// The party's file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Ask the running party of this file how it is: one line, exit code 0 if it answers
    #[arg(long)]
    health: bool,
    /// Write no log
    #[arg(long)]
    quiet: bool,
    /// End when standard input does
    #[arg(long, hide = true)]
    until_input_ends: bool,
}

/// Runs the party for as long as it is left alone.
///
/// # Errors
/// A file that is wrong, an address that cannot be listened on.
pub fn run(args: Args) -> Result<Verdict, Error> {
    let (file, id, credentials) = PartyFile::read(&args.config)?;
    let patience = Duration::from_secs(file.patience_seconds);
    if args.health {
        let s = health(&credentials, id, &file.listen, patience).map_err(PartiesError::Health)?;
        print(&format!(
            "party={} up_seconds={} sessions={} ended={} failed={}\n",
            s.party, s.seconds, s.sessions, s.ended, s.failed
        ))?;
        return Ok(Verdict::Holds);
    }
    let refused = |cause| PartiesError::Listen { address: file.listen.clone(), cause };
    let listener = TcpListener::bind(&file.listen).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let quiet = args.quiet;
    let log = move |line: &str| {
        if !quiet {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let _ = writeln!(std::io::stderr(), "time={}.{:03} {line}", now.as_secs(), now.subsec_millis());
        }
    };
    let host = Host::new(HostConfig {
        id,
        credentials,
        addresses: file.addresses.all(),
        threads: file.threads,
        sessions: file.sessions,
        record: file.record,
        insecure_seeds: file.insecure_seeds,
        states: file.states.map(|s| args.config.parent().unwrap_or(Path::new("")).join(s)),
        patience,
        idle: Duration::from_secs(file.idle_seconds.max(1)),
        log: Box::new(log),
    });
    outgrown_files_are_errors();
    print(&format!("party {id} listens on {address}\n"))?;
    if args.until_input_ends {
        // Sessions die with the process, and their connections tell the neighbours.
        std::thread::spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            std::process::exit(0);
        });
    }
    let served = host.serve(&listener, &AtomicBool::new(false));
    served.map_err(|cause| PartiesError::Serve { address: address.to_string(), cause })?;
    Ok(Verdict::Holds)
}

/// Lets a file that outgrows the process's limit be an error that names it, as a full disk is: by default the system
/// ends the process.
fn outgrown_files_are_errors() {
    // A signal with a handler is no end; where none can be set, the system's way stays.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}
