//! Pieces to bytes: lines, or row groups of Parquet. Each by itself, so that any number of threads may.

use std::fs::File;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use datafusion::parquet::basic::{Compression as Codec, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use datafusion::parquet::file::writer::SerializedFileWriter;
use mainstem_storage::{Error, Result};

use super::piece::Limits;
use crate::csv::LineFormat;
use crate::error::from_parquet;
use crate::sql::{Compression, CopyFormat};

/// Pieces of lines: enough that handing them over costs nothing beside writing them.
const LINES: Limits = Limits { rows: 16_384, bytes: 4 << 20 };
/// Row groups: as large as a segment, so that statistics prune; in memory as a whole while they are encoded.
const ROW_GROUP: Limits = Limits { rows: 131_072, bytes: 64 << 20 };
/// A dictionary that grows beyond it is given up in its row group: most of its values come but once, and looking each
/// up takes longer than writing it.
const DICTIONARY_BYTES_MAX: usize = 128 << 10;
/// Bytes of lines for each byte of values, about.
const LINE_BYTES_SHARE: usize = 2;

/// What a piece becomes.
pub(super) enum Encoded {
    Lines(Vec<u8>),
    RowGroup(Vec<ArrowColumnChunk>),
}

/// Encodes pieces of one schema.
pub(super) enum Encoder {
    Lines { format: LineFormat, header: Vec<u8> },
    Parquet { factory: Box<ArrowRowGroupWriterFactory>, properties: Box<WriterProperties>, schema: SchemaRef },
}

impl Encoder {
    /// What encodes rows of `schema`.
    ///
    /// # Errors
    /// 0A000 for types that Parquet has not.
    pub(super) fn new(format: &CopyFormat, compression: Compression, schema: SchemaRef) -> Result<Self> {
        let format = match format {
            CopyFormat::Csv(options) => LineFormat::Csv(options.clone()),
            CopyFormat::Text(options) => LineFormat::Text(options.clone()),
            CopyFormat::Parquet => {
                let codec = match compression {
                    Compression::Zstd => Codec::ZSTD(ZstdLevel::default()),
                    Compression::Snappy => Codec::SNAPPY,
                    Compression::Lz4 => Codec::LZ4_RAW,
                    Compression::None => Codec::UNCOMPRESSED,
                };
                let properties = WriterProperties::builder()
                    .set_compression(codec)
                    .set_dictionary_page_size_limit(DICTIONARY_BYTES_MAX)
                    .set_statistics_enabled(EnabledStatistics::Chunk)
                    .build();
                let writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties.clone()));
                let (_, factory) =
                    writer.and_then(ArrowWriter::into_serialized_writer).map_err(|e| from_parquet(&e))?;
                let (factory, properties) = (Box::new(factory), Box::new(properties));
                return Ok(Self::Parquet { factory, properties, schema });
            }
        };
        let mut header = Vec::new();
        format.header(&schema, &mut header);
        Ok(Self::Lines { format, header })
    }

    /// What stands in front of all lines.
    pub(super) fn header(&self) -> &[u8] {
        match self {
            Self::Lines { header, .. } => header,
            Self::Parquet { .. } => &[],
        }
    }

    /// How large a piece is to be.
    pub(super) fn piece_limits(&self) -> Limits {
        match self {
            Self::Lines { .. } => LINES,
            Self::Parquet { .. } => ROW_GROUP,
        }
    }

    /// What the rows of `batches` become.
    ///
    /// # Errors
    /// 0A000 for values without a text.
    pub(super) fn encode(&self, batches: &[RecordBatch]) -> Result<Encoded> {
        match self {
            Self::Lines { format, .. } => {
                let bytes: usize = batches.iter().map(RecordBatch::get_array_memory_size).sum();
                let mut lines = Vec::with_capacity((bytes / LINE_BYTES_SHARE).min(LINES.bytes));
                batches.iter().try_for_each(|batch| format.rows(batch, &mut lines))?;
                Ok(Encoded::Lines(lines))
            }
            Self::Parquet { factory, schema, .. } => {
                row_group(factory, schema, batches).map(Encoded::RowGroup).map_err(|e| from_parquet(&e))
            }
        }
    }

    /// A writer of a Parquet file of this schema to `output`, which messages call `shown`; `None` for lines.
    ///
    /// # Errors
    /// Of `output`.
    pub(super) fn file(&self, output: File, shown: &str) -> Result<Option<SerializedFileWriter<File>>> {
        let Self::Parquet { properties, schema, .. } = self else { return Ok(None) };
        let writer = ArrowWriter::try_new(output, schema.clone(), Some(WriterProperties::clone(properties)));
        let (writer, _) = writer.and_then(ArrowWriter::into_serialized_writer).map_err(|e| written(&e, shown))?;
        Ok(Some(writer))
    }
}

/// An error of writing to `file`.
pub(super) fn written(error: &ParquetError, file: &str) -> Error {
    let inner = match error {
        ParquetError::External(inner) => inner.downcast_ref::<std::io::Error>(),
        _ => None,
    };
    match inner {
        Some(io) => Error::io("write", file, std::io::Error::new(io.kind(), io.to_string())),
        None => from_parquet(error),
    }
}

fn row_group(
    factory: &ArrowRowGroupWriterFactory,
    schema: &SchemaRef,
    batches: &[RecordBatch],
) -> std::result::Result<Vec<ArrowColumnChunk>, ParquetError> {
    let mut writers = factory.create_column_writers(0)?;
    for batch in batches {
        let mut writers = writers.iter_mut();
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            for leaf in compute_leaves(field, column)? {
                if let Some(writer) = writers.next() {
                    writer.write(&leaf)?;
                }
            }
        }
    }
    writers.into_iter().map(|writer| writer.close()).collect()
}
