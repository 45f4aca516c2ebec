//! Keys and certificates for three parties and their client.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use secure::id::PartyId;
use secure::net::tls::{Fingerprint, Peer, Pins, fingerprint_of_pem};
use time::{Duration, OffsetDateTime};

/// The four that have a certificate.
pub const PEERS: [Peer; 4] =
    [Peer::Party(PartyId::P0), Peer::Party(PartyId::P1), Peer::Party(PartyId::P2), Peer::Client];

/// A certificate and its key, in PEM.
pub struct Issued {
    /// Whose it is.
    pub peer: Peer,
    /// The certificate: public.
    pub certificate: String,
    /// The key: secret.
    pub key: String,
}

/// An authority and what it has issued.
pub struct Issuance {
    /// The authority's certificate, in PEM.
    pub authority: String,
    /// Its key, in PEM: needed to issue more, and never by a party or a client.
    pub authority_key: String,
    /// Of the parties, in order, and of the client.
    pub issued: Vec<Issued>,
}

impl Issuance {
    /// Whose certificates are whose.
    ///
    /// # Errors
    /// A certificate that is none.
    pub fn pins(&self) -> Result<Pins, String> {
        let prints = self.issued.iter().map(|i| fingerprint_of_pem(&i.certificate)).collect::<Result<Vec<_>, _>>()?;
        let [a, b, c, client]: [Fingerprint; 4] = prints.try_into().map_err(|_| "four certificates".to_owned())?;
        Ok(Pins { parties: [a, b, c], client })
    }
}

/// Issues certificates that are valid for `days` from now on, each for one name: party0.difftest, party1.difftest,
/// party2.difftest, client.difftest. Keys are ECDSA on P-256. The beginning lies an hour back, for clocks that are
/// behind.
///
/// # Errors
/// The system's randomness fails.
pub fn issue(days: i64) -> Result<Issuance, rcgen::Error> {
    let now = OffsetDateTime::now_utc();
    let (from, to) = (now - Duration::hours(1), now + Duration::days(days));
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name.push(DnType::CommonName, "difftest parties");
    (params.not_before, params.not_after) = (from, to);
    let key = KeyPair::generate()?;
    let authority = params.self_signed(&key)?.pem();
    let authority_key = key.serialize_pem();
    let issuer = Issuer::new(params, key);
    let issued = PEERS.map(|peer| {
        let mut params = CertificateParams::new(vec![peer.name()])?;
        params.distinguished_name.push(DnType::CommonName, peer.name());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        (params.not_before, params.not_after) = (from, to);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?.pem();
        Ok(Issued { peer, certificate, key: key.serialize_pem() })
    });
    let issued = issued.into_iter().collect::<Result<_, rcgen::Error>>()?;
    Ok(Issuance { authority, authority_key, issued })
}
