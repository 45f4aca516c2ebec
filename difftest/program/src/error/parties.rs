use secure::id::PartyId;
use std::path::PathBuf;

/// Parties that cannot be started or asked.
#[derive(Debug, thiserror::Error)]
pub enum PartiesError {
    /// The system gives no folder or no program for parties of this machine.
    #[error("secure side: cannot start the parties: {0}; make room, or run them elsewhere (--parties FILE)")]
    System(#[source] std::io::Error),
    /// The system gives no process for a party.
    #[error("secure side: cannot start the parties: party {party}: {cause}; end other processes, or raise their limit")]
    Process {
        /// The party.
        party: PartyId,
        /// The words of the operating system.
        #[source]
        cause: std::io::Error,
    },
    /// A party's process ended before it listened.
    #[error("secure side: cannot start the parties: party {0} does not listen; its message is above")]
    Deaf(PartyId),
    /// Keys or certificates cannot be made.
    #[error("cannot make certificates: {0}; try again, or ask the system's administrator for randomness")]
    Certificates(#[from] rcgen::Error),
    /// A certificate that was just made cannot be read.
    #[error("{0}; this is a fault of the program, report it")]
    Fingerprint(String),
    /// A configuration has no TOML form.
    #[error("cannot write a configuration: {0}; this is a fault of the program, report it")]
    Toml(#[from] toml::ser::Error),
    /// The party cannot listen where it should.
    #[error("cannot listen on {address}: {cause}; choose another")]
    Listen {
        /// The address.
        address: String,
        /// The words of the operating system.
        #[source]
        cause: std::io::Error,
    },
    /// The party can no longer accept connections.
    #[error("secure side: {address}: {cause}; start the party again")]
    Serve {
        /// The address.
        address: String,
        /// The words of the operating system.
        #[source]
        cause: std::io::Error,
    },
    /// A party does not say how it is.
    #[error("secure side: {0}")]
    Health(#[source] secure::Error),
}

/// A file that names the parties and is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {cause}", .path.display())]
pub struct SettingsError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    #[source]
    pub cause: SettingsCause,
}

/// The reason why a file that names the parties is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsCause {
    /// The text is no TOML, or has other fields.
    #[error("line {line}: {what}; `difftest certs` writes a right one")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The words of the parser.
        what: String,
    },
    /// A pin is no fingerprint.
    #[error("pins.{0} is not the SHA-256 of a certificate: 64 hexadecimal digits, as `difftest certs` writes them")]
    Pin(&'static str),
    /// Two of the four have the same certificate.
    #[error("one certificate is pinned twice; everybody needs a certificate of their own")]
    PinnedTwice,
    /// An address has no host or no port.
    #[error("addresses.party{party} is {address:?}; write host:port, [address]:port for IPv6")]
    Address {
        /// The party, 0 to 2.
        party: usize,
        /// The address.
        address: String,
    },
    /// An address is missing.
    #[error("addresses must name party0, party1 and party2")]
    Addresses,
    /// Keys or certificates do not fit together.
    #[error("{0}")]
    Credentials(String),
    /// The party's number is none.
    #[error("party is {0}; it is 0, 1 or 2")]
    Party(u8),
    /// A number of threads or sessions is outside its range.
    #[error("threads must be 1 to 1024, sessions at least 1")]
    Limits,
    /// A time is none, or longer than a clock can add up.
    #[error("{field} is {found}; it must be 1 to {most}")]
    Seconds {
        /// The field.
        field: &'static str,
        /// The seconds that it names.
        found: u64,
        /// The most seconds.
        most: u64,
    },
    /// The address to listen on is none.
    #[error("listen is {0:?}; write address:port, 127.0.0.1:7000 for instance")]
    Listen(String),
}

impl SettingsCause {
    /// Names the file.
    pub fn of(self, path: impl Into<PathBuf>) -> SettingsError {
        SettingsError { path: path.into(), cause: self }
    }
}
