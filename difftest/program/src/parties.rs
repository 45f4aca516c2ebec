//! Parties in processes of their own: their files, their certificates, and three of them on this machine.

pub mod certificates;
pub mod files;
pub mod local;
