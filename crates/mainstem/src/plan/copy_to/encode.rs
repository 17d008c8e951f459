//! Pieces to bytes: lines, or row groups of Parquet. Each by itself, so that any number of threads may.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Schema, SchemaRef};
use datafusion::parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves,
};
use datafusion::parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use datafusion::parquet::basic::{Compression as Codec, ConvertedType, LogicalType, Type as PhysicalType, ZstdLevel};
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::types::{SchemaDescriptor, Type, TypePtr};
use mainstem_postgres::types::UUID;
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
                let schema = with_uuids(&schema);
                let writer = parquet_writer(Vec::new(), &schema, &properties);
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
        let writer = parquet_writer(output, schema, properties);
        let (writer, _) = writer.and_then(ArrowWriter::into_serialized_writer).map_err(|e| written(&e, shown))?;
        Ok(Some(writer))
    }
}

/// What writes rows of `schema`, which [`with_uuids`] has made.
fn parquet_writer<W: Write + Send>(
    output: W,
    schema: &SchemaRef,
    properties: &WriterProperties,
) -> ParquetResult<ArrowWriter<W>> {
    let plain = ArrowSchemaConverter::new().convert(schema)?;
    let root = with_logical_uuids(plain.root_schema_ptr())?;
    let options =
        ArrowWriterOptions::new().with_properties(properties.clone()).with_parquet_schema(SchemaDescriptor::new(root));
    ArrowWriter::try_new_with_options(output, schema.clone(), options)
}

/// `column`, or a column within it, of 16 bytes as UUID: no other values here have a fixed length, and `parquet` says
/// so by itself with a feature alone that DataFusion does not switch on.
fn with_logical_uuids(column: TypePtr) -> ParquetResult<TypePtr> {
    let info = column.get_basic_info();
    match &*column {
        Type::PrimitiveType { physical_type: PhysicalType::FIXED_LEN_BYTE_ARRAY, type_length: 16, .. }
            if info.logical_type_ref().is_none() && info.converted_type() == ConvertedType::NONE =>
        {
            let uuid = Type::primitive_type_builder(column.name(), PhysicalType::FIXED_LEN_BYTE_ARRAY)
                .with_repetition(info.repetition())
                .with_logical_type(Some(LogicalType::Uuid))
                .with_length(16);
            Ok(Arc::new(uuid.build()?))
        }
        Type::PrimitiveType { .. } => Ok(column),
        Type::GroupType { basic_info, fields } => {
            let fields = fields.iter().cloned().map(with_logical_uuids).collect::<ParquetResult<_>>()?;
            Ok(Arc::new(Type::GroupType { basic_info: basic_info.clone(), fields }))
        }
    }
}

/// `schema` with the canonical extension of Arrow's that says what is a UUID.
fn with_uuids(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(field_with_uuids).collect::<Vec<_>>();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn field_with_uuids(field: &FieldRef) -> FieldRef {
    let made = Field::clone(field);
    Arc::new(match field.data_type() {
        data_type if *data_type == UUID => {
            let mut metadata = field.metadata().clone();
            metadata.insert("ARROW:extension:name".into(), "arrow.uuid".into());
            metadata.insert("ARROW:extension:metadata".into(), String::new());
            made.with_metadata(metadata)
        }
        ArrowType::List(item) => made.with_data_type(ArrowType::List(field_with_uuids(item))),
        ArrowType::LargeList(item) => made.with_data_type(ArrowType::LargeList(field_with_uuids(item))),
        ArrowType::FixedSizeList(item, n) => made.with_data_type(ArrowType::FixedSizeList(field_with_uuids(item), *n)),
        ArrowType::Struct(fields) => {
            made.with_data_type(ArrowType::Struct(fields.iter().map(field_with_uuids).collect()))
        }
        _ => made,
    })
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
