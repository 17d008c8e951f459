mod jobs;
mod policy;
