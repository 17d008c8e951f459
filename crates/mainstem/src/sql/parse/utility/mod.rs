//! Statements that neither query nor change rows one by one, each read in full: VACUUM and ANALYZE ([`maintenance`]),
//! DESCRIBE, SUMMARIZE and SHOW TABLES ([`describe`]), UNLOAD, LOAD, EXPORT and IMPORT ([`transfer`]).

pub(super) mod describe;
pub(super) mod maintenance;
pub(super) mod transfer;
