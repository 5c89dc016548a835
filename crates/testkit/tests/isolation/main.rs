//! One tenant's object affects only that tenant, shown for the cases of `conformance`, for random clusters and for hostile objects.

mod answers;
mod damaged;
mod differential;
mod interference;
mod keys;
mod life;
mod operations;
mod small;
mod test_clusters;
